import Larder
import LarderExpiry
import LarderMetrics
import StoreAccess

/// Functions that open a store for a verb and close it at the end.
enum StoreSession {
  /// Opens a store, calls a closure, and closes the store, also after an error.
  ///
  /// - Parameters:
  ///   - target: The store.
  ///   - createsIfMissing: A Boolean value that indicates whether a missing store is created. Defaults to `false`.
  ///   - access: The access of the store to its files. Defaults to ``StoreAccess/readWrite``.
  ///   - timeToLive: The time to live of the entries that are written. Defaults to `nil`. See ``OpenedStore``.
  ///   - codecName: The codec that the store must have or is created with. Defaults to `nil`, for any codec.
  ///   - body: Receives the store, and the output, which is flushed afterward.
  /// - Returns: The result of `body`.
  /// - Throws: The first error of opening, `body`, flushing and closing. An output without a reader counts only if there is
  ///   no other error.
  static func run<Result>(
    _ target: StoreTarget, createsIfMissing: Bool = false, access: StoreAccess = .readWrite,
    timeToLive: TimeToLive? = nil, codecName: String? = nil,
    _ body: (OpenedStore, ByteOutput) async throws -> Result
  ) async throws -> Result {
    let options = try ConfiguredStacks.options(
      of: target.url, createsIfMissing: createsIfMissing, access: access)
    return try await use(target) {
      try await OpenedStore(
        FoundStore(target, options: options, expires: timeToLive != nil, codecName: codecName), timeToLive: timeToLive)
    } body: {
      try await body($0, $1)
    } close: {
      try await $0.present.close()
    }
  }

  /// Opens a store in a form that depends on the store, calls a closure, and closes the store, also after an error.
  ///
  /// - Parameters:
  ///   - target: The store.
  ///   - createsIfMissing: A Boolean value that indicates whether a missing store is created. Defaults to `false`.
  ///   - access: The access of the store to its files. Defaults to ``StoreAccess/readWrite``.
  ///   - expires: A Boolean value that indicates whether the values must expire. Defaults to `false`. See
  ///     ``FoundStore``.
  ///   - codecName: The codec that the store must have or is created with. Defaults to `nil`, for any codec.
  ///   - choose: Chooses the form.
  ///   - body: Receives the store, and the output, which is flushed afterward.
  /// - Returns: The result of `body`.
  /// - Throws: The errors of ``run(_:createsIfMissing:access:timeToLive:codecName:_:)`` and of `choose`.
  static func runMovable<Result>(
    _ target: StoreTarget, createsIfMissing: Bool = false, access: StoreAccess = .readWrite, expires: Bool = false,
    codecName: String? = nil, as choose: (FoundStore) async throws -> MovableStore,
    _ body: (MovableStore, ByteOutput) async throws -> Result
  ) async throws -> Result {
    let options = try ConfiguredStacks.options(
      of: target.url, createsIfMissing: createsIfMissing, access: access)
    return try await use(target) {
      try await choose(FoundStore(target, options: options, expires: expires, codecName: codecName))
    } body: {
      try await body($0, $1)
    } close: {
      try await $0.close()
    }
  }

  /// Opens a store of encoded values, calls a closure, and closes the store, also after an error.
  ///
  /// - Parameters:
  ///   - target: The store.
  ///   - access: The access of the store to its files.
  ///   - decrypts: A Boolean value that indicates whether the values are the bytes that are encrypted, not the
  ///     encrypted ones. Defaults to `false`.
  ///   - body: Receives the store, and the output, which is flushed afterward.
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

  /// Opens an existing store of bytes, calls a closure, and closes the store, also after an error.
  ///
  /// - Parameters:
  ///   - target: The store. Its meter measures all later operations.
  ///   - user: The kind of thing that is in the store, for errors, such as "an HTTP cache".
  ///   - access: The access of the store to its files.
  ///   - body: Receives the store, and the output, which is flushed afterward.
  /// - Throws: The errors of ``run(_:createsIfMissing:access:timeToLive:codecName:_:)`` and of
  ///   ``Stores/bytes(in:for:options:)``.
  static func runBytes(
    _ target: StoreTarget, for user: String, access: StoreAccess,
    _ body: (AnyDataStore<[UInt8]>, ByteOutput) async throws -> Void
  ) async throws {
    let options = try ConfiguredStacks.options(of: target.url, createsIfMissing: false, access: access)
    try await use(target) {
      let bytes = try await Stores.bytes(in: target, for: user, options: options)
      return target.meter.map { AnyDataStore(bytes.metered(by: $0)) } ?? bytes
    } body: {
      try await body($0, $1)
    } close: {
      try await $0.close()
    }
  }

  /// Opens a queue, calls a closure, and closes the queue, also after an error.
  ///
  /// - Parameters:
  ///   - target: The queue. Its meter measures all later operations.
  ///   - createsIfMissing: A Boolean value that indicates whether a missing queue is created. Defaults to `false`.
  ///   - access: The access of the queue to its files. Defaults to ``StoreAccess/readWrite``.
  ///   - body: Receives the queue.
  ///   - print: Receives the result of `body` and the output, which is flushed afterward.
  /// - Throws: The errors of ``run(_:createsIfMissing:access:timeToLive:codecName:_:)``.
  static func runQueue<Result>(
    _ target: QueueTarget, createsIfMissing: Bool = false, access: StoreAccess = .readWrite,
    _ body: (any DurableQueue<JSONText>) async throws -> Result, print: (Result, ByteOutput) throws -> Void
  ) async throws {
    try await useQueue(target, createsIfMissing: createsIfMissing, access: access) { opened, output in
      try print(try await body(opened.queue), output)
    }
  }

  /// Opens a queue, calls a closure, and closes the queue, also after an error.
  ///
  /// - Parameters:
  ///   - target: The queue. Its meter measures all later operations.
  ///   - createsIfMissing: A Boolean value that indicates whether a missing queue is created. Defaults to `false`.
  ///   - access: The access of the queue to its files. Defaults to ``StoreAccess/readWrite``.
  ///   - body: Receives the queue, and the output, which is flushed afterward.
  /// - Returns: The result of `body`.
  /// - Throws: The errors of ``run(_:createsIfMissing:access:timeToLive:codecName:_:)``.
  static func useQueue<Result>(
    _ target: QueueTarget, createsIfMissing: Bool = false, access: StoreAccess = .readWrite,
    _ body: (OpenedQueue, ByteOutput) async throws -> Result
  ) async throws -> Result {
    let options = try ConfiguredStacks.options(
      of: target.store.url, createsIfMissing: createsIfMissing, access: access)
    return try await use(target.store) {
      try await OpenedQueue(target, options: options)
    } body: {
      try await body($0, $1)
    } close: {
      try await $0.queue.close()
    }
  }

  /// Calls a closure that can look at the statistics of a queue several times.
  ///
  /// The queue is open only during each look, so other programs can use it in between.
  ///
  /// - Parameters:
  ///   - target: The queue.
  ///   - access: The access of the queue to its files.
  ///   - body: Receives a closure that returns the statistics, and the output.
  /// - Throws: The errors of `body`; those of opening and closing from the closure that `body` receives.
  static func watchQueue(
    _ target: QueueTarget, access: StoreAccess,
    _ body: (_ look: () async throws -> QueueStatistics, ByteOutput) async throws -> Void
  ) async throws {
    defer { report(target.store) }
    let options = try ConfiguredStacks.options(of: target.store.url, createsIfMissing: false, access: access)
    try await body(
      {
        try await open(target.store) {
          try await OpenedQueue(target, options: options)
        } body: { opened, _ in
          try await opened.queue.queueStatistics()
        } close: {
          try await $0.queue.close()
        }
      }, ByteOutput())
  }

  /// Opens a database or an LMDB environment, calls a closure with the URLs of its stores, and closes it, also
  /// after an error.
  ///
  /// - Parameters:
  ///   - target: The database or environment, or a store in it.
  ///   - access: The access to its files.
  ///   - body: Receives the URLs in the order of the names, and the output, which is flushed afterward.
  /// - Throws: The errors of ``run(_:createsIfMissing:access:timeToLive:codecName:_:)``.
  static func runCollection(
    _ target: StoreTarget, access: StoreAccess, _ body: ([String], ByteOutput) throws -> Void
  ) async throws {
    try await use(target) {
      try await Stores.openCollection(target, access: access)
    } body: { opened, output in
      try body(try await opened.storeNames().map(opened.url), output)
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
    // At the end, also after an error.
    defer { report(target) }
    return try await self.open(target, open, body: body, close: close)
  }

  /// Writes the report of the meter, if there is one, to standard error.
  private static func report(_ target: StoreTarget) {
    if let meter = target.meter { Diagnostics.writeLine("\(meter.report())") }
  }

  /// Does what ``use(_:open:body:close:)`` does, without a report.
  private static func open<Opened, Result>(
    _ target: StoreTarget, _ open: () async throws -> Opened,
    body: (Opened, ByteOutput) async throws -> Result, close: (Opened) async throws -> Void
  ) async throws -> Result {
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
    // After a timeout, closing could wait for the same lock, which another program may never release. The end of the process
    // closes the store, and everything that was acknowledged is durable.
    if !errors.contains(where: { ($0 as? StoreError)?.code == .timedOut }) {
      do {
        try await close(opened)
      } catch {
        errors.append(error)
      }
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
