public import Larder

/// A decorator that keeps the most valuable entries of its base in memory.
///
/// ```swift
/// let users = try await LMDBStore<User>(path: path).cached(CachedStoreOptions(entryLimit: 50_000))
/// let user = try await users.value(forKey: "user:1")      // from the base, and then from memory
/// try await users.setValue(ada, forKey: "user:2")         // to the base, and then to memory
/// ```
///
/// If many readers miss the same key, they share one read of the base. Writes go directly through to the base, with all
/// its guarantees. Every read that begins after a write sees its changes. The promises of `DataStore` hold under any
/// concurrency, so a cached store behaves as its base for everyone who uses the store through this object.
///
/// **The cache sees only writes made through it.** If another process or another object writes to the base, a cached
/// entry may be stale until its time to live is over (``CachedStoreOptions/timeToLive``) or until you call
/// ``invalidate(_:)``. For the same reason, a store whose entries expire belongs above a cache, not below it.
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
  public let options: CachedStoreOptions<Base.Value>

  /// The entries in memory.
  @usableFromInline let cache: EntryCache

  /// The loads, the reads of several keys, and the writes, for which closing waits.
  let operations = RunningOperations()

  /// The information of the base, read once, by which every operation checks its arguments.
  let ownInformation: StoreInformation

  /// Creates a store that caches entries of another one.
  ///
  /// - Parameters:
  ///   - base: The store to decorate.
  ///   - options: The limits and times of the cache. Defaults to 10,000 entries.
  ///   - clock: The clock that measures times to live. Defaults to a `ContinuousClock`.
  public init(
    _ base: Base, options: CachedStoreOptions<Base.Value> = CachedStoreOptions(),
    clock: any Clock<Duration> = ContinuousClock()
  ) {
    self.base = base
    self.options = options
    ownInformation = base.information
    cache = EntryCache(options, clock: clock)
  }

  /// The information of the base.
  public var information: StoreInformation { base.information }

  /// The statistics since the store was created.
  public var statistics: CachedStoreStatistics { cache.statistics }

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
    if let box, let costOfValue = options.cost { cost = costOfValue(key, value(of: box)) }
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
    cache.invalidateAll()
    try await base.close()
  }

  /// Throws an error if closing has begun.
  func checkOpen(for operation: StoreOperation) throws {
    if cache.hasBegunClosing { throw ownInformation.closedError(for: operation) }
  }

  /// Runs an operation for which closing waits.
  func running<Result>(_ operation: StoreOperation, _ body: () async throws -> Result) async throws -> Result {
    guard operations.begin() else { throw ownInformation.closedError(for: operation) }
    defer { operations.end() }
    return try await body()
  }
}

extension CachedStore: CustomStringConvertible {
  /// The description of the base, in brackets.
  public var description: String { "CachedStore[\(base)]" }
}

extension DataStore {
  /// Returns a decorator that keeps the most valuable entries of this store in memory; see ``CachedStore``.
  ///
  /// - Parameters:
  ///   - options: The limits and times of the cache. Defaults to 10,000 entries.
  ///   - clock: The clock that measures times to live. Defaults to a `ContinuousClock`.
  public func cached(
    _ options: CachedStoreOptions<Value> = CachedStoreOptions(), clock: any Clock<Duration> = ContinuousClock()
  ) -> CachedStore<Self> {
    CachedStore(self, options: options, clock: clock)
  }
}

extension CachedStore: InvalidatableStore {
  /// Removes the cached entry of a key, so that the next read loads it from the base.
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
    cache.invalidateAll()
  }
}

/// A cache belongs below a store whose entries expire. Above it, the cache may return values that have expired since
/// they were read.
extension CachedStore: ExpirableStore where Base: ExpirableStore {
  /// Stores a value with a time to live in the base, and removes its cached entry; see `ExpirableStore`.
  public func setValue(_ value: Value, forKey key: StoreKey, timeToLive: TimeToLive?) async throws {
    try ownInformation.check(key, for: .apply)
    try await writing([key], [], .apply) { _ in try await base.setValue(value, forKey: key, timeToLive: timeToLive) }
  }

  /// Returns a value from the base without moving its sliding deadline; see `ExpirableStore`.
  public func peekValue(forKey key: StoreKey) async throws -> Value? {
    let value = try await base.peekValue(forKey: key)
    if value == nil { cache.invalidate(key) }
    return value
  }

  /// Gives an entry of the base a new time to live, and removes its cached entry; see `ExpirableStore`.
  @discardableResult
  public func touch(_ key: StoreKey, timeToLive: TimeToLive?) async throws -> Bool {
    try ownInformation.check(key, for: .touch)
    return try await writing([key], [], .touch) { _ in try await base.touch(key, timeToLive: timeToLive) }
  }

  /// Returns the remaining time to live of an entry of the base; see `ExpirableStore`.
  ///
  /// If the key is missing, its cached entry is removed.
  public func remainingTime(forKey key: StoreKey) async throws -> TimeToLive? {
    let time = try await base.remainingTime(forKey: key)
    if time == nil { cache.invalidate(key) }
    return time
  }

  /// Removes expired entries from the base, and removes all cached entries; see `ExpirableStore`.
  @discardableResult
  public func purgeExpired(limit: Int) async throws -> Int {
    try await writing([], [.all], .purgeExpired) { _ in try await base.purgeExpired(limit: limit) }
  }
}

extension CachedStore: FlushableStore where Base: FlushableStore {
  /// Waits until the base has written all accepted changes; see `FlushableStore`.
  public func flush() async throws {
    try await base.flush()
  }
}

extension CachedStore: MaintainableStore where Base: MaintainableStore {
  /// Returns the statistics of the base; see `MaintainableStore`.
  public func storeStatistics() async throws -> StoreStatistics {
    try await base.storeStatistics()
  }

  /// Verifies the base; see `MaintainableStore`.
  public func verify() async throws -> VerificationReport {
    try await base.verify()
  }

  /// Compacts the base; see `MaintainableStore`.
  public func compact() async throws {
    try await base.compact()
  }

  /// Backs up the base; see `MaintainableStore`.
  public func backup(to path: String, compacting: Bool) async throws {
    try await base.backup(to: path, compacting: compacting)
  }
}

/// The limits and times of a ``CachedStore``.
///
/// ```swift
/// var options = CachedStoreOptions<User>(entryLimit: 50_000)
/// options.negativeTimeToLive = .seconds(5)
/// let users = store.cached(options)
/// ```
public struct CachedStoreOptions<Value: Sendable>: Sendable {
  /// A closure that returns the cost of an entry, in a unit of your choice, such as bytes.
  ///
  /// A negative cost counts as zero.
  public typealias Cost = @Sendable (_ key: StoreKey, _ value: Value) -> Int

  /// The maximum number of cached entries.
  ///
  /// Defaults to `nil`, which means 10,000, or as many as ``costLimit`` allows if that is set. If the limit is less
  /// than 1, nothing is cached.
  public var entryLimit: Int?

  /// The maximum total cost of the cached entries.
  ///
  /// Defaults to `nil`, which limits only their number.
  public var costLimit: Int?

  /// A closure that returns the cost of an entry.
  ///
  /// Defaults to `nil`, which means a cost of 1. A cached missing key always costs 1.
  public var cost: Cost?

  /// The policy that decides which entries to evict.
  ///
  /// Defaults to ``EvictionPolicy/adaptive``.
  public var policy: EvictionPolicy = .adaptive

  /// The time to live of cached entries.
  ///
  /// Defaults to ``CacheTimeToLive/unlimited``.
  ///
  /// It is meant for bases that others change directly. Changes made through the cache are visible immediately in any
  /// case.
  public var timeToLive: CacheTimeToLive = .unlimited

  /// The age after which reading a cached entry reloads it in the background.
  ///
  /// Defaults to `nil`, which means never.
  ///
  /// If it is less than the ``timeToLive``, readers of keys in use need not wait for the base, whether or not its reads
  /// suspend. After a failed load, no background load begins for one second, or for this time if it is shorter. If the
  /// error concerns a single key, such as a damaged value, only that key is left alone.
  public var refreshAfter: Duration?

  /// The time for which the cache remembers that the base does not have a key (negative caching).
  ///
  /// Defaults to `nil`, which turns negative caching off.
  public var negativeTimeToLive: Duration?

  /// Whether entries are evicted when the system is short of memory.
  ///
  /// Defaults to `true`.
  public var trimsUnderMemoryPressure = true

  /// Creates options with limits, and defaults for everything else.
  ///
  /// - Parameters:
  ///   - entryLimit: The maximum number of cached entries. Defaults to 10,000, or to no limit if there is a
  ///     `costLimit`.
  ///   - costLimit: The maximum total cost of the cached entries. Defaults to no limit.
  ///   - cost: A closure that returns the cost of an entry. Defaults to a cost of 1 for each entry.
  public init(entryLimit: Int? = nil, costLimit: Int? = nil, cost: Cost? = nil) {
    self.entryLimit = entryLimit
    self.costLimit = costLimit
    self.cost = cost
  }
}
