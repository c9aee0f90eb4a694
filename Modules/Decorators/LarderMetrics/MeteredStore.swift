#if Metrics
public import Larder

/// A decorator that measures every operation: how many, how long, which errors, how many bytes.
///
/// ```swift
/// let store = try await LMDBStore<User>(path: "users").metered()
/// …
/// print(store.report())
/// ```
///
/// It changes nothing of what the base does, and adds about an eighth of a microsecond to each operation, twice that where
/// the compiler does not know the base's type, and what backends take. One outside a stack measures what callers see,
/// another next to the store what reaches it: the difference is what the layers between have saved. What it measures is in
/// ``StoreMeter``; several stores may share a meter.
public struct MeteredStore<Base: DataStore>: DataStore {
  /// What the base keeps.
  public typealias Value = Base.Value

  /// The store that does the work.
  public let base: Base

  /// What measures.
  public let meter: StoreMeter

  @usableFromInline let size: (@Sendable (Value) -> Int)?

  /// That of the base, measured: made once, since others ask for ``information`` with each operation.
  private let maintenance: (any StoreMaintenance)?

  /// Measures a store by a meter.
  ///
  /// - Parameters:
  ///   - base: The store that does the work.
  ///   - meter: What measures.
  ///   - size: How many bytes a value has, for a meter that counts bytes; they are not counted unless it is given. It is called for
  ///     every value that is read or written.
  public init(_ base: Base, meter: StoreMeter, size: (@Sendable (Value) -> Int)? = nil) {
    self.base = base
    self.meter = meter
    self.size = size
    maintenance = base.information.maintenance.map { MeteredMaintenance(base: $0, meter: meter) }
  }

  /// What was measured so far.
  public func report() -> MeterReport {
    meter.report()
  }

  /// What the base says of itself; its maintenance is measured, too.
  public var information: StoreInformation {
    var information = base.information
    information.maintenance = maintenance
    information.callerContext = meter.callerContext ?? information.callerContext
    return information
  }

  // MARK: Reading

  /// Reads the value of one key; see `DataStore`.
  @inlinable
  public func value(forKey key: StoreKey) async throws -> Value? {
    try await meter.measure(.value, bytes: { bytes(of: CollectionOfOne($0)) }) { try await base.value(forKey: key) }
  }

  /// Reads the values of several keys as they are at one moment; see `DataStore`.
  @inlinable
  public func values(forKeys keys: [StoreKey]) async throws -> [Value?] {
    try await meter.measure(.values, bytes: { bytes(of: $0) }) { try await base.values(forKeys: keys) }
  }

  /// Reads the first entries of a range; see `DataStore`.
  @inlinable
  public func entries(in range: KeyRange, limit: Int, order: ScanOrder) async throws -> [StoreEntry<Value>] {
    try await meter.measure(.entries, bytes: { bytes(of: $0.lazy.map(\.value)) }) {
      try await base.entries(in: range, limit: limit, order: order)
    }
  }

  /// Reads the first keys of a range; see `DataStore`.
  @inlinable
  public func keys(in range: KeyRange, limit: Int, order: ScanOrder) async throws -> [StoreKey] {
    try await meter.measure(.keys) { try await base.keys(in: range, limit: limit, order: order) }
  }

  /// Counts the entries of a range; see `DataStore`.
  @inlinable
  public func count(in range: KeyRange) async throws -> Int {
    try await meter.measure(.count) { try await base.count(in: range) }
  }

  // MARK: Writing

  /// Makes several changes, all or none of them; see `DataStore`.
  @inlinable
  public func apply(_ changes: ChangeBatch<Value>) async throws {
    try await meter.measure(.apply, bytes: { bytes(of: changes) }) { try await base.apply(changes) }
  }

  /// Reads, changes and writes back the values of some keys as one step; see `DataStore`.
  ///
  /// The bytes that are counted are those left in the slots. What `body` throws is no error of the store: the outcome is
  /// `aborted`.
  @inlinable
  public func update<Result: Sendable>(
    _ keys: [StoreKey],
    _ body: @escaping @Sendable (inout [Value?]) throws -> Result
  ) async throws -> Result {
    do {
      let (result, _) = try await meter.measure(.update, bytes: { $0.1 }) {
        try await base.update(keys) { slots in
          do {
            let result = try body(&slots)
            return (result, bytes(of: slots))
          } catch {
            throw AbortedUpdate(error)
          }
        }
      }
      return result
    } catch let aborted as AbortedUpdate {
      throw aborted.error
    }
  }

  /// Makes everything written before durable; see `DataStore`.
  @inlinable
  public func synchronize() async throws {
    try await meter.measure(.synchronize) { try await base.synchronize() }
  }

  /// Closes the base; what was measured stays.
  @inlinable
  public func close() async throws {
    try await meter.measure(.close) { try await base.close() }
  }

  // MARK: Bytes

  /// The bytes of some values, or as many as an `Int` holds.
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

/// What the body of an update threw, told apart from the errors of the store.
@usableFromInline
struct AbortedUpdate: Error {
  @usableFromInline let error: any Error

  @usableFromInline
  init(_ error: any Error) {
    self.error = error
  }
}

extension MeteredStore: CustomStringConvertible {
  /// The base, in brackets.
  public var description: String { "MeteredStore[\(base)]" }
}

extension MeteredStore: ExpirableStore where Base: ExpirableStore {
  /// Gives an entry a new lifetime; see ``ExpirableStore/touch(_:lifetime:)``.
  @discardableResult
  public func touch(_ key: StoreKey, lifetime: Lifetime?) async throws -> Bool {
    try await meter.measure(.touch) { try await base.touch(key, lifetime: lifetime) }
  }

  /// Tells how long an entry has still to live; see ``ExpirableStore/remainingTime(forKey:)``.
  public func remainingTime(forKey key: StoreKey) async throws -> Lifetime? {
    try await meter.measure(.remainingTime) { try await base.remainingTime(forKey: key) }
  }

  /// Removes entries that have expired; see ``ExpirableStore/purgeExpired(limit:)``.
  @discardableResult
  public func purgeExpired(limit: Int) async throws -> Int {
    try await meter.measure(.purgeExpired) { try await base.purgeExpired(limit: limit) }
  }
}

extension MeteredStore: InvalidatableStore where Base: InvalidatableStore {
  /// Lets the base forget its copy of one key; see ``InvalidatableStore/invalidate(_:)``.
  public func invalidate(_ key: StoreKey) throws {
    try meter.measure(.invalidate) { try base.invalidate(key) }
  }

  /// Lets the base forget all copies; see ``InvalidatableStore/invalidateAll()``.
  public func invalidateAll() throws {
    try meter.measure(.invalidateAll) { try base.invalidateAll() }
  }
}

extension MeteredStore: FlushableStore where Base: FlushableStore {
  /// Waits until everything accepted has been written; see ``FlushableStore/flush()``.
  public func flush() async throws {
    try await meter.measure(.flush) { try await base.flush() }
  }
}

/// The maintenance of the base of a ``MeteredStore``, measured.
private struct MeteredMaintenance: StoreMaintenance {
  let base: any StoreMaintenance
  let meter: StoreMeter

  func statistics() async throws -> StoreStatistics {
    try await meter.measure(.statistics) { try await base.statistics() }
  }

  func verify() async throws -> VerificationReport {
    try await meter.measure(.verify) { try await base.verify() }
  }

  func compact() async throws {
    try await meter.measure(.compact) { try await base.compact() }
  }

  func backup(to path: String, compacting: Bool) async throws {
    try await meter.measure(.backup) { try await base.backup(to: path, compacting: compacting) }
  }
}
#endif
