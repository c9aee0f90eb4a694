#if Metrics
import Foundation
public import Larder
public import Logging

/// A decorator that measures every operation: counts, latencies, errors and bytes.
///
/// ```swift
/// let store = try await LMDBStore<User>(path: "users").metered()
/// …
/// print(store.report())
/// ```
///
/// A metered store does not change the behavior of its base. It adds about an eighth of a microsecond to each
/// operation, twice that if the compiler does not know the base's type, plus the cost of the metrics backends.
///
/// Put one outside a stack to measure what callers see, and another one next to the store to measure what reaches it.
/// The difference is what the layers between them save. See ``StoreMeter`` for the figures. Several stores may share a
/// meter.
public struct MeteredStore<Base: DataStore>: DataStore {
  /// The type of the values in the base.
  public typealias Value = Base.Value

  /// The store that is measured.
  public let base: Base

  /// The meter that records the operations.
  public let meter: StoreMeter

  @usableFromInline let size: (@Sendable (Value) -> Int)?

  /// The observation of the dead letters of a queue.
  private let deadLetters: StoreObservation?
}

extension MeteredStore {
  /// Creates a store that records the operations of another one with a meter.
  ///
  /// - Parameters:
  ///   - base: The store to measure.
  ///   - meter: The meter that records the operations.
  ///   - size: A closure that returns the size of a value in bytes, for a meter that counts bytes. It is called for
  ///     every value that is read or written. Defaults to `nil`, to count no bytes.
  public init(_ base: Base, meter: StoreMeter, size: (@Sendable (Value) -> Int)? = nil) {
    self.base = base
    self.meter = meter
    self.size = size
    deadLetters = AnyDataStore(base).queue?.observeDeadLetters { [meter] _ in meter.record("deadLetter", .zero) }
  }

  /// Returns a report of the measurements so far.
  public func report() -> MeterReport {
    meter.report()
  }

  /// The information of the base.
  public var information: StoreInformation { base.information }

  // MARK: Reading

  /// Returns the value of a key; see `DataStore`.
  @inlinable
  public func value(forKey key: StoreKey) async throws -> Value? {
    try await meter.measure(.value, bytes: { bytes(of: $0) }) { try await base.value(forKey: key) }
  }

  /// Returns the values of several keys in one snapshot; see `DataStore`.
  @inlinable
  public func values(forKeys keys: [StoreKey]) async throws -> [Value?] {
    try await meter.measure(.values, bytes: { bytes(of: $0) }, entries: { $0.count }) {
      try await base.values(forKeys: keys)
    }
  }

  /// Returns the first entries of a range; see `DataStore`.
  @inlinable
  public func entries(in range: KeyRange, limit: Int, order: ScanOrder) async throws -> [StoreEntry<Value>] {
    try await meter.measure(.entries, bytes: { bytes(of: $0.lazy.map(\.value)) }, entries: { $0.count }) {
      try await base.entries(in: range, limit: limit, order: order)
    }
  }

  /// Returns the first keys of a range; see `DataStore`.
  @inlinable
  public func keys(in range: KeyRange, limit: Int, order: ScanOrder) async throws -> [StoreKey] {
    try await meter.measure(.keys, entries: { $0.count }) {
      try await base.keys(in: range, limit: limit, order: order)
    }
  }

  /// Returns the number of entries in a range; see `DataStore`.
  @inlinable
  public func count(in range: KeyRange) async throws -> Int {
    try await meter.measure(.count, entries: { $0 }) { try await base.count(in: range) }
  }

  // MARK: Writing

  /// Applies several changes atomically; see `DataStore`.
  @inlinable
  public func apply(_ changes: ChangeBatch<Value>) async throws {
    try await meter.measure(.apply, bytes: { bytes(of: changes) }, entries: { changes.count }) {
      try await base.apply(changes)
    }
  }

  /// Reads and writes several values as one atomic step; see `DataStore`.
  ///
  /// The bytes counted are those of the values that `body` assigns. The outcome of an update that is discarded, as by a body
  /// that throws, is `discarded`.
  @inlinable
  public func update<Result: Sendable>(
    deciding keys: [StoreKey], _ body: @escaping UpdateBody<Value, Result>
  ) async throws -> Result {
    try await meter.measure(.update, bytes: { $0.bytes ?? 0 }, isDiscarded: { $0.bytes == nil }) {
      try await base.update(deciding: keys) { slots -> UpdateDecision<(result: Result, bytes: Int?)> in
        let decision = body(&slots)
        let bytes = decision.isCommit ? bytes(of: slots.assignedIndices.map { slots[$0] }) : nil
        return decision.map { ($0, bytes) }
      }
    }.result
  }

  /// Ensures that every earlier write is durable; see `DataStore`.
  @inlinable
  public func synchronize() async throws {
    try await meter.measure(.synchronize) { try await base.synchronize() }
  }

  /// Closes the base and keeps the measurements.
  @inlinable
  public func close() async throws {
    try await meter.measure(.close) { try await base.close() }
  }

  // MARK: Bytes

  /// Returns the size of a value in bytes.
  // Not that of a collection of one, whose type unspecialized code would have to look up.
  @inlinable
  func bytes(of value: Value?) -> Int {
    guard let size, let value else { return 0 }
    return max(0, size(value))
  }

  /// Returns the total size of some values in bytes, limited to `Int.max`.
  @inlinable
  func bytes<Values: Sequence>(of values: Values) -> Int where Values.Element == Value? {
    guard let size else { return 0 }
    return values.reduce(0) { sum, value in
      let (total, overflows) = sum.addingReportingOverflow(max(0, value.map(size) ?? 0))
      return overflows ? .max : total
    }
  }

  @inlinable
  func bytes(of changes: ChangeBatch<Value>) -> Int {
    bytes(
      of: changes.changes.lazy.map { change in
        if case .set(_, let value) = change { value } else { nil }
      })
  }
}

extension MeteredStore: StoreDecorator {
  /// Measures an operation of a capability.
  public func forward<Result>(
    _ operation: StoreOperation, of key: StoreKey?, _ body: () async throws -> Result
  ) async throws -> Result {
    try await meter.measure(capability: operation, body)
  }
}

extension MeteredStore: ExpirableStore where Base: ExpirableStore {
  /// Stores a value with a time to live; see `ExpirableStore`.
  public func setValue(_ value: Value, forKey key: StoreKey, timeToLive: TimeToLive?) async throws {
    try await meter.measure(.apply, bytes: { bytes(of: value) }) {
      try await base.setValue(value, forKey: key, timeToLive: timeToLive)
    }
  }

  /// Returns a value without moving its sliding deadline; see `ExpirableStore`.
  public func peekValue(forKey key: StoreKey) async throws -> Value? {
    try await meter.measure(.value, bytes: { bytes(of: $0) }) { try await base.peekValue(forKey: key) }
  }
}

extension MeteredStore: InvalidatableStore where Base: InvalidatableStore {
  /// Removes the cached entry of a key from the base; see `InvalidatableStore`.
  public func invalidate(_ key: StoreKey) throws {
    try meter.measure(.invalidate) { try base.invalidate(key) }
  }

  /// Removes all cached entries from the base; see `InvalidatableStore`.
  public func invalidateAll() throws {
    try meter.measure(.invalidateAll) { try base.invalidateAll() }
  }
}

extension MeteredStore: FlushableStore where Base: FlushableStore {}

extension MeteredStore: ObservableStore where Base: ObservableStore {
  /// Returns a closure that returns this store as long as something else holds the base.
  public func weakReference() -> @Sendable () -> Self? {
    let (base, meter, size) = (base.weakReference(), meter, size)
    return { base().map { MeteredStore(base: $0, meter: meter, size: size, deadLetters: nil) } }
  }
}

/// A metered queue also counts its deliveries, as `delivery` and `redelivery`, and its dead letters, as `deadLetter`.
///
/// The time of a delivery is that since the item was enqueued, delays included. The wait for an item is no operation.
extension MeteredStore: DurableQueue where Base: DurableQueue {
  /// Appends items to the base, and counts them; see `DurableQueue`.
  @discardableResult
  public func enqueue(_ inputs: [QueueInput<Value>]) async throws -> [EnqueuedItem] {
    try await meter.measure(messages: .enqueue, failed: inputs.count, count: { _ in inputs.count }) {
      try await base.enqueue(inputs)
    }
  }

  /// Leases items of the base, and counts the deliveries; see `DurableQueue`.
  public func receive(max: Int, lease: Duration) async throws -> [QueueDelivery<Value>] {
    let deliveries = try await meter.measure(messages: .receive, count: { $0.count }) {
      try await base.receive(max: max, lease: lease)
    }
    for delivery in deliveries { record(delivery) }
    return deliveries
  }

  /// Waits for an item of the base and leases it, and counts the delivery; see `DurableQueue`.
  public func nextDelivery(lease: Duration) async throws -> Result<QueueDelivery<Value>, StoreError> {
    let start = meter.now
    let result = try await base.nextDelivery(lease: lease)
    if case .success(let delivery) = result {
      meter.recordWait(since: start)
      record(delivery)
    }
    return result
  }

  private func record(_ delivery: QueueDelivery<Value>) {
    meter.record(
      delivery.attempt == 1 ? "delivery" : "redelivery",
      .seconds(max(0, Date.now.timeIntervalSince(delivery.enqueueDate))))
  }
}

extension MeteredStore: PausableQueue where Base: PausableQueue {}

extension MeteredStore: InspectableQueue where Base: InspectableQueue {}

extension MeteredStore: MaintainableStore where Base: MaintainableStore {}

extension DataStore {
  /// Returns a decorator that measures every operation of this store; see ``MeteredStore``.
  ///
  /// ```swift
  /// let photos = MemoryStore<[UInt8]>().metered(as: "photos", size: { $0.count })
  /// ```
  ///
  /// - Parameters:
  ///   - name: The name of the store in reports, metrics, logs and spans. Defaults to the store's own name.
  ///   - size: A closure that returns the size of a value in bytes. Defaults to `nil`, to count no bytes.
  ///   - slowThreshold: The duration from which an operation is logged as slow. Defaults to 100 milliseconds.
  ///   - logger: The logger for slow operations, or `nil` to log nothing. Defaults to a logger with the label `larder`.
  public func metered(
    as name: String? = nil, size: (@Sendable (Value) -> Int)? = nil, slowThreshold: Duration = .milliseconds(100),
    logger: Logger? = Logger(label: "larder")
  ) -> MeteredStore<Self> {
    metered(
      by: StoreMeter(
        name: name ?? information.name, countsBytes: size != nil, slowThreshold: slowThreshold, logger: logger),
      size: size)
  }

  /// Returns a decorator that measures every operation of this store with your own meter; see ``MeteredStore``.
  ///
  /// - Parameters:
  ///   - meter: The meter that records the operations.
  ///   - size: A closure that returns the size of a value in bytes. Defaults to `nil`, to count no bytes.
  public func metered(by meter: StoreMeter, size: (@Sendable (Value) -> Int)? = nil) -> MeteredStore<Self> {
    MeteredStore(self, meter: meter, size: size)
  }
}
#endif
