import Larder
import LarderExpiry
import LarderMetrics
import LarderQueue

/// The time for which a verb has a store open.
enum StoreSession {
  /// Opens a store, does something with it, and closes it whatever happens.
  ///
  /// - Parameters:
  ///   - url: Where the store is.
  ///   - createsIfMissing: Whether a store that is not there is made.
  ///   - access: Whether the store may write to its files; defaults to ``StoreAccess/readWrite``.
  ///   - expiration: When an entry expires that is written now; see
  ///     ``Stores/open(_:createsIfMissing:access:expiration:meter:)``.
  ///   - meter: What measures the store; its report goes to standard error at the end, whatever happens. `nil` for none.
  ///   - body: Gets the store, without what has expired, and where to print to; what it prints is flushed behind it.
  /// - Returns: What `body` returned.
  /// - Throws: The first of what opening, `body`, flushing and closing threw; that nobody reads the output any more
  ///   counts only where nothing else went wrong.
  static func run<Result>(
    _ url: String,
    createsIfMissing: Bool,
    access: StoreAccess = .readWrite,
    expiration: Expiration? = nil,
    meter: StoreMeter?,
    _ body: (AnyDataStore<JSONText>, ByteOutput) async throws -> Result
  ) async throws -> Result {
    try await runOpened(
      url, createsIfMissing: createsIfMissing, access: access, expiration: expiration, meter: meter
    ) {
      try await body($0.present, $1)
    }
  }

  /// Opens a store, does something with it and its deadlines, and closes it whatever happens.
  ///
  /// - Parameters:
  ///   - url: Where the store is.
  ///   - createsIfMissing: Whether a store that is not there is made.
  ///   - access: Whether the store may write to its files; defaults to ``StoreAccess/readWrite``.
  ///   - expiration: When an entry expires that is written now; see
  ///     ``Stores/open(_:createsIfMissing:access:expiration:meter:)``.
  ///   - meter: What measures the store; its report goes to standard error at the end, whatever happens. `nil` for none.
  ///   - body: As that of ``run(_:createsIfMissing:access:expiration:meter:_:)``.
  /// - Returns: What `body` returned.
  /// - Throws: As ``run(_:createsIfMissing:access:expiration:meter:_:)``.
  static func runOpened<Result>(
    _ url: String,
    createsIfMissing: Bool,
    access: StoreAccess = .readWrite,
    expiration: Expiration? = nil,
    meter: StoreMeter?,
    _ body: (OpenedStore, ByteOutput) async throws -> Result
  ) async throws -> Result {
    defer {
      if let meter { Diagnostics.writeLine("\(meter.report())") }
    }
    let opened = try await Stores.open(
      url, createsIfMissing: createsIfMissing, access: access, expiration: expiration, meter: meter)
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
  /// - Throws: As ``run(_:createsIfMissing:access:expiration:meter:_:)``.
  static func runQueue<Result>(
    _ queue: QueueArgument,
    createsIfMissing: Bool = false,
    access: StoreAccess = .readWrite,
    operation: StoreOperation,
    _ body: (QueueStore<Expiring<JSONText>>) async throws -> Result,
    print: (Result, ByteOutput) throws -> Void
  ) async throws {
    let meter = queue.meter
    defer {
      if let meter { Diagnostics.writeLine("\(meter.report())") }
    }
    let opened = try await Stores.openQueue(
      queue.url, createsIfMissing: createsIfMissing, access: access, patience: queue.wait.duration, meter: meter)
    try await use { output in
      try print(try await Stores.measure(operation, by: meter) { try await body(opened) }, output)
    } close: {
      try await Stores.measure(.close, by: meter) { try await opened.close() }
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
