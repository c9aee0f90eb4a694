import LarderCBOR
public import Larder
public import LarderFiles
import Synchronization

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// A durable queue: items in the order of arrival, leased to consumers until these acknowledge them; and a store.
///
/// ```swift
/// let queue = try await QueueStore<Event>(
///   path: "outbox", configuration: QueueConfiguration(maximumDeliveries: nil))
/// try await queue.enqueue(event)
/// try await queue.withNext(lease: .seconds(30)) { delivery in
///   try await send(delivery.value)
/// }
/// ```
///
/// An item is delivered at least once and, once it is acknowledged, never again, whatever dies meanwhile. It lies in one of
/// the files of a folder, an append-only log of frames with checksums; in memory is only where. `Docs/QueueStore.md` has
/// the format in full.
///
/// ## Deliveries
///
/// ``receive(max:lease:)`` hands out the items that came first of those that wait, each with a ``DeliveryReceipt``. Until
/// the lease ends no other consumer gets them. ``acknowledge(_:)-(DeliveryReceipt)`` removes an item permanently;
/// ``release(_:after:countsAsAttempt:)-(DeliveryReceipt,_,_)`` gives it back, at its old place in the order;
/// ``extend(_:lease:)-(DeliveryReceipt,_)`` keeps it longer. When a lease ends the item waits again, and the receipt is stale:
/// it is refused with ``StoreError/Code/staleReceipt``. Leases live on when the queue is closed, so that one process may
/// receive and another acknowledge; however the clock on the wall is set meanwhile, none lasts longer than was said.
///
/// An item that was delivered ``QueueConfiguration/maximumDeliveries`` times becomes a dead letter, also where it could not
/// be decoded: it does not keep the others from being delivered.
///
/// ## The queue as a store
///
/// The key of an item is the id that it was enqueued with, or a generated one. Reads, scans and counts see items that
/// wait, are delayed or are leased, in the order of their keys; not dead letters. Setting a key that is there replaces the
/// item in its place, and a new key enqueues; removing a key withdraws the item. Either makes the receipt of a leased item
/// stale; the new value waits.
///
/// ## Durability
///
/// With ``Durability/synced`` every change is on the disk when its call returns, and calls that come at the same time
/// share one synchronization. Receiving is a change too: an item is not handed out before its lease is durable.
///
/// ## Sharing
///
/// One object in one process has the folder open, guarded by a lock in it.
public final class QueueStore<Element: Sendable>: DataStore {
  /// The items of the queue.
  public typealias Value = Element

  /// The queue's name, durability, access and maintenance.
  public let information: StoreInformation

  /// Damage and torn records that opening the queue found in its files.
  public let recovery: RecoveryReport

  let engine: QueueEngine
  let coder: QueueCoder<Element>
  let retrying: Retrying
  let decodingRecord = DecodingRecord()

  /// Opens a queue.
  ///
  /// - Parameters:
  ///   - path: The folder. The one above it must exist. It is made with permissions 0700, its files with 0600.
  ///   - codec: Turns items into bytes and back.
  ///   - configuration: The rules of the queue; they may be others each time.
  ///   - durability: What happens before a change returns; defaults to ``Durability/synced``.
  ///   - access: Whether the queue may write; defaults to ``StoreAccess/readWrite``.
  ///   - leases: What becomes of leases that go on; defaults to ``LeasesOnOpening/kept``.
  ///   - createsIfMissing: Whether a missing queue is created; defaults to `true`.
  ///   - fileSystem: The file system that holds the files; defaults to the real one.
  ///   - clock: The monotonic clock that measures leases and delays in this process, and sleeps until the next of them
  ///     ends; defaults to a `ContinuousClock`.
  ///   - now: Returns the wall-clock time, which stands in the files; defaults to the system's.
  ///   - randomness: Gives the random part of ``QueueConfiguration/retryPolicy``; defaults to the system's.
  ///   - onDeath: Is called for each item that becomes a dead letter, once that is written, on a thread of the queue or that
  ///     of a caller: it must not wait. Defaults to `nil`.
  /// - Throws: ``StoreError``: `locked` if another has it open; `corrupted` if the header of one of its files is
  ///   damaged; `unrecognizedFormat` if the folder holds something else; `versionMismatch` if it was written by a
  ///   newer version or with another codec; `notFound`; `unsupported` if a file has several hard links;
  ///   `invalidArgument` if the configuration is invalid; `notPermitted`; `full`; `ioFailed`. Nothing is lost then.
  public convenience init(
    path: String, codec: some Codec<Element>, configuration: QueueConfiguration = QueueConfiguration(),
    durability: Durability = .synced, access: StoreAccess = .readWrite, leases: LeasesOnOpening = .kept,
    createsIfMissing: Bool = true, fileSystem: some FileSystem = POSIXFileSystem(),
    clock: any Clock<Duration> = ContinuousClock(),
    now: @escaping @Sendable () -> Date = { Date.now },
    randomness: any RandomNumberGenerator & Sendable = SystemRandomNumberGenerator(),
    onDeath: (@Sendable (QueueDeath) -> Void)? = nil
  ) async throws {
    try await self.init(
      path: path, configuration: configuration, durability: durability, access: access, leases: leases,
      createsIfMissing: createsIfMissing, fileSystem: fileSystem, clock: clock, now: now, randomness: randomness,
      onDeath: onDeath
    ) { _ in codec }
  }

  /// Opens a queue of `Codable` items, as CBOR.
  ///
  /// - Parameters:
  ///   - path: The folder; see ``init(path:codec:configuration:durability:access:leases:createsIfMissing:fileSystem:clock:now:randomness:onDeath:)``.
  ///   - configuration: The rules of the queue; they may be others each time.
  ///   - durability: What happens before a change returns; defaults to ``Durability/synced``.
  ///   - access: Whether the queue may write; defaults to ``StoreAccess/readWrite``.
  ///   - leases: What becomes of leases that go on; defaults to ``LeasesOnOpening/kept``.
  ///   - createsIfMissing: Whether a missing queue is created; defaults to `true`.
  ///   - onDeath: Is called for each item that becomes a dead letter; defaults to `nil`.
  /// - Throws: As ``init(path:codec:configuration:durability:access:leases:createsIfMissing:fileSystem:clock:now:randomness:onDeath:)``.
  public convenience init(
    path: String, configuration: QueueConfiguration = QueueConfiguration(), durability: Durability = .synced,
    access: StoreAccess = .readWrite, leases: LeasesOnOpening = .kept, createsIfMissing: Bool = true,
    onDeath: (@Sendable (QueueDeath) -> Void)? = nil
  ) async throws where Element: Codable {
    try await self.init(
      path: path, codec: .cbor(), configuration: configuration, durability: durability, access: access, leases: leases,
      createsIfMissing: createsIfMissing, onDeath: onDeath)
  }

  /// Opens a queue with a codec that is chosen by the name of the one that it was written with.
  init(
    path: String, configuration: QueueConfiguration, durability: Durability, access: StoreAccess,
    leases: LeasesOnOpening, createsIfMissing: Bool, fileSystem: some FileSystem = POSIXFileSystem(),
    clock: any Clock<Duration> = ContinuousClock(), now: @escaping @Sendable () -> Date = { Date.now },
    randomness: any RandomNumberGenerator & Sendable = SystemRandomNumberGenerator(),
    onDeath: (@Sendable (QueueDeath) -> Void)? = nil, newCodecName: String = "cbor",
    choosing codec: @escaping @Sendable (_ name: String) throws -> any Codec<Element>
  ) async throws {
    let name = FilePaths.split(path).name
    try configuration.check(store: name)
    let folder = QueueFolder(
      name: name, path: path, durability: durability, access: access,
      createsIfMissing: createsIfMissing && access == .readWrite, segmentSize: Int64(configuration.segmentSize),
      fileSystem: fileSystem)
    let time = QueueTime(clock: clock) { now().microseconds }
    let executor = DispatchQueueExecutor(label: "Larder.QueueStore.opening")
    let (opened, openedCodec) = try await executor.run {
      try QueueRecovery.open(
        folder, rules: QueueRules(configuration), leases: leases, at: time.steady(), newCodecName: newCodecName,
        choosing: codec)
    }
    var information = StoreInformation(
      name: name, acknowledgement: Acknowledgement(durability), sharing: .exclusive, access: access,
      maximumValueSize: QueueFrame.maximumBodyLength - 1024)
    engine = QueueEngine(
      opened, information: information, policy: configuration.capacity.policy, clock: clock, time: time,
      onDeath: onDeath)
    retrying = Retrying(policy: configuration.retryPolicy, clock: clock, generator: randomness)
    coder = QueueCoder(codec: openedCodec, store: name)
    recovery = opened.report
    information.maintenance = QueueStoreMaintenance(engine: engine, coder: coder, recovery: opened.report)
    self.information = information
  }

  /// Does something for which closing waits.
  func running<Result>(_ operation: StoreOperation, _ body: () async throws -> Result) async throws -> Result {
    guard engine.running.begin() else { throw information.closedError(for: operation) }
    defer { engine.running.end() }
    return try await body()
  }

  // MARK: Reading

  /// Reads the item of a key.
  ///
  /// - Throws: ``StoreError``: `invalidKey`; `corrupted` if the item cannot be decoded; `closed`; `ioFailed`.
  @concurrent
  public func value(forKey key: StoreKey) async throws -> Element? {
    try information.check(key, for: .value)
    return try await read(.value) { ledger in ledger.item(forKey: key).map { [$0] } ?? [] }.first?.value
  }

  /// Reads the items of several keys as they are at one moment.
  ///
  /// - Throws: ``StoreError``: `invalidKey`; `corrupted` if an item cannot be decoded; `closed`; `ioFailed`.
  @concurrent
  public func values(forKeys keys: [StoreKey]) async throws -> [Element?] {
    try information.check(keys, for: .values)
    // In the order of the keys, so that the first one that is damaged is reported.
    let entries = try await running(.values) {
      let found = try await payloads(.values) { ledger in keys.compactMap { ledger.item(forKey: $0) } }
      return try found.map { item, payload in
        (item.key, try coder.value(of: payload, forKey: item.key, during: .values))
      }
    }
    let values = Dictionary(entries, uniquingKeysWith: { first, _ in first })
    return keys.map { values[$0] }
  }

  /// Reads the first items of a range of keys as they are at one moment.
  ///
  /// - Throws: ``StoreError``: `invalidArgument` if the limit is negative; `corrupted` if an item cannot be decoded;
  ///   `closed`; `ioFailed`.
  @concurrent
  public func entries(in range: KeyRange, limit: Int, order: ScanOrder) async throws -> [StoreEntry<Element>] {
    try information.check(limit: limit, for: .entries)
    return try await read(.entries) { $0.items(in: range, limit: limit, order: order) }
  }

  /// Reads the first keys of a range as they are at one moment.
  ///
  /// - Throws: ``StoreError``: `invalidArgument` if the limit is negative; `closed`.
  public func keys(in range: KeyRange, limit: Int, order: ScanOrder) async throws -> [StoreKey] {
    try information.check(limit: limit, for: .keys)
    return try await look(.keys) { $0.ledger.keys(in: range, limit: limit, order: order) }
  }

  /// Counts the items of a range of keys.
  ///
  /// - Throws: ``StoreError``: `closed`.
  public func count(in range: KeyRange) async throws -> Int {
    try await look(.count) { $0.ledger.count(in: range) }
  }

  /// Looks at what is in memory.
  func look<Result: Sendable>(
    _ operation: StoreOperation, _ body: @escaping @Sendable (inout QueueCore) -> Result
  ) async throws -> Result {
    try await running(operation) {
      try await engine.perform(operation, .looks, ignoresCancellation: true) { body(&$0) }
    }
  }

  /// Reads and decodes items.
  func read(
    _ operation: StoreOperation, _ items: @escaping @Sendable (inout QueueLedger) -> [QueueItem]
  ) async throws -> [StoreEntry<Element>] {
    try await running(operation) {
      try await payloads(operation, items).map { item, payload in
        StoreEntry(key: item.key, value: try coder.value(of: payload, forKey: item.key, during: operation))
      }
    }
  }

  /// Reads the payloads of items, as they are at one moment.
  func payloads(
    _ operation: StoreOperation, _ items: @escaping @Sendable (inout QueueLedger) -> [QueueItem]
  ) async throws -> [(found: QueueItem, payload: ArraySlice<UInt8>?)] {
    try await engine.payloads(operation, of: { $0 }) { items(&$0.ledger) }
  }

  // MARK: Writing

  /// Makes several changes, all or none of them; see ``DataStore/apply(_:)``.
  ///
  /// Where there is no room it does what ``QueueCapacity/policy`` says.
  public func apply(_ changes: ChangeBatch<Element>) async throws {
    try information.check(changes)
    try await running(.apply) {
      let encoded = try await BulkWork.run(atMost: changes.count) { [coder] allowance in
        try changes.changes.map { change in
          try change.mapValue { key, value in
            try allowance.encode { try coder.payload(of: value, forKey: key, during: .apply) }
          }
        }
      }
      _ = try await engine.perform(.apply, .writes, needsRoom: encoded.contains(where: \.needsRoom)) { core in
        for change in encoded {
          switch change {
          case .set(let key, let payload): try core.setValue(payload, forKey: key)
          case .remove(let key): try core.change { $0.removeValue(forKey: key, into: &$1) }
          case .removeAll(let range): try core.change { $0.removeAll(in: range, into: &$1) }
          }
        }
        return true
      }
    }
  }

  /// Reads, changes and writes back the items of some keys as one step; see ``DataStore/update(_:_:)``.
  ///
  /// `body` runs on the queue's own thread, while all other calls wait. An item that it leaves as it was is not written,
  /// and keeps its lease. Where there is no room and the policy is to wait, it runs again when there is.
  public func update<Result: Sendable>(
    _ keys: [StoreKey],
    _ body: @escaping @Sendable (inout [Element?]) throws -> Result
  ) async throws -> Result {
    try information.check(updateOf: keys)
    let (coder, information) = (coder, information)
    return try await running(.update) {
      try await engine.perform(.update, .blocks, needsRoom: true) { core in
        let items = keys.map { core.ledger.item(forKey: $0) }
        let payloads = try core.payloads(of: items.compactMap { $0 })
        var rest = payloads[...]
        var before: [ArraySlice<UInt8>?] = []
        var slots: [Element?] = []
        for item in items {
          guard let item else {
            before.append(nil)
            slots.append(nil)
            continue
          }
          let payload = rest.popFirst() ?? nil
          before.append(payload)
          slots.append(try coder.value(of: payload, forKey: item.key, during: .update))
        }
        let result = try body(&slots)
        try information.check(slotCount: slots.count, forUpdateOf: keys)
        let after = try zip(keys, slots).map { key, value in
          try value.map { try coder.payload(of: $0, forKey: key, during: .update) }
        }
        for (index, key) in keys.enumerated() {
          guard let payload = after[index] else {
            try core.change { $0.removeValue(forKey: key, into: &$1) }
            continue
          }
          if before[index]?.elementsEqual(payload) != true { try core.setValue(payload, forKey: key) }
        }
        return result
      }
    }
  }

  /// Makes everything written before durable against power loss.
  ///
  /// - Throws: ``StoreError``: `closed`; `ioFailed`; `full`.
  public func synchronize() async throws {
    let time = engine.time
    try await running(.synchronize) {
      _ = try await engine.perform(.synchronize, .alone, ignoresCancellation: true) { core in
        try core.synchronize(time)
        return true
      }
    }
  }

  /// Waits for running operations, marks the log as closed, and lets others open it.
  ///
  /// Calls that wait, for an item or for room, end with `closed`. Leases go on.
  ///
  /// - Throws: ``StoreError``: `ioFailed`; `full`. The queue is closed all the same.
  public func close() async throws {
    try await engine.close()
  }
}

extension Change {
  /// Whether it may make a store larger.
  fileprivate var needsRoom: Bool {
    if case .set = self { true } else { false }
  }
}

extension QueueStore: CustomStringConvertible {
  /// The store's kind and name.
  public var description: String { "QueueStore(\(information.name))" }
}

/// How long items are kept back that come back, and what sleeps meanwhile.
final class Retrying: Sendable {
  private let policy: RetryPolicy
  let clock: any Clock<Duration>
  private let generator: Mutex<any RandomNumberGenerator & Sendable>

  init(policy: RetryPolicy, clock: any Clock<Duration>, generator: any RandomNumberGenerator & Sendable) {
    self.policy = policy
    self.clock = clock
    self.generator = Mutex(generator)
  }

  /// How long an item is kept back, in microseconds.
  ///
  /// - Parameter attempt: How often it was delivered.
  func delay(afterAttempt attempt: UInt32) -> Int64 {
    generator.withLock { generator in
      func delay(_ generator: inout some RandomNumberGenerator) -> Duration {
        policy.delay(afterAttempt: Int(attempt), using: &generator)
      }
      return delay(&generator).microseconds
    }
  }
}
