import Foundation
public import Larder

/// A durable queue in any store of bytes.
///
/// ```swift
/// let bytes = try await LMDBStore(path: folder + "/shop", codec: .raw)
/// let outbox = try await bytes.queue(of: Event.self, prefix: "outbox/", codec: .json())
/// try await outbox.enqueue(event, group: "customer:17")
/// try await outbox.withNext(lease: .seconds(30)) { delivery in
///   try await send(delivery.value)
/// }
/// ```
///
/// The queue has all keys of its base that begin with the prefix. The items, their order, leases, receipts and dead
/// letters are entries of the base, and each operation changes them in one atomic step. So a queue is as durable as its
/// base, shared between processes if the base is, and encrypted or measured if the base is. <doc:StoreQueueFormat>
/// describes the entries.
///
/// ## In one transaction with other entries
///
/// ``changes(enqueuing:after:priority:group:)`` returns the changes that enqueue an item, without reading anything. You
/// can make them together with changes of your own, in one batch or one transaction of the base:
///
/// ```swift
/// try await environment.write { transaction in
///   try transaction.setValue(order, forKey: "order:17", in: orders)
///   try transaction.apply(outbox.changes(enqueuing: OrderPlaced(order: 17)), to: bytes)
/// }
/// ```
///
/// ## Time
///
/// Leases and delays end by the wall clock, because several processes may share the queue. If hosts share it, their
/// clocks must agree within much less than the duration of a lease. If a clock was ahead, the leases, delays, remembered ids
/// and dead letters of that time are kept for their durations from the first opening, or the first call of an open queue,
/// that sees the right time; see "Wall clocks and deadlines" in the documentation of `Larder`.
///
/// ## Waiting
///
/// A consumer waits without polling if the base is an `ObservableStore`. Otherwise it notices what this object enqueues
/// immediately, and what others enqueue within ``StoreQueueConfiguration/pollInterval``.
public final class StoreQueue<Base: DataStore, Element: Sendable>: DurableQueue where Base.Value == [UInt8] {
  /// The items of the queue.
  public typealias Value = Element

  /// The store of bytes that keeps the queue.
  public let base: Base

  /// The prefix of the queue's keys in the base.
  public let prefix: StoreKey

  /// The rules.
  public let configuration: StoreQueueConfiguration

  /// The information of the base, with the maximum length of an item's key and the maximum size of an encoded item.
  public let information: StoreInformation

  let layout: QueueLayout
  let rules: QueueRules
  let coder: ValueCoder<Element>
  let retrying: RetryDelays
  let deadLetterObservers = DeadLetterObservers()
  let decodingRecord = DecodingRecord()

  /// The stored items, by their keys.
  let items: TypedView<Base, [UInt8]>

  let operations = RunningOperations()
  let waits = ConsumerWaits()
  private let now: @Sendable () -> Date
  let randomness: QueueRandomness
  private let generator: Locked<SequenceGenerator>

  /// The latest time that a call of this object has read, in microseconds since 1970.
  let latestTime = Locked<Int64>(.min)

  /// The ranges of timers in which those of a clock that was ahead are still to be corrected.
  let correction = Locked<[KeyRange]>([])

  /// The items that calls of this object are about to lease, so other calls try other items.
  let reserved = Locked<Set<UInt128>>([])

  /// The lock of operations that have to be planned again.
  let gate = WriteGate()

  /// The observation of the base, or `nil` if it is not observable.
  private let observation: StoreObservation?

  /// Opens a queue in a store of bytes.
  ///
  /// - Parameters:
  ///   - base: The store of bytes.
  ///   - prefix: The prefix of the queue's keys in the base, at least one byte. No other entry of the base may have a
  ///     key that begins with it.
  ///   - codec: The codec of the items.
  ///   - configuration: The rules of the queue.
  ///   - environment: The clock that measures the time that a consumer waits, the wall-clock time by which leases and
  ///     delays end, and the random numbers of items, leases and `QueuePolicy.retryPolicy`. Each object needs other random
  ///     numbers. Defaults to those of the system.
  /// - Throws: `StoreError` with `invalidArgument` if the prefix is empty or too long, or an option is out of range;
  ///   `unsupported` if the entries of the base expire; `versionMismatch` if a newer version or another codec wrote the queue;
  ///   the errors of the base.
  public init(
    _ base: Base, prefix: StoreKey, codec: some Codec<Element>,
    configuration: StoreQueueConfiguration = StoreQueueConfiguration(),
    environment: QueueEnvironment = QueueEnvironment()
  ) async throws {
    self.base = base
    self.prefix = prefix
    self.configuration = configuration
    now = environment.now ?? { Date.now }
    layout = QueueLayout(prefix: prefix)
    rules = configuration.rules
    var information = base.information
    information.maximumKeyLength = max(0, information.maximumKeyLength - layout.overhead)
    // A dead letter has the state and the key of its item in its value.
    information.maximumValueSize = information.maximumValueSize.map { max(0, $0 - 1024) }
    information.isQueue = true
    information.identity = StoreIdentity()
    information.noteEncryption(by: codec)
    self.information = information
    coder = ValueCoder(codec: codec, store: information.name, maximumSize: information.maximumValueSize ?? .max)
    retrying = RetryDelays(
      policy: configuration.policy.retryPolicy, clock: environment.clock, generator: environment.randomness)
    randomness = QueueRandomness(environment.randomness)
    generator = Locked(SequenceGenerator(origin: randomness.next()))
    items = TypedView(base, prefix: layout.itemPrefix, codec: .raw)
    let waits = waits
    let ranges = layout.deliveries
    let changes = KeyRange(from: layout.pauseKey, upTo: layout.timers.upperBound)
    observation = AnyDataStore(base).observation?.observe(changes) { event in
      switch event {
      case .changed(let changes):
        if changes.contains(where: { change in ranges.contains { change.range.overlaps($0) } }) { waits.signal() }
      case .closed: waits.close()
      }
    }
    try configuration.check(store: information.name)
    try await open()
  }

  private func open() async throws {
    let name = information.name
    guard !prefix.isEmpty, information.maximumKeyLength >= 64 else {
      throw StoreError(
        .invalidArgument, during: .open, store: name,
        message:
          "the prefix has \(prefix.count) bytes; use one of 1 to \(max(1, base.information.maximumKeyLength - 83))")
    }
    try base.information.checkKeepsEntries(for: "a queue")
    // The entries first, because another program may create the queue in between.
    let others = try await callingBase(.open) { try await base.keys(in: .prefix(prefix), limit: 1, order: .ascending) }
    try await information.repeating(.open) { _ in
      let stored = try await callingBase(.open) { try await base.value(forKey: layout.formatKey) }
      guard stored != nil || others.isEmpty else {
        throw StoreError(
          .invalidArgument, during: .open, store: name,
          message:
            "the store has other entries with the prefix of the queue; choose a prefix that no other key begins with")
      }
      let record = try record(replacing: stored, during: .open)
      guard record != stored, information.access == .readWrite else { return }
      var commit = ConditionalCommit<Never>()
      commit.require(stored, forKey: layout.formatKey)
      commit.setValue(record, forKey: layout.formatKey)
      return try await callingBase(.open) { [commit] in try await base.perform(commit).isPerformed } ? () : nil
    }
    for range in [layout.states, layout.dead] { try await advance(pastLastOf: range, .open) }
    if information.access == .readWrite { try await correctTimers(.open) }
  }

  /// Continues the sequence numbers after the last one in a range of keys, so new items come after these.
  ///
  /// - Returns: The last number, or `nil` if the range is empty.
  @discardableResult
  func advance(pastLastOf range: KeyRange, _ operation: StoreOperation) async throws -> UInt128? {
    let last = try await callingBase(operation) { try await base.keys(in: range, limit: 1, order: .descending) }
      .first.flatMap { layout.sequence(of: $0) }
    if let last { generator.withLock { $0.advance(past: last) } }
    return last
  }

  /// Returns the record that the queue must have: the version of the format, and the name of the codec.
  ///
  /// - Throws: `StoreError` with `versionMismatch`; `conflict`, as in `CodecRecord.name(replacing:during:store:)`.
  func record(replacing stored: [UInt8]?, during operation: StoreOperation) throws -> [UInt8] {
    var name = coder.codecRecord.name
    if let stored {
      let recordedName = try QueueLayout.codecName(of: stored, during: operation, store: information.name)
      name = try coder.codecRecord.name(replacing: recordedName, during: operation, store: information.name)
    }
    return [QueueLayout.formatVersion] + name.utf8
  }

  /// The clock that measures the time that a consumer waits.
  public var clock: any Clock<Duration> { retrying.clock }

  /// The wall-clock time, in microseconds since 1970, which is noted as one that a call has read.
  var microseconds: Int64 {
    let time = now().microsecondsSince1970
    latestTime.withLock { $0 = max($0, time) }
    return time
  }

  /// Returns a new sequence number.
  func nextSequence() -> UInt128 {
    let now = microseconds
    return generator.withLock { $0.next(at: now) }
  }

  /// Runs an operation that ``close()`` waits for.
  func running<Result>(_ operation: StoreOperation, _ body: () async throws -> Result) async throws -> Result {
    try await operations.run(operation, of: information, body)
  }

  // MARK: Reading

  /// Returns the item of a key; see `DataStore`.
  public func value(forKey key: StoreKey) async throws -> Element? {
    try information.check(key, for: .value)
    return try await running(.value) {
      try await items.value(forKey: key).map { try decode($0, key, during: .value) }
    }
  }

  /// Returns the items of several keys in one snapshot; see `DataStore`.
  public func values(forKeys keys: [StoreKey]) async throws -> [Element?] {
    try information.check(keys, for: .values)
    return try await running(.values) {
      let stored = try await items.values(forKeys: keys)
      return try await BulkWork.decode(stored, forKeys: keys) { [self] in try decode($0, $1, during: .values) }
    }
  }

  /// Returns the first entries of a range of keys in one snapshot; see `DataStore`.
  public func entries(in range: KeyRange, limit: Int, order: ScanOrder) async throws -> [StoreEntry<Element>] {
    try await running(.entries) {
      let stored = try await items.entries(in: range, limit: limit, order: order)
      return try await BulkWork.run(atMost: stored.count) { [self] allowance in
        try stored.map { entry in
          try allowance.take(entry.value.count)
          return StoreEntry(key: entry.key, value: try decode(entry.value, entry.key, during: .entries))
        }
      }
    }
  }

  /// Returns the first keys of a range in one snapshot; see `DataStore`.
  public func keys(in range: KeyRange, limit: Int, order: ScanOrder) async throws -> [StoreKey] {
    try await items.keys(in: range, limit: limit, order: order)
  }

  /// Returns the number of items in a range of keys; see `DataStore`.
  public func count(in range: KeyRange) async throws -> Int {
    try await items.count(in: range)
  }

  func decode(_ bytes: [UInt8], _ key: StoreKey, during operation: StoreOperation) throws(StoreError) -> Element {
    guard let item = StoredItem(bytes) else { throw damagedItem(key, operation) }
    return try decode(item.payload, key, during: operation)
  }

  func decode(
    _ payload: ArraySlice<UInt8>, _ key: StoreKey, during operation: StoreOperation
  ) throws(StoreError) -> Element {
    // The standard library's method does not pass on the type of the error.
    try payload.withUnsafeBytes { bytes in
      Result { () throws(StoreError) in try coder.value(of: bytes, forKey: key, during: operation) }
    }.get()
  }

  func damagedItem(_ key: StoreKey, _ operation: StoreOperation) -> StoreError {
    StoreError(
      .corrupted, during: operation, store: information.name, key: key,
      message: "the item is damaged: its value or its state is missing or too short")
  }

  /// A Boolean value that indicates whether waiting consumers are woken by the base.
  var isObserved: Bool { observation != nil }

  /// A Boolean value that indicates whether the base reports the items that any program enqueues, and does so now, so a
  /// consumer need not look for them.
  var hearsOfAllCommits: Bool {
    guard let observation, base.information.reportsAllCommits else { return false }
    return observation.lag <= Self.longestLag
  }

  /// The lag of the reports of the base, above which consumers look by themselves, as without reports.
  private static var longestLag: Duration { .seconds(2) }

  // MARK: Lifecycle

  /// Ensures that every earlier write is durable; see `DataStore`.
  public func synchronize() async throws {
    try await items.synchronize()
  }

  /// Waits for running operations, and closes the base; see `DataStore`.
  ///
  /// Calls that wait for an item fail with `closed`. Leases keep running.
  public func close() async throws {
    waits.close()
    await operations.close()
    try await items.close()
  }
}

extension StoreQueue: PrefixedStoreDecorator {
  /// The prefix of the keys of items.
  public var keyPrefix: StoreKey { layout.itemPrefix }
}

/// The queue reports the changes of its items, but not those of their states.
extension StoreQueue: ObservableStore where Base: ObservableStore {}

extension StoreQueue: FlushableStore where Base: FlushableStore {}

extension DataStore where Value == [UInt8] {
  /// Returns the name of the codec of the items of a queue in this store of bytes.
  ///
  /// - Parameter prefix: The prefix of the queue's keys in this store.
  /// - Returns: The name, or `nil` if there is no queue with the prefix.
  /// - Throws: `StoreError` with `versionMismatch` if another version of Larder wrote the queue; the errors of the store.
  public func codecName(ofQueue prefix: StoreKey) async throws -> String? {
    let record = try await value(forKey: QueueLayout(prefix: prefix).formatKey)
    return try record.map { try QueueLayout.codecName(of: $0, during: .open, store: information.name) }
  }

  /// Opens a queue in this store of bytes; see ``StoreQueue``.
  ///
  /// - Parameters:
  ///   - type: The type of the items.
  ///   - prefix: The prefix of the queue's keys in this store, at least one byte.
  ///   - codec: The codec of the items.
  ///   - configuration: The rules of the queue.
  /// - Throws: The errors of ``StoreQueue/init(_:prefix:codec:configuration:environment:)``.
  public func queue<Element: Sendable>(
    of type: Element.Type, prefix: StoreKey, codec: some Codec<Element>,
    configuration: StoreQueueConfiguration = StoreQueueConfiguration()
  ) async throws -> StoreQueue<Self, Element> {
    try await StoreQueue(self, prefix: prefix, codec: codec, configuration: configuration)
  }
}

extension DataStore {
  /// Names the missing step, if this is not a store of bytes.
  @available(
    *, unavailable,
    message: """
      a queue needs a store of bytes: open this one with the codec .raw, and give the codec of the items to .queue(…)
      """
  )
  public func queue<Element: Sendable>(
    of type: Element.Type, prefix: StoreKey, codec: some Codec<Element>,
    configuration: StoreQueueConfiguration = StoreQueueConfiguration()
  ) async throws -> Self {
    self
  }
}
