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
/// It runs one operation after another, on its own thread or, if ``writeInPlace(isolation:if:_:)`` finds it idle, on the caller's. `File`
/// knows the format of the files and does the work.
public actor FileWriter<File: Sendable> {
  private nonisolated let executor: FileExecutor

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
    executor = FileExecutor(label: label)
    information = StoreInformation(
      name: configuration.name, durability: Durability(configuration.durability), sharing: .exclusive,
      access: configuration.access, entryLifetime: .untilRemoved, identity: StoreIdentity(), readsMayBeCopies: false)
    reads = content.reads
    file = try await executor.thread.run(body)
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

  /// Runs a short write on the thread of the caller, if no other operation uses the files or waits for them.
  ///
  /// A write that does not wait for the disk takes less time than passing it to another thread and back.
  ///
  /// ```swift
  /// func append(_ record: [UInt8], to log: FileWriter<AppendLog>) async throws {
  ///   let isWritten: Void? = try log.writeInPlace(if: { _ in record.count < 4096 }) { writer in
  ///     try writer.write(.apply) { try $0.append(record) }
  ///   }
  ///   if isWritten == nil { try await log.write(.apply) { try $0.append(record) } }
  /// }
  /// ```
  ///
  /// - Parameters:
  ///   - isolation: The actor of the caller. Defaults to yours. The main actor never writes in place, because it must not wait
  ///     for a slow file system.
  ///   - isShort: A closure that returns whether the write takes less than a millisecond and does not wait for the disk.
  ///   - body: A closure that writes.
  /// - Returns: The result of `body`, or `nil` if the write must be passed to the writer's thread: the files are in use, the
  ///   caller is on the main actor, or `isShort` returned `false`.
  /// - Throws: The error that `body` throws.
  public nonisolated func writeInPlace<Result: Sendable>(
    isolation: (any Actor)? = #isolation, if isShort: @Sendable (File) -> Bool,
    _ body: @Sendable (isolated FileWriter) throws -> Result
  ) throws -> Result? {
    guard isolation !== MainActor.shared, executor.borrow() else { return nil }
    defer { executor.giveBack() }
    return try assumeIsolated { writer in
      guard isShort(writer.file) else { return nil }
      return try body(writer)
    }
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

/// The executor of a ``FileWriter``, which runs its jobs on a thread of its own.
///
/// While it has no job, a caller can take its place: it then counts as running on this executor, and jobs that arrive wait.
private final class FileExecutor: SerialExecutor {
  private struct State {
    var isBusy = false
    /// The thread of the caller that has taken the executor's place.
    var borrower: ThreadIdentity?
    var waiting: [UnownedJob] = []
  }

  let thread: DispatchQueueExecutor
  private let state = Locked(State())

  init(label: String) {
    thread = DispatchQueueExecutor(label: label)
  }

  func enqueue(_ job: consuming ExecutorJob) {
    let job = UnownedJob(job)
    let mustStart = state.withLock { state in
      defer { state.isBusy = true }
      state.waiting.append(job)
      return !state.isBusy
    }
    if mustStart { start() }
  }

  private func start() {
    thread.start { self.runWaiting() }
  }

  private func runWaiting() {
    while true {
      let jobs = state.withLock { state in
        defer { state.waiting = [] }
        state.isBusy = !state.waiting.isEmpty
        return state.waiting
      }
      if jobs.isEmpty { return }
      for job in jobs { job.runSynchronously(on: asUnownedSerialExecutor()) }
    }
  }

  /// Takes the executor's place, if it has no job.
  func borrow() -> Bool {
    let caller = ThreadIdentity.current
    return state.withLock { state in
      guard !state.isBusy else { return false }
      (state.isBusy, state.borrower) = (true, caller)
      return true
    }
  }

  /// Ends ``borrow()``.
  func giveBack() {
    let mustStart = state.withLock { state in
      state.borrower = nil
      state.isBusy = !state.waiting.isEmpty
      return state.isBusy
    }
    if mustStart { start() }
  }

  /// Ends the process unless the current thread has taken the executor's place.
  ///
  /// The runtime calls this if it does not know that the thread runs a job of the executor.
  func checkIsolated() {
    precondition(state.withLock(\.borrower) == ThreadIdentity.current, "This thread does not use the files.")
  }
}
