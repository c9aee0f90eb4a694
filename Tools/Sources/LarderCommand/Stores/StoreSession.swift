import Larder
import LarderExpiry
import LarderMetrics
import LarderQueue

/// Functions that open a store for a verb and close it at the end.
enum StoreSession {
  /// Opens a store, calls a closure, and closes the store, also after an error.
  ///
  /// - Parameters:
  ///   - target: The store.
  ///   - createsIfMissing: Whether a missing store is created; defaults to `false`.
  ///   - access: Whether the store may write to its files; defaults to ``StoreAccess/readWrite``.
  ///   - timeToLive: The time to live of the entries that are written; defaults to `nil`. See ``OpenedStore``.
  ///   - codecName: The codec that the store must have or is created with; defaults to `nil`, for any codec.
  ///   - body: Receives the store, and the output, which is flushed afterwards.
  /// - Returns: The result of `body`.
  /// - Throws: The first error of opening, `body`, flushing and closing. An output without a reader counts only if there is
  ///   no other error.
  static func run<Result>(
    _ target: StoreTarget, createsIfMissing: Bool = false, access: StoreAccess = .readWrite,
    timeToLive: TimeToLive? = nil, codecName: String? = nil,
    _ body: (OpenedStore, ByteOutput) async throws -> Result
  ) async throws -> Result {
    let options = StoreOptions(createsIfMissing: createsIfMissing, access: access)
    return try await use(target) {
      try await OpenedStore(target, options: options, timeToLive: timeToLive, codecName: codecName)
    } body: {
      try await body($0, $1)
    } close: {
      try await $0.present.close()
    }
  }

  /// Opens a store of encoded values, calls a closure, and closes the store, also after an error.
  ///
  /// - Parameters:
  ///   - target: The store.
  ///   - access: Whether the store may write to its files.
  ///   - decrypts: Whether the values are the bytes that are encrypted, not the encrypted ones; defaults to `false`.
  ///   - body: Receives the store, and the output, which is flushed afterwards.
  /// - Returns: The result of `body`.
  /// - Throws: The errors of ``run(_:createsIfMissing:access:timeToLive:codecName:_:)``.
  static func runEncoded<Result>(
    _ target: StoreTarget, access: StoreAccess, decrypts: Bool = false,
    _ body: (EncodedStore, ByteOutput) async throws -> Result
  ) async throws -> Result {
    try await use(target) {
      try await EncodedStore(target, access: access, decrypts: decrypts)
    } body: {
      try await body($0, $1)
    } close: {
      try await $0.store.close()
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
  /// - Throws: The errors of ``run(_:createsIfMissing:access:timeToLive:codecName:_:)``.
  static func runQueue<Result>(
    _ queue: QueueArgument, createsIfMissing: Bool = false, access: StoreAccess = .readWrite,
    operation: StoreOperation, _ body: (QueueStore<JSONText>) async throws -> Result,
    print: (Result, ByteOutput) throws -> Void
  ) async throws {
    let target = queue.target
    let options = StoreOptions(createsIfMissing: createsIfMissing, access: access)
    try await use(target) {
      try await Stores.openQueue(target, options: options)
    } body: { queue, output in
      try print(try await measure(operation, by: target.meter) { try await body(queue) }, output)
    } close: { queue in
      try await measure(.close, by: target.meter) { try await queue.close() }
    }
  }

  /// Opens an LMDB environment or an SQLite database, calls a closure with the URLs of its stores, and closes it, also
  /// after an error.
  ///
  /// - Parameters:
  ///   - target: The environment or database, or a store in it.
  ///   - access: Whether its files may be written.
  ///   - body: Receives the URLs in the order of the names, and the output, which is flushed afterwards.
  /// - Throws: The errors of ``run(_:createsIfMissing:access:timeToLive:codecName:_:)``.
  static func runCollection(
    _ target: StoreTarget, access: StoreAccess, _ body: ([String], ByteOutput) throws -> Void
  ) async throws {
    try await use(target) {
      try await Stores.openCollection(target, access: access)
    } body: { opened, output in
      try body(try await opened.storeNames().map { "\(opened.url)#\($0)" }, output)
    } close: {
      try await $0.close()
    }
  }

  /// Opens something, waiting while another program has it open, calls a closure, flushes its output, and closes what was
  /// opened, also after an error.
  private static func use<Opened, Result>(
    _ target: StoreTarget, open: () async throws -> Opened,
    body: (Opened, ByteOutput) async throws -> Result, close: (Opened) async throws -> Void
  ) async throws -> Result {
    defer {
      // The report goes to standard error at the end, also after an error.
      if let meter = target.meter { Diagnostics.writeLine("\(meter.report())") }
    }
    let opened = try await measure(.open, by: target.meter) {
      try await LockWait(upTo: target.timeout).run(open)
    }
    let output = ByteOutput()
    var result: Result?
    var errors: [any Error] = []
    do {
      result = try await body(opened, output)
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
      try await close(opened)
    } catch {
      errors.append(error)
    }
    if let error = errors.first(where: { ($0 as? BrokenOutput)?.isReaderGone != true }) ?? errors.first { throw error }
    guard let result else { throw ExitStatus.internalFailure }
    return result
  }

  /// Runs an operation, and measures it if there is a meter.
  private static func measure<Result>(
    _ operation: StoreOperation, by meter: StoreMeter?, _ body: () async throws -> Result
  ) async throws -> Result {
    guard let meter else { return try await body() }
    return try await meter.measure(operation.rawValue, body)
  }
}
