import Larder
import LarderExpiry
import LarderLMDB
import LarderMetrics
import LarderQueue

/// Functions that open a store for a verb and close it at the end.
enum StoreSession {
  /// Opens a store, calls a closure, and closes the store, also after an error.
  ///
  /// - Parameters:
  ///   - target: The store.
  ///   - createsIfMissing: Whether a missing store is created.
  ///   - access: Whether the store may write to its files; defaults to ``StoreAccess/readWrite``.
  ///   - timeToLive: The time to live of the entries that are written; defaults to `nil`. See
  ///     ``Stores/open(_:createsIfMissing:access:timeToLive:codecName:)``.
  ///   - body: Receives the store without expired entries, and the output, which is flushed afterwards.
  /// - Returns: The result of `body`.
  /// - Throws: The first error of opening, `body`, flushing and closing. An output without a reader counts only if there is
  ///   no other error.
  static func run<Result>(
    _ target: StoreTarget,
    createsIfMissing: Bool,
    access: StoreAccess = .readWrite,
    timeToLive: TimeToLive? = nil,
    _ body: (AnyDataStore<JSONText>, ByteOutput) async throws -> Result
  ) async throws -> Result {
    try await runOpened(
      target, createsIfMissing: createsIfMissing, access: access, timeToLive: timeToLive
    ) {
      try await body($0.present, $1)
    }
  }

  /// Opens a store, calls a closure with all its views, and closes the store, also after an error.
  ///
  /// - Parameters:
  ///   - target: The store.
  ///   - createsIfMissing: Whether a missing store is created.
  ///   - access: Whether the store may write to its files; defaults to ``StoreAccess/readWrite``.
  ///   - timeToLive: The time to live of the entries that are written; defaults to `nil`. See
  ///     ``Stores/open(_:createsIfMissing:access:timeToLive:codecName:)``.
  ///   - codecName: The codec that the store must have or is created with; defaults to `nil`, for any codec.
  ///   - body: Receives the store and the output, which is flushed afterwards.
  /// - Returns: The result of `body`.
  /// - Throws: The errors of ``run(_:createsIfMissing:access:timeToLive:_:)``.
  static func runOpened<Result>(
    _ target: StoreTarget,
    createsIfMissing: Bool,
    access: StoreAccess = .readWrite,
    timeToLive: TimeToLive? = nil,
    codecName: String? = nil,
    _ body: (OpenedStore, ByteOutput) async throws -> Result
  ) async throws -> Result {
    defer {
      // The report goes to standard error at the end, also after an error.
      if let meter = target.meter { Diagnostics.writeLine("\(meter.report())") }
    }
    let opened = try await Stores.open(
      target, createsIfMissing: createsIfMissing, access: access, timeToLive: timeToLive, codecName: codecName)
    return try await use {
      try await body(opened, $0)
    } close: {
      try await opened.present.close()
    }
  }

  /// Opens a queue, calls a closure, and closes the queue, also after an error.
  ///
  /// - Parameters:
  ///   - queue: The queue, with the options for opening it.
  ///   - createsIfMissing: Whether a missing queue is created; defaults to `false`.
  ///   - access: Whether the queue may write to its files; defaults to ``StoreAccess/readWrite``.
  ///   - operation: The operation as which `body` is measured.
  ///   - body: Receives the queue.
  ///   - print: Receives the result of `body` and the output, which is flushed afterwards.
  /// - Throws: The errors of ``run(_:createsIfMissing:access:timeToLive:_:)``.
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

  /// Opens an LMDB environment, calls a closure with the URLs of its stores, and closes the environment, also after an
  /// error.
  ///
  /// - Parameters:
  ///   - target: The environment, or a store in it.
  ///   - access: Whether the environment may write to its files.
  ///   - body: Receives the URLs in the order of the names, and the output, which is flushed afterwards.
  /// - Throws: The errors of ``run(_:createsIfMissing:access:timeToLive:_:)``.
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

  /// Calls a closure, flushes its output, and closes a store, also after an error.
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
      // After an error, too, because the lines printed before it are correct.
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
