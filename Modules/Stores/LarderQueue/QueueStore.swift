import LarderCBOR
public import Larder
public import LarderFiles

/// A durable first-in, first-out queue that leases items to consumers until they acknowledge them.
///
/// It is also a `DataStore`.
///
/// ```swift
/// let queue = try await QueueStore<Event>(
///   path: "outbox", configuration: QueueConfiguration(policy: QueuePolicy(maximumDeliveries: nil)))
/// try await queue.enqueue(event)
/// try await queue.withNext(lease: .seconds(30)) { delivery in
///   try await send(delivery.value)
/// }
/// ```
///
/// An item is delivered at least once and, once acknowledged, never again, even if processes crash in between. Items
/// are stored in a folder, in an append-only log of frames with checksums. Memory holds only their locations.
/// <doc:QueueFormat> describes the format in full.
///
/// ## Deliveries
///
/// ``receive(max:lease:)`` returns the first waiting items, each with a `DeliveryReceipt`. No other consumer receives
/// them until the lease ends. ``acknowledge(_:)`` removes an item permanently.
/// ``release(_:after:countsAsAttempt:)`` returns it to its old position in the order of arrival.
/// ``extend(_:lease:)`` renews the lease. When a lease ends, the item waits again and its receipt
/// is stale: operations refuse it with `StoreError.Code.staleReceipt`. Leases outlive the queue object, so one
/// process can receive an item and another acknowledge it. Changes to the wall clock never make a lease longer than
/// requested.
///
/// An item that was delivered `QueuePolicy.maximumDeliveries` times becomes a dead letter, even if it could
/// not be decoded. It does not block the delivery of other items.
///
/// ## The queue as a store
///
/// The key of an item is the id that it was enqueued with, or a generated one. Reads, scans and counts include waiting,
/// delayed and leased items in key order, but not dead letters. Setting an existing key replaces its item without
/// changing the item's position; setting a new key enqueues an item. Removing a key withdraws its item. If the item was
/// leased, either change makes its receipt stale, and a replaced item waits again.
///
/// ## Durability
///
/// With `Durability.File.synced` every change is on disk when its call returns. Concurrent calls share one
/// synchronization by group commit. Receiving is a change too: no item is delivered before its lease is durable.
///
/// ## Sharing
///
/// One object in one process can have the folder open at a time. A lock file in the folder enforces this.
public final class QueueStore<Element: Sendable>: DurableQueue {
  /// The items of the queue.
  public typealias Value = Element

  /// The name, the durability and the access of the queue.
  public let information: StoreInformation

  /// Damage and torn records that opening the queue found in its files.
  public let recovery: RecoveryReport

  /// The clock that measures leases and delays in this process.
  public var clock: any Clock<Duration> { retrying.clock }

  let engine: QueueEngine
  let coder: QueueCoder<Element>
  let retrying: RetryDelays
  let decodingRecord = DecodingRecord()

  /// Opens a queue.
  ///
  /// - Parameters:
  ///   - path: The path of the folder, whose parent must exist. A new folder has permissions 0700, and its files 0600.
  ///   - codec: The codec of the items.
  ///   - configuration: The rules of the queue. It may differ each time that it is opened.
  ///   - durability: The durability of a write when it returns. Defaults to `Durability.File.synced`.
  ///   - access: The access of the queue to its files. Defaults to `StoreAccess.readWrite`.
  ///   - leases: The treatment of running leases. Defaults to ``LeasesOnOpening/kept``.
  ///   - createsIfMissing: A Boolean value that indicates whether to create the queue if it is missing. Defaults to `true`.
  ///   - fileSystem: The file system that holds the files. Defaults to the real one.
  ///   - environment: The clock that measures leases and delays in this process, the wall-clock time that is stored in
  ///     the files, and the random numbers of `QueuePolicy.retryPolicy`. Defaults to those of the system.
  ///   - onDeadLetter: A closure that the queue calls for each item that becomes a dead letter, after the change is written.
  ///     It runs on a thread of the queue or of a caller and must not block. Defaults to `nil`.
  /// - Throws: `StoreError` with `locked` if the queue is already open; `corrupted` if the header of one of its files
  ///   is damaged; `unrecognizedFormat` if the folder contains something else; `versionMismatch` if another version or
  ///   another codec wrote the queue; `notFound` if it is missing and must not be created; `unsupported` if a file has
  ///   several hard links; `invalidArgument` if the configuration is invalid; `notPermitted`, `full` or `ioFailed` if
  ///   the file system refuses. No data is lost in any of these cases.
  public convenience init(
    path: String, codec: some Codec<Element>, configuration: QueueConfiguration = QueueConfiguration(),
    durability: Durability.File = .synced, access: StoreAccess = .readWrite, leases: LeasesOnOpening = .kept,
    createsIfMissing: Bool = true, fileSystem: some StoreFileSystem = POSIXFileSystem(),
    environment: QueueEnvironment = QueueEnvironment(), onDeadLetter: (@Sendable (DeadLetterEvent) -> Void)? = nil
  ) async throws {
    let queue = try await UntypedQueue(
      path: path, configuration: configuration, durability: durability, access: access, leases: leases,
      createsIfMissing: createsIfMissing, fileSystem: fileSystem, environment: environment, onDeadLetter: onDeadLetter,
      newCodecName: codec.name)
    try self.init(queue, codec: codec)
  }

  /// Creates a queue from its open files.
  ///
  /// - Throws: `StoreError` with `versionMismatch` if they were written with another codec.
  init(_ queue: UntypedQueue, codec: some Codec<Element>) throws {
    engine = queue.engine
    var information = engine.information
    information.isQueue = true
    information.noteEncryption(by: codec)
    self.information = information
    retrying = queue.retrying
    recovery = queue.recovery
    coder = QueueCoder(codec: codec, store: information.name)
    let codecName = try coder.codecRecord.name(replacing: queue.codecName, during: .open, store: information.name)
    if codecName != queue.codecName { engine.recordWithNextWrite(codecName: codecName) }
  }

  /// Opens a queue of `Codable` items, encoded as CBOR.
  ///
  /// - Parameters:
  ///   - path: The path of the folder; see
  ///     ``init(path:codec:configuration:durability:access:leases:createsIfMissing:fileSystem:environment:onDeadLetter:)``.
  ///   - configuration: The rules of the queue. It may differ each time that it is opened.
  ///   - durability: The durability of a write when it returns. Defaults to `Durability.File.synced`.
  ///   - access: The access of the queue to its files. Defaults to `StoreAccess.readWrite`.
  ///   - leases: The treatment of running leases. Defaults to ``LeasesOnOpening/kept``.
  ///   - createsIfMissing: A Boolean value that indicates whether to create the queue if it is missing. Defaults to `true`.
  ///   - onDeadLetter: A closure that the queue calls for each item that becomes a dead letter. Defaults to `nil`.
  /// - Throws: The same errors as
  ///   ``init(path:codec:configuration:durability:access:leases:createsIfMissing:fileSystem:environment:onDeadLetter:)``.
  public convenience init(
    path: String, configuration: QueueConfiguration = QueueConfiguration(), durability: Durability.File = .synced,
    access: StoreAccess = .readWrite, leases: LeasesOnOpening = .kept, createsIfMissing: Bool = true,
    onDeadLetter: (@Sendable (DeadLetterEvent) -> Void)? = nil
  ) async throws where Element: Codable {
    try await self.init(
      path: path, codec: .cbor(), configuration: configuration, durability: durability, access: access, leases: leases,
      createsIfMissing: createsIfMissing, onDeadLetter: onDeadLetter)
  }

  /// Runs a closure that ``close()`` waits for.
  func running<Result>(_ operation: StoreOperation, _ body: () async throws -> Result) async throws -> Result {
    try await engine.operations.run(operation, of: information, body)
  }

  /// Runs a closure on the queue's state, and returns when its changes are committed.
  ///
  /// ``close()`` waits for it.
  func perform<Result: Sendable>(
    _ operation: StoreOperation, _ weight: QueueCall.Weight, needsRoom: Bool = false, ignoresCancellation: Bool = false,
    _ body: @escaping @Sendable (inout QueueCore) throws -> Result
  ) async throws -> Result {
    try await running(operation) {
      try await engine.perform(operation, weight, needsRoom: needsRoom, ignoresCancellation: ignoresCancellation, body)
    }
  }

  // MARK: Reading

  /// Returns the item of a key.
  ///
  /// - Throws: `StoreError` with `invalidKey`; `corrupted` or `undecodable` if the item cannot be decoded; `closed`;
  ///   `ioFailed`.
  @concurrent
  public func value(forKey key: StoreKey) async throws -> Element? {
    try information.check(key, for: .value)
    return try await read(.value) { ledger in ledger.item(forKey: key).map { [$0] } ?? [] }.first?.value
  }

  /// Returns the items of several keys from one snapshot.
  ///
  /// - Throws: `StoreError` with `invalidKey`; `corrupted` or `undecodable` if an item cannot be decoded; `closed`;
  ///   `ioFailed`.
  @concurrent
  public func values(forKeys keys: [StoreKey]) async throws -> [Element?] {
    try information.check(keys, for: .values)
    // In the order of the keys, so that the error names the first damaged one.
    let entries = try await read(.values) { ledger in keys.compactMap { ledger.item(forKey: $0) } }
    let values = Dictionary(entries.map { ($0.key, $0.value) }, uniquingKeysWith: { first, _ in first })
    return keys.map { values[$0] }
  }

  /// Returns the first entries of a range of keys from one snapshot.
  ///
  /// - Throws: `StoreError` with `invalidArgument` if the limit is negative; `corrupted` or `undecodable` if an item
  ///   cannot be decoded; `closed`; `ioFailed`.
  @concurrent
  public func entries(in range: KeyRange, limit: Int, order: ScanOrder) async throws -> [StoreEntry<Element>] {
    try information.check(limit: limit, for: .entries)
    return try await read(.entries) { $0.items(in: range, limit: limit, order: order) }
  }

  /// Returns the first keys of a range from one snapshot.
  ///
  /// - Throws: `StoreError` with `invalidArgument` if the limit is negative; `closed`.
  public func keys(in range: KeyRange, limit: Int, order: ScanOrder) async throws -> [StoreKey] {
    try information.check(limit: limit, for: .keys)
    return try await perform(.keys, .looks) { $0.ledger.keys.keys(in: range, limit: limit, order: order) }
  }

  /// Returns the number of items in a range of keys.
  ///
  /// - Throws: `StoreError` with `closed`.
  public func count(in range: KeyRange) async throws -> Int {
    try await perform(.count, .looks) { $0.ledger.keys.count(in: range) }
  }

  /// Reads and decodes items from one snapshot.
  func read(
    _ operation: StoreOperation, _ items: @escaping @Sendable (inout QueueLedger) -> [QueueItem]
  ) async throws -> [StoreEntry<Element>] {
    try await running(operation) {
      try await engine.payloads(operation, { $0 }, finding: { items(&$0.ledger) }).map { item, payload in
        let value = try coder.result(of: payload, item, during: operation).get()
        return StoreEntry(key: item.key, value: value)
      }
    }
  }

  // MARK: Writing

  /// Applies several changes atomically; see `DataStore.apply(_:)`.
  ///
  /// If the queue is full, ``QueueCapacity/policy`` decides.
  public func apply(_ changes: ChangeBatch<Element>) async throws {
    try information.check(changes)
    try await running(.apply) {
      let encoded = try await BulkWork.encode(changes) { [coder] value, key in
        try coder.payload(of: value, forKey: key, during: .apply)
      }
      try await engine.perform(.apply, .writes, needsRoom: encoded.contains(where: \.needsRoom)) { core in
        for change in encoded {
          switch change {
          case .set(let key, let payload):
            try core.ledger.setValue(payload, forKey: key, hasCallersKey: true, into: &core.frames)
          case .remove(let key): core.ledger.removeValue(forKey: key, into: &core.frames)
          case .removeAll(let range): core.ledger.removeAll(in: range, into: &core.frames)
          }
        }
      }
    }
  }

  /// Reads, modifies and writes the items of several keys atomically; see `DataStore.update(deciding:_:)`.
  ///
  /// `body` runs on the queue's own thread while all other calls wait. An item that it does not assign, or
  /// that stays the same, is not written and keeps its lease. If the queue is full and the policy is to wait, `body` runs again when there is room.
  public func update<Result: Sendable>(
    deciding keys: [StoreKey], _ body: @escaping UpdateBody<Element, Result>
  ) async throws -> Result {
    try information.check(updateOf: keys)
    let coder = coder
    return try await perform(.update, .blocks, needsRoom: true) { core in
      let items = keys.map { core.ledger.item(forKey: $0) }
      var payloads = try core.payloads(of: items.compactMap(\.self))[...]
      let before = items.map { $0.flatMap { _ in payloads.popFirst() ?? nil } }
      var slots = UpdateSlots(
        stored: try zip(items, before).map { item, payload in
          try item.map { try coder.value(of: payload, $0, during: .update) }
        })
      let decision = body(&slots)
      guard decision.isCommit else { return decision.result }
      let changes = try slots.assignedIndices.map { index in
        let payload = try slots[index].map {
          try coder.payload(of: $0, forKey: keys[index], replacing: items[index], before[index], during: .update)
        }
        return (index, payload)
      }
      for (index, payload) in changes {
        guard let payload else {
          core.ledger.removeValue(forKey: keys[index], into: &core.frames)
          continue
        }
        guard before[index]?.elementsEqual(payload) != true else { continue }
        try core.ledger.setValue(
          payload, forKey: keys[index], hasCallersKey: items[index]?.hasCallersKey ?? true, into: &core.frames)
      }
      return decision.result
    }
  }

  /// Writes all earlier changes to the disk, so they survive power loss.
  ///
  /// - Throws: `StoreError` with `closed`, `ioFailed` or `full`.
  public func synchronize() async throws {
    let time = engine.time
    try await perform(.synchronize, .alone) { try $0.synchronize(time) }
  }

  /// Waits for running operations, marks the log as closed and releases its lock.
  ///
  /// Calls that wait for an item or for room fail with `closed`. Leases keep running.
  ///
  /// - Throws: `StoreError` with `ioFailed` or `full`. The queue is closed nevertheless.
  public func close() async throws {
    try await engine.close()
  }
}

extension BatchChange {
  /// A Boolean value that indicates whether the change may need more room in a store.
  fileprivate var needsRoom: Bool {
    if case .set = self { true } else { false }
  }
}
