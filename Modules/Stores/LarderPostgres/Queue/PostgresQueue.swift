#if Postgres
import Foundation
public import Larder
import LarderCBOR

/// A durable queue in a PostgreSQL database that many hosts share.
///
/// ```swift
/// let database = try await PostgresDatabase("postgresql://db.example/shop")
/// let events = try await PostgresQueue<Event>(in: database, name: "events")
/// try await events.enqueue(event, group: "customer:17")
/// try await events.withNext(lease: .seconds(30)) { delivery in
///   try await send(delivery.value)
/// }
/// ```
///
/// The queue is one table. Consumers on all hosts compete for its items, and pass over those that others are taking. Most
/// calls are one transaction in one round trip. <doc:PostgresQueueFormat> describes the table.
///
/// ## In one transaction with other data
///
/// ``PostgresTransaction/enqueue(_:in:)`` enqueues items in a transaction of the database, together with the data that
/// they report. ``PostgresTransaction/acknowledge(_:in:)-(DeliveryReceipt,_)`` acknowledges an item together with the
/// data that its consumer writes, so the item takes effect exactly once.
///
/// ## Time
///
/// Leases and delays end by the clock of the server, so the clocks of the hosts don't matter. If the server's clock is set
/// back, a lease, a delay, the retention of a dead letter and the memory of an id still end after their durations, as soon as
/// an object of the queue notices.
///
/// ## Waiting
///
/// A consumer waits for a notification of the database, for the end of the next delay or lease, and for
/// ``PostgresQueueConfiguration/pollInterval`` at most. All consumers that wait in one object look together, with one
/// statement that only reads.
public final class PostgresQueue<Element: Sendable>: DurableQueue {
  /// The items of the queue.
  public typealias Value = Element

  /// The name, limits and durability of the queue.
  public var information: StoreInformation { handle.information }

  /// The rules.
  public let configuration: PostgresQueueConfiguration

  let handle: PostgresHandle
  let statements: QueueStatements
  let coder: ValueCoder<Element>
  let retrying: RetryDelays
  let deadLetterObservers = DeadLetterObservers()
  let decodingRecord = DecodingRecord()
  let waits = ConsumerWaits()
  let looks: LookSchedule

  /// The name of the notifications of the queue.
  let channel: String

  /// The database, if the queue closes it.
  private let ownDatabase: PostgresDatabase?

  private let keys = Locked(KeyGenerator())

  /// The codec, which writes compare with the record.
  let recordedCodec: RecordedCodec

  /// The observation of the queue's notifications.
  private let listening: StoreObservation

  /// The latest time of the server that a call has seen, in microseconds since 1970.
  private let latestTime = Locked<Int64>(.min)

  /// Opens a queue in a database.
  ///
  /// - Parameters:
  ///   - database: The database that holds the queue.
  ///   - name: The name of the queue. It is that of its table: 1 to 63 bytes of UTF-8 without NUL. Names that begin
  ///     with `larder_` are refused.
  ///   - codec: The codec of the items.
  ///   - configuration: The rules of the queue.
  ///   - createsIfMissing: A Boolean value that indicates whether to create the queue if it is missing. Defaults to
  ///     `true`.
  ///   - environment: The clock that measures the time that a consumer waits, the time by which leases and delays end, and
  ///     the random numbers of `QueuePolicy.retryPolicy`. Defaults to the time of the server, and to the
  ///     clock and the random numbers of the system.
  /// - Throws: `StoreError`: `invalidArgument` if the name or a rule is invalid; `notFound`; `versionMismatch` if the queue
  ///   was written by a newer version or with a different codec; `unsupported` if the schema has something else of that
  ///   name; `notPermitted`; `closed`; `timedOut`; `ioFailed`.
  public convenience init(
    in database: PostgresDatabase, name: String, codec: some Codec<Element>,
    configuration: PostgresQueueConfiguration = PostgresQueueConfiguration(), createsIfMissing: Bool = true,
    environment: QueueEnvironment = QueueEnvironment()
  ) async throws {
    try await self.init(
      in: database, isOwned: false, name: name, codec: codec, configuration: configuration,
      createsIfMissing: createsIfMissing, environment: environment)
  }

  /// Opens a queue, and closes its database if it owns it.
  init(
    in database: PostgresDatabase, isOwned: Bool, name: String, codec: some Codec<Element>,
    configuration: PostgresQueueConfiguration = PostgresQueueConfiguration(), createsIfMissing: Bool = true,
    environment: QueueEnvironment = QueueEnvironment()
  ) async throws {
    ownDatabase = isOwned ? database : nil
    let root = database.handle
    var information = root.information
    information.name += "#\(name)"
    information.noteEncryption(by: codec)
    let handle = PostgresHandle(root.pool, dependingOn: root, information: information)
    self.handle = handle
    self.configuration = configuration
    coder = ValueCoder(codec: codec, store: handle.name, maximumSize: information.maximumValueSize ?? .max)
    retrying = RetryDelays(
      policy: configuration.policy.retryPolicy, clock: environment.clock, generator: environment.randomness)
    looks = LookSchedule(every: configuration.pollInterval, by: environment.clock)
    try configuration.check(store: handle.name)
    if let problem = StoreCatalog.problem(withName: name) {
      throw StoreError(.invalidArgument, during: .open, store: handle.name, message: problem)
    }
    let catalog = QueueCatalog(handle, queue: name)
    let found = try await handle.running(.open) { [coder] in
      try await catalog.open(codec, coder.codecRecord, createsIfMissing: createsIfMissing)
    }
    recordedCodec = found.recordedCodec
    channel = found.channel
    statements = QueueStatements(catalog.table, valueType: found.valueType, sequence: found.sequence) {
      environment.now.map { $0().microsecondsSince1970 }
    }
    listening = handle.listener.observe(channel) { [waits] in waits.signal() }
    if information.access == .readWrite { try await boundByDuration(during: .open) }
  }

  /// The clock that measures the time that a consumer waits.
  public var clock: any Clock<Duration> { retrying.clock }

  // MARK: Reading

  /// Returns the item of a key; see `DataStore`.
  public func value(forKey key: StoreKey) async throws -> Element? {
    try information.check(key, for: .value)
    return try await handle.running(.value) {
      let rows = try await handle.read(statements.payload(forKey: key), for: .value)
      return rows.rowCount == 0 ? nil : try value(of: rows, 0, 1, forKey: key, during: .value)
    }
  }

  /// Returns the items of several keys in one snapshot; see `DataStore`.
  public func values(forKeys keys: [StoreKey]) async throws -> [Element?] {
    try information.check(keys, for: .values)
    return try await handle.running(.values) {
      guard !keys.isEmpty else { return [] }
      let rows = try await handle.read(statements.payloads(forKeys: keys), for: .values)
      return try await values(of: rows, forKeys: keys, during: .values)
    }
  }

  /// Returns the first entries of a range of keys in one snapshot; see `DataStore`.
  public func entries(in range: KeyRange, limit: Int, order: ScanOrder) async throws -> [StoreEntry<Element>] {
    try information.check(limit: limit, for: .entries)
    return try await handle.running(.entries) {
      let scan = statements.scan("key, payload", in: range, limit: limit, order: order)
      return try await entries(of: handle.read(scan, for: .entries), during: .entries)
    }
  }

  /// Returns the first keys of a range in one snapshot; see `DataStore`.
  public func keys(in range: KeyRange, limit: Int, order: ScanOrder) async throws -> [StoreKey] {
    try information.check(limit: limit, for: .keys)
    let rows = try await handle.running(.keys) {
      try await handle.read(statements.scan("key", in: range, limit: limit, order: order), for: .keys)
    }
    return rows.keys
  }

  /// Returns the number of items in a range of keys; see `DataStore`.
  ///
  /// PostgreSQL counts the rows one by one.
  public func count(in range: KeyRange) async throws -> Int {
    let rows = try await handle.running(.count) { try await handle.read(statements.count(in: range), for: .count) }
    return Int(rows.integer(0, 0) ?? 0)
  }

  func value(
    of rows: QueryResult, _ row: Int, _ column: Int, forKey key: StoreKey, during operation: StoreOperation
  ) throws(StoreError) -> Element {
    // The standard library's method does not pass on the type of the error.
    try rows.withBytes(row, column) { bytes in
      Result { () throws(StoreError) in
        try coder.value(of: bytes ?? UnsafeRawBufferPointer(start: nil, count: 0), forKey: key, during: operation)
      }
    }.get()
  }

  func values(
    of rows: QueryResult, forKeys keys: [StoreKey], during operation: StoreOperation
  ) async throws -> [Element?] {
    try await rows.values(forKeys: keys) { [self] in try value(of: rows, $0, 1, forKey: $1, during: operation) }
  }

  func entries(of rows: QueryResult, during operation: StoreOperation) async throws -> [StoreEntry<Element>] {
    try await rows.entries { [self] in try value(of: rows, $0, 1, forKey: $1, during: operation) }
  }

  // MARK: Writing

  /// Runs statements as one transaction or in one of the caller's, together with the record of the codec if it is outdated.
  ///
  /// - Parameters:
  ///   - statements: The statements.
  ///   - lock: The lock of the queue. Defaults to `shared`.
  ///   - comparesCodec: A Boolean value that indicates whether to refuse the write if another program has recorded
  ///     another codec. Defaults to `false`, for writes that replace no item. Adding an older item to newer ones does
  ///     no harm.
  ///   - format: The format of the items that are encoded already. Defaults to `nil`.
  ///   - transaction: A transaction of the caller's, or `nil` for one of their own. Defaults to `nil`.
  ///   - operation: The operation, for errors.
  /// - Returns: The results, one for each statement.
  func write(
    _ statements: [Statement], locking lock: TableLock = .shared, comparesCodec: Bool = false,
    encodedIn format: CodecRecord.Format? = nil, in transaction: PostgresTransaction? = nil,
    for operation: StoreOperation
  ) async throws -> [QueryResult] {
    let before = try recordedCodec.beginning(lock, compares: comparesCodec, encodedIn: format, during: operation)
    return try await recordedCodec.comparing(for: operation) {
      let results: [QueryResult]
      if let transaction {
        results = try await transaction.run(before + statements, of: handle, for: operation)
        transaction.afterCommit { [recordedCodec] in recordedCodec.noteCommit() }
      } else {
        // In a serializable transaction, consumers that look for the first items at the same time would conflict again and
        // again. Those that change the whole queue need it, where they cannot lock the table.
        let isSerializable = handle.pool.configuration.isolation == .serializable
        results = try await handle.write(
          before + statements, isReadCommitted: isSerializable && lock == .shared, for: operation)
        recordedCodec.noteCommit()
      }
      return Array(results.dropFirst(before.count))
    }
  }

  /// Wakes a consumer of this object and, soon, those of others.
  func noteChange() {
    waits.signal()
    handle.listener.notify(channel)
  }

  /// Wakes consumers after a commit: that of a transaction of the caller's, or the one that has just returned.
  func noteChange(in transaction: PostgresTransaction?) {
    guard let transaction else { return noteChange() }
    transaction.afterCommit { [self] in noteChange() }
  }

  func makeKey() -> StoreKey { keys.withLock { $0.next() } }

  /// Corrects what began later than now if the server's clock was set back, and notes its time.
  func boundByDuration(during operation: StoreOperation, in transaction: PostgresTransaction? = nil) async throws {
    let shortest = min(
      configuration.policy.duplicateWindow,
      configuration.policy.deadLetterRetention ?? configuration.policy.duplicateWindow)
    let list =
      recordedCodec.locks(.shared) + [statements.boundByDuration(shortest: shortest.wholeMicroseconds)]
    guard let transaction else {
      let rows = try await handle.write(list, for: operation)[list.count - 1]
      return latestTime.withLock { $0 = rows.integer(0, 0) ?? .min }
    }
    let rows = try await transaction.run(list, of: handle, for: operation)[list.count - 1]
    transaction.afterCommit { [self] in latestTime.withLock { $0 = rows.integer(0, 0) ?? .min } }
  }

  /// Notes the time of the server, and returns whether its clock was set back.
  func noteTime(_ time: Int64) -> Bool {
    latestTime.withLock { latest in
      // Calls that run at the same time end in any order.
      if time < latest.addingSaturating(-10_000_000) { return true }
      latest = max(latest, time)
      return false
    }
  }

  // MARK: Lifecycle

  /// Waits until all previous writes are durable; see `DataStore`.
  ///
  /// With `Durability.File.synced` every write was durable when it returned. Otherwise a small transaction waits for the
  /// disk of the server.
  public func synchronize() async throws {
    try await handle.synchronize()
  }

  /// Waits for running operations, then closes the queue, and also the database if a registry opened it for the queue.
  ///
  /// Calls that wait for an item fail with `closed`. Leases keep running.
  public func close() async throws {
    waits.close()
    listening.cancel()
    await handle.close()
    await ownDatabase?.close()
  }
}

extension PostgresQueue where Element: Codable {
  /// Opens a queue of `Codable` items in a database, with `CBORCodec`.
  ///
  /// - Parameters:
  ///   - database: The database that holds the queue.
  ///   - name: The name of the queue.
  ///   - configuration: The rules of the queue.
  ///   - createsIfMissing: A Boolean value that indicates whether to create the queue if it is missing. Defaults to
  ///     `true`.
  /// - Throws: The same errors as ``init(in:name:codec:configuration:createsIfMissing:environment:)``.
  public convenience init(
    in database: PostgresDatabase, name: String,
    configuration: PostgresQueueConfiguration = PostgresQueueConfiguration(), createsIfMissing: Bool = true
  ) async throws {
    try await self.init(
      in: database, name: name, codec: CBORCodec(), configuration: configuration, createsIfMissing: createsIfMissing)
  }
}

/// A generator of keys that sort by the time of arrival: the time in microseconds since 1970, which increases with each
/// key, and a number that is random for each generator.
private struct KeyGenerator {
  private var last: UInt64 = 0
  private let origin = UInt64.random(in: .min ... .max)

  mutating func next() -> StoreKey {
    last = max(last + 1, UInt64(max(0, Date.now.microsecondsSince1970)))
    let bytes = withUnsafeBytes(of: last.bigEndian) { Array($0) } + withUnsafeBytes(of: origin.bigEndian) { Array($0) }
    return StoreKey(bytes: Hexadecimal.digits(of: bytes))
  }
}
#endif
