public import Larder

/// The content of a store that keeps its entries in one file, as its readers see it: after every batch whose write has
/// returned, and no other.
///
/// Only the ``FileWriter`` of the store changes it. Readers never wait for the disk.
///
/// ```swift
/// let content = SharedContent<[StoreKey: User]>([:])
/// content.change { $0["user:1"] = User(name: "Ada") }
/// let user = content.look { $0["user:1"] }
/// ```
public final class SharedContent<Content: Sendable>: Sendable {
  private let content: Locked<Content>

  /// The running reads, which end when their values are decoded.
  let reads = RunningOperations()

  /// Creates the content of a store that is not read yet.
  public init(_ content: Content) {
    self.content = Locked(content)
  }

  /// An immutable snapshot of the content.
  ///
  /// While the snapshot exists, the next change has to copy a part of it.
  public var snapshot: Content {
    content.withLock { $0 }
  }

  /// Reads a small part of the content, while all other readers and the writer wait.
  public func look<Result: Sendable>(_ body: (Content) throws -> Result) rethrows -> Result {
    try content.withLock { try body($0) }
  }

  /// Performs a read, then processes its result.
  ///
  /// Closing waits for both. Returns `nil` if closing has begun.
  ///
  /// - Parameters:
  ///   - body: A closure that reads while all other readers and the writer wait.
  ///   - use: A closure that processes the result.
  public func read<Found: Sendable, Result>(
    _ body: (Content) throws -> Found, then use: (Found) throws -> Result
  ) rethrows -> Result? {
    guard reads.begin() else { return nil }
    defer { reads.end() }
    return try use(look(body))
  }

  /// Replaces the content.
  public func replace(_ content: Content) {
    // Released outside of the lock, because releasing millions of entries takes time.
    var content = content
    self.content.withLock { swap(&$0, &content) }
  }

  /// Changes the content.
  ///
  /// - Returns: The result of `body`. Return large replaced parts, so they are released outside the lock.
  @discardableResult
  public func change<Result: Sendable>(_ body: (inout Content) -> Result) -> Result {
    content.withLock { content in body(&content) }
  }
}

/// The open files of a store that keeps its entries in one file.
///
/// It runs one operation after another on its own thread. `File` knows the format of the files and does the work.
public actor FileWriter<File: Sendable> {
  private nonisolated let executor: DispatchQueueExecutor

  /// The information of the store.
  public nonisolated let information: StoreInformation

  private nonisolated let reads: RunningOperations

  /// The open files.
  public var file: File

  /// A Boolean value that indicates whether the files are closed.
  public private(set) var isClosed = false

  /// The executor.
  ///
  /// It has a thread of its own, so blocking calls do not occupy the cooperative pool.
  public nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

  /// Opens the files of a store.
  ///
  /// - Parameters:
  ///   - label: The name of the thread, for debuggers.
  ///   - configuration: The options for opening the files.
  ///   - content: The content that the store's readers see.
  ///   - body: A closure that opens the files on the thread.
  /// - Throws: The error that `body` throws.
  public init(
    label: String, _ configuration: StoreFileConfiguration, content: SharedContent<some Sendable>,
    _ body: @escaping @Sendable () throws -> File
  ) async throws {
    executor = DispatchQueueExecutor(label: label)
    information = StoreInformation(
      name: configuration.name, durability: Durability(configuration.durability), sharing: .exclusive,
      access: configuration.access, entryLifetime: .untilRemoved, identity: StoreIdentity(), readsMayBeCopies: false)
    reads = content.reads
    file = try await executor.run(body)
  }

  /// Runs an operation that uses the files.
  ///
  /// - Parameters:
  ///   - operation: The operation, for the error.
  ///   - body: A closure that uses the files.
  /// - Returns: The result of `body`.
  /// - Throws: `StoreError` with `closed`; the error that `body` throws.
  public func run<Result: Sendable>(
    _ operation: StoreOperation, _ body: @Sendable (inout File) throws -> Result
  ) throws -> Result {
    try checkOpen(for: operation)
    return try body(&file)
  }

  /// Runs an operation that writes entries, unless the task is cancelled.
  ///
  /// - Parameters:
  ///   - operation: The operation, for the error.
  ///   - body: A closure that uses the files.
  /// - Returns: The result of `body`.
  /// - Throws: `StoreError` with `closed`; `CancellationError`; the error that `body` throws.
  public func write<Result: Sendable>(
    _ operation: StoreOperation, _ body: @Sendable (inout File) throws -> Result
  ) throws -> Result {
    try checkOpen(for: operation)
    try Task.checkCancellation()
    return try body(&file)
  }

  /// Throws an error if closing has begun.
  ///
  /// - Parameter operation: The operation, for the error.
  /// - Throws: `StoreError` with `closed`.
  public func checkOpen(for operation: StoreOperation) throws {
    guard !reads.isClosing else { throw information.closedError(for: operation) }
  }

  /// Refuses further operations, and waits for the running reads.
  public nonisolated func stopReading() async {
    await reads.close()
  }

  /// Closes the files after ``stopReading()``, unless they are closed.
  ///
  /// - Parameter body: A closure that closes the files.
  /// - Throws: The error that `body` throws. The store is closed nevertheless.
  public func close(_ body: @Sendable (inout File) throws -> Void) throws {
    guard !isClosed else { return }
    isClosed = true
    try body(&file)
  }
}
