import Larder
import LarderExpiry
import LarderLMDB
import LarderMetrics
import LarderQueue

/// The time for which a verb has a store open.
enum StoreSession {
  /// Opens a store, does something with it, and closes it whatever happens.
  ///
  /// - Parameters:
  ///   - target: The store.
  ///   - createsIfMissing: Whether a store that is not there is made.
  ///   - access: Whether the store may write to its files; defaults to ``StoreAccess/readWrite``.
  ///   - expiration: When an entry expires that is written now; see
  ///     ``Stores/open(_:createsIfMissing:access:expiration:codecName:)``.
  ///   - body: Gets the store, without what has expired, and where to print to; what it prints is flushed behind it.
  /// - Returns: What `body` returned.
  /// - Throws: The first of what opening, `body`, flushing and closing threw; that nobody reads the output any more
  ///   counts only where nothing else went wrong.
  static func run<Result>(
    _ target: StoreTarget,
    createsIfMissing: Bool,
    access: StoreAccess = .readWrite,
    expiration: Expiration? = nil,
    _ body: (AnyDataStore<JSONText>, ByteOutput) async throws -> Result
  ) async throws -> Result {
    try await runOpened(
      target, createsIfMissing: createsIfMissing, access: access, expiration: expiration
    ) {
      try await body($0.present, $1)
    }
  }

  /// Opens a store, does something with it and its deadlines, and closes it whatever happens.
  ///
  /// - Parameters:
  ///   - target: The store.
  ///   - createsIfMissing: Whether a store that is not there is made.
  ///   - access: Whether the store may write to its files; defaults to ``StoreAccess/readWrite``.
  ///   - expiration: When an entry expires that is written now; see
  ///     ``Stores/open(_:createsIfMissing:access:expiration:codecName:)``.
  ///   - codecName: The codec that the store must have, or is made with; `nil` for any.
  ///   - body: As that of ``run(_:createsIfMissing:access:expiration:_:)``.
  /// - Returns: What `body` returned.
  /// - Throws: As ``run(_:createsIfMissing:access:expiration:_:)``.
  static func runOpened<Result>(
    _ target: StoreTarget,
    createsIfMissing: Bool,
    access: StoreAccess = .readWrite,
    expiration: Expiration? = nil,
    codecName: String? = nil,
    _ body: (OpenedStore, ByteOutput) async throws -> Result
  ) async throws -> Result {
    defer {
      // The report goes to standard error at the end, whatever happens.
      if let meter = target.meter { Diagnostics.writeLine("\(meter.report())") }
    }
    let opened = try await Stores.open(
      target, createsIfMissing: createsIfMissing, access: access, expiration: expiration, codecName: codecName)
    return try await use {
      try await body(opened, $0)
    } close: {
      try await opened.present.close()
    }
  }

  /// Opens a queue, does something with it, and closes it whatever happens.
  ///
  /// - Parameters:
  ///   - queue: Where the queue is, and how long to wait for it.
  ///   - createsIfMissing: Whether a queue that is not there is made; defaults to `false`.
  ///   - access: Whether the queue may write to its files; defaults to ``StoreAccess/readWrite``.
  ///   - operation: As what `body` is measured.
  ///   - body: Gets the queue.
  ///   - print: Gets what `body` returned, and where to print to; what it prints is flushed behind it.
  /// - Throws: As ``run(_:createsIfMissing:access:expiration:_:)``.
  static func runQueue<Result>(
    _ queue: QueueArgument,
    createsIfMissing: Bool = false,
    access: StoreAccess = .readWrite,
    operation: StoreOperation,
    _ body: (QueueStore<Expiring<JSONText>>) async throws -> Result,
    print: (Result, ByteOutput) throws -> Void
  ) async throws {
    let target = queue.target
    let meter = target.meter
    defer {
      if let meter { Diagnostics.writeLine("\(meter.report())") }
    }
    let opened = try await Stores.openQueue(
      target, createsIfMissing: createsIfMissing, access: access)
    try await use { output in
      try print(try await Stores.measure(operation, by: meter) { try await body(opened) }, output)
    } close: {
      try await Stores.measure(.close, by: meter) { try await opened.close() }
    }
  }

  /// Opens an LMDB environment, does something with the URLs of its stores, and closes it whatever happens.
  ///
  /// - Parameters:
  ///   - target: The environment, or a store in it.
  ///   - access: Whether its files may be written to.
  ///   - body: Gets the URLs in the order of the names, and where to print to; what it prints is flushed behind it.
  /// - Throws: As ``run(_:createsIfMissing:access:expiration:_:)``.
  static func runEnvironment(
    _ target: StoreTarget, access: StoreAccess, _ body: ([String], ByteOutput) throws -> Void
  ) async throws {
    defer {
      if let meter = target.meter { Diagnostics.writeLine("\(meter.report())") }
    }
    let (environment, url) = try await Stores.openEnvironment(target, access: access)
    try await use { output in
      try body(try await environment.storeNames().map { "\(url)#\($0)" }, output)
    } close: {
      try await environment.close()
    }
  }

  /// Does something with a store, flushes what that printed, and closes the store, whatever happens.
  private static func use<Result>(
    _ body: (ByteOutput) async throws -> Result, close: () async throws -> Void
  ) async throws -> Result {
    let output = ByteOutput()
    var result: Result?
    var errors: [any Error] = []
    do {
      result = try await body(output)
    } catch {
      errors.append(error)
    }
    do {
      // After an error, too: what was printed before it is true.
      try output.flush()
    } catch {
      errors.append(error)
    }
    do {
      try await close()
    } catch {
      errors.append(error)
    }
    if let error = errors.first(where: { ($0 as? BrokenOutput)?.isReaderGone != true }) ?? errors.first { throw error }
    guard let result else { throw ExitStatus.internalFailure }
    return result
  }
}
