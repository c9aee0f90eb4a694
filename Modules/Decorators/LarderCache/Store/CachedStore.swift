public import Larder

/// A decorator that keeps the most valuable entries of its base in memory.
///
/// ```swift
/// let users = try await LMDBStore<User>(path: path).cached(CachedStoreConfiguration(entryLimit: 50_000))
/// let user = try await users.value(forKey: "user:1")      // from the base, and then from memory
/// try await users.setValue(ada, forKey: "user:2")         // to the base, and then to memory
/// ```
///
/// If many readers miss the same key, they share one read of the base. Writes go directly through to the base, with all
/// its guarantees. Every read that begins after a write sees its changes. The promises of `DataStore` hold under any
/// concurrency, so a cached store behaves as its base for everyone who uses the store through this object.
///
/// **Writes beside the cache.** If the base is an `ObservableStore`, such as `LMDBStore` or any store with
/// `.observable()`, the cache observes it. A write that is made without the cache, such as a transaction, removes the
/// cached entries of its keys before it returns, so no later read is stale. While the write is still running, some
/// readers may get the old value from the cache after others got the new one. `LMDBStore` polls for commits of other
/// processes every 50 milliseconds, and such a commit empties the cache.
///
/// **Writes of other hosts.** A `PostgresStore` that reports its changes tells the cache of them some milliseconds later. A read
/// returns no value that was replaced more than ``CachedStoreConfiguration/maximumLag`` before it began, which is one
/// second. If the base has not known of all commits for that time, for example because its server cannot be reached, every
/// read goes to the base, and fails if that fails. With ``LaggingReads/serveStale``, cached
/// entries are used nevertheless.
///
/// **Over any other base, the cache sees only writes made through it.** If another object writes to the base, a cached
/// entry may be stale until its time to live is over (``CachedStoreConfiguration/timeToLive``, which is 60 seconds by default over a
/// base that several programs can write to), or until you call
/// ``invalidate(_:)``. An expiry is not a write, so a store whose entries expire belongs above a cache, not below it.
///
/// Values are kept as they are, without encoding. An instance of a class is shared by all readers.
///
/// Scans go to the base. Errors are never cached. All readers that wait for the same load receive its error, except
/// those that did not ask for the key that the error names. Their keys are loaded again. Closing waits for running
/// loads.
public final class CachedStore<Base: DataStore>: DataStore {
  /// The type of the values in the base.
  public typealias Value = Base.Value

  /// The store that is decorated.
  public let base: Base

  /// The limits and times of the cache.
  public let configuration: CachedStoreConfiguration<Base.Value>

  /// The entries in memory.
  @usableFromInline let cache: EntryCache

  /// The loads, the reads of several keys, and the writes, for which closing waits.
  let operations = RunningOperations()

  /// The information of the base, read once, by which every operation checks its arguments.
  let ownInformation: StoreInformation

  /// The observation of the base, which ends with this store, or `nil` if the base does not report its changes.
  private let observation: StoreObservation?

  /// The observation, if its lag decides whether cached entries are used.
  @usableFromInline let limitingObservation: StoreObservation?

  /// Creates a store that caches entries of another one.
  ///
  /// If the base is an `ObservableStore`, it is observed until this store is released or the base is closed.
  ///
  /// - Parameters:
  ///   - base: The store to decorate.
  ///   - configuration: The limits and times of the cache. Defaults to 10,000 entries.
  ///   - clock: The clock that measures times to live. Defaults to a `ContinuousClock`.
  public init(
    _ base: Base, configuration: CachedStoreConfiguration<Base.Value> = CachedStoreConfiguration(),
    clock: any Clock<Duration> = ContinuousClock()
  ) {
    self.base = base
    self.configuration = configuration
    ownInformation = base.information
    let observable = AnyDataStore(base).observation
    let cache = EntryCache(
      configuration,
      hearsOfAllCommits: ownInformation.sharing == .exclusive
        || observable != nil && ownInformation.reportsAllCommits, clock: clock)
    self.cache = cache
    // Now and not on first use, because the caches below must hear of a change first.
    observation = observable?.observe(.all) { cache.receive($0) }
    limitingObservation = configuration.whenReportsLag == .loadFromBase ? observation : nil
  }

  /// A Boolean value that indicates whether the reports of the base are recent enough to use cached entries.
  ///
  /// A read looks before it takes an entry. So the entry was current for at most the lag before the read began.
  @usableFromInline var isCurrent: Bool {
    guard let limitingObservation else { return true }
    return limitingObservation.lag <= configuration.maximumLag
  }

  /// The information of the base, of which reads may be copies.
  public var information: StoreInformation {
    var information = base.information
    information.readsMayBeCopies = true
    return information
  }

  /// Returns the statistics since the store was created.
  ///
  /// ```swift
  /// let statistics = users.statistics()
  /// print(statistics.hitRatio, statistics.sharedLoads, statistics.loadFailures)
  /// ```
  public func statistics() -> CachedStoreStatistics { cache.statistics }

  // MARK: Values

  /// Returns a box that contains a value for the cache.
  func box(_ value: Value) -> any CachedValue {
    ValueBox(value)
  }

  /// Returns the value in a box.
  @inlinable
  func value(of box: any CachedValue) -> Value {
    // Every box in the cache of this store was created by `box(_:)` of this store.
    unsafeDowncast(box, to: ValueBox<Value>.self).value
  }

  /// Returns a cache entry for a value of the base.
  ///
  /// The cost closure is called here, outside all locks.
  ///
  /// - Parameters:
  ///   - box: The value, or `nil` if the key is missing.
  ///   - key: The key.
  /// - Returns: The entry, or `nil` if the key is missing and negative caching is off.
  func makeEntry(of box: (any CachedValue)?, forKey key: StoreKey) -> CachedEntry? {
    var cost = 1
    if let box, let costOfValue = configuration.cost { cost = costOfValue(key, value(of: box)) }
    return cache.makeEntry(of: box, cost: cost)
  }

  // MARK: Lifecycle

  /// Ensures that every earlier write is durable; see `DataStore`.
  public func synchronize() async throws {
    try await base.synchronize()
  }

  /// Waits for running operations, including background loads, removes all cached entries, and closes the base.
  public func close() async throws {
    cache.beginClosing()
    await operations.close()
    cache.invalidate(in: .all)
    try await base.close()
  }

  /// Throws an error if closing has begun.
  func checkOpen(for operation: StoreOperation) throws {
    if cache.hasBegunClosing { throw ownInformation.closedError(for: operation) }
  }
}

extension DataStore {
  /// Returns a decorator that keeps the most valuable entries of this store in memory; see ``CachedStore``.
  ///
  /// ```swift
  /// let users = try await LMDBStore<User>(path: folder + "/users").cached(
  ///   CachedStoreConfiguration(entryLimit: 50_000, negativeTimeToLive: .seconds(5)))
  ///
  /// let ada = try await users.value(forKey: "user:1")  // loaded from the base, then cached
  /// try await users.setValue(user, forKey: "user:2")  // written to the base, then cached
  /// ```
  ///
  /// - Parameters:
  ///   - configuration: The limits and times of the cache. Defaults to 10,000 entries.
  ///   - clock: The clock that measures times to live. Defaults to a `ContinuousClock`.
  public func cached(
    _ configuration: CachedStoreConfiguration<Value> = CachedStoreConfiguration(),
    clock: any Clock<Duration> = ContinuousClock()
  ) -> CachedStore<Self> {
    CachedStore(self, configuration: configuration, clock: clock)
  }
}

extension CachedStore: InvalidatableStore {
  /// Removes the cached entry of a key, so the next read loads it from the base.
  ///
  /// Running loads of the key are not cached, and later readers do not join them. Entries cached by the base itself
  /// stay.
  ///
  /// - Parameter key: The key.
  /// - Throws: `StoreError` with `invalidKey` or `closed`.
  public func invalidate(_ key: StoreKey) throws {
    try ownInformation.check(key, for: .invalidate)
    try checkOpen(for: .invalidate)
    cache.invalidate(key)
  }

  /// Removes all cached entries; see ``invalidate(_:)``.
  ///
  /// - Throws: `StoreError` with `closed`.
  public func invalidateAll() throws {
    try checkOpen(for: .invalidateAll)
    cache.invalidate(in: .all)
  }
}

extension CachedStore: ReadForwardingStore {
  /// Performs an operation of a capability on the base, and removes the cached entries that it may change.
  public func forward<Result>(
    _ operation: StoreOperation, of key: StoreKey?, _ body: () async throws -> Result
  ) async throws -> Result {
    switch operation {
    case .apply, .touch:
      let keys = key.map { [$0] } ?? []
      return try await writing(keys, [], operation) { _, _ in try await body() }
    case .purgeExpired:
      return try await writing([], [.all], operation) { _, _ in try await body() }
    default:
      return try await body()
    }
  }
}

/// A cache belongs below a store whose entries expire. Above it, the cache may return values that have expired since
/// they were read.
extension CachedStore: ExpirableStore where Base: ExpirableStore {
  /// Returns a value from the base without moving its sliding deadline; see `ExpirableStore`.
  ///
  /// If the key is missing, its cached entry is removed.
  public func peekValue(forKey key: StoreKey) async throws -> Value? {
    let value = try await base.peekValue(forKey: key)
    if value == nil { cache.invalidate(key) }
    return value
  }

  /// Returns the remaining time to live of an entry of the base; see `ExpirableStore`.
  ///
  /// If the key is missing, its cached entry is removed.
  public func remainingTime(forKey key: StoreKey) async throws -> TimeToLive? {
    let time = try await base.remainingTime(forKey: key)
    if time == nil { cache.invalidate(key) }
    return time
  }

  /// Returns the time until the first of some entries of the base expires; see `ExpirableStore`.
  ///
  /// If one of the keys is missing, their cached entries are removed.
  public func timeUntilExpiry(ofAny keys: [StoreKey]) async throws -> Duration? {
    let time = try await base.timeUntilExpiry(ofAny: keys)
    if time == .zero { for key in keys { cache.invalidate(key) } }
    return time
  }
}

extension CachedStore: FlushableStore where Base: FlushableStore {}
extension CachedStore: ObservableStore where Base: ObservableStore {}
extension CachedStore: MaintainableStore where Base: MaintainableStore {}

extension CachedStore {
  /// Applies several changes to the base atomically; see `DataStore`.
  ///
  /// The new values are cached.
  public func apply(_ changes: ChangeBatch<Value>) async throws {
    let written = WrittenKeys(changes, box: box)
    try await writing(written.keys, written.ranges, .apply) { entries, _ in
      try await base.apply(changes)
      entries = makeEntries(of: written.values, forKeys: written.keys)
    }
  }

  /// Reads and writes several values of the base as one atomic step; see `DataStore`.
  ///
  /// The values of the slots are cached, as the body leaves them if it commits, and as it got them if it discards.
  public func update<Result: Sendable>(
    deciding keys: [StoreKey], _ body: @escaping UpdateBody<Value, Result>
  ) async throws -> Result {
    try await writing(keys, [], .update) { entries, readOnly in
      let (result, slots) = try await base.updateReturningSlots(keys, deciding: body)
      entries = slots.map { makeEntries(of: $0.map { $0.map(box) }, forKeys: keys) }
      // Those of a body that decided to discard are as it got them, so none is assigned.
      if let slots { readOnly = Set(keys.indices).subtracting(slots.assignedIndices) }
      return result
    }
  }

  /// Performs a write on the base while its keys are busy, and caches the new values.
  ///
  /// - Parameters:
  ///   - keys: The keys. They must be distinct.
  ///   - ranges: The ranges.
  ///   - operation: The operation.
  ///   - body: A closure that writes. It sets its first argument to the new entry of each key if that is known, and its
  ///     second to the indices of the keys that it has only read.
  func writing<Result>(
    _ keys: [StoreKey], _ ranges: [KeyRange], _ operation: StoreOperation,
    _ body: (inout [CachedEntry?]?, inout Set<Int>) async throws -> Result
  ) async throws -> Result {
    try await operations.run(operation, of: ownInformation) {
      let write = cache.beginWrite(keys, ranges)
      var entries: [CachedEntry?]?
      var readOnly: Set<Int> = []
      do {
        let result = try await body(&entries, &readOnly)
        cache.end(write, keeping: entries, readOnly: readOnly)
        return result
      } catch {
        // The state of the keys is known only to the base.
        cache.end(write, keeping: nil)
        throw error
      }
    }
  }

  private func makeEntries(of boxes: [(any CachedValue)?], forKeys keys: [StoreKey]) -> [CachedEntry?] {
    zip(keys, boxes).map { key, box in makeEntry(of: box, forKey: key) }
  }
}

extension DataStore {
  /// Updates values as one atomic step, and returns the slots that the last run of the closure left; see `DataStore`.
  ///
  /// - Returns: The result, and the slots. If the closure decided to discard them, they are as it got them.
  func updateReturningSlots<Result: Sendable>(
    _ keys: [StoreKey], deciding body: @escaping UpdateBody<Value, Result>
  ) async throws -> (result: Result, slots: UpdateSlots<Value>?) {
    // The values of every run are kept until the end. Values of an earlier run must not be released during the next one,
    // inside the store.
    let runs = Locked<[UpdateSlots<Value>]>([])
    let result = try await update(deciding: keys) { slots in
      let read = slots
      let decision = body(&slots)
      runs.withLock { $0 += decision.isCommit ? [slots] : [slots, read] }
      return decision
    }
    return (result, runs.withLock { $0.last })
  }
}

/// The keys and ranges that a batch changes, with the new values of its keys.
struct WrittenKeys {
  /// The changed keys, each once.
  private(set) var keys: [StoreKey] = []

  /// The final value of each key, or `nil` if the key is removed.
  private(set) var values: [(any CachedValue)?] = []

  /// The removed ranges, at most ``highestRangeCount``.
  ///
  /// If there are more, the last one covers all the others.
  ///
  /// Every range is compared with every key that is read or written in the meantime. A key that is wrongly assumed to
  /// be removed costs one read.
  private(set) var ranges: [KeyRange] = []

  /// The maximum number of separate ranges.
  static let highestRangeCount = 16

  // The indices of the keys, or `nil` if there is at most one change.
  private var indices: [StoreKey: Int]?

  /// Collects the keys and ranges of a batch.
  ///
  /// - Parameters:
  ///   - changes: The batch.
  ///   - box: A closure that returns a box for a value.
  init<Value>(_ changes: ChangeBatch<Value>, box: (Value) -> any CachedValue) {
    indices = changes.count > 1 ? [:] : nil
    for change in changes.changes {
      switch change {
      case .set(let key, let value): set(box(value), forKey: key)
      case .remove(let key): set(nil, forKey: key)
      case .removeAll(let range): removeAll(in: range)
      }
    }
  }

  private mutating func set(_ value: (any CachedValue)?, forKey key: StoreKey) {
    if let index = indices?[key] {
      values[index] = value
      return
    }
    indices?[key] = keys.count
    keys.append(key)
    values.append(value)
  }

  private mutating func removeAll(in range: KeyRange) {
    guard !range.isEmpty else { return }
    for index in keys.indices where range.contains(keys[index]) { values[index] = nil }
    if ranges.count == WrittenKeys.highestRangeCount, let last = ranges.popLast() {
      ranges.append(last.covering(range))
    } else {
      ranges.append(range)
    }
  }
}
