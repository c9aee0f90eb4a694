public import Larder
import Synchronization

/// A store in front of another that keeps copies of what is used most in memory.
///
/// ```swift
/// let users = try await LMDBStore<User>(path: path).cached(CachedStoreOptions(entryLimit: 50_000))
/// let user = try await users.value(forKey: "user:1")      // from the base, and then from memory
/// try await users.setValue(ada, forKey: "user:2")         // to the base, and then to memory
/// ```
///
/// Many readers who miss the same key read the base once. Writes go through to the base at once, and mean what they mean
/// there; what a write changes is seen by every read that begins after it, and the promises of `DataStore` hold under any
/// races: to whoever uses the store through this object it looks like the base.
///
/// **It sees only the writes that are made through it.** Where others write to the base, another process or another object,
/// a copy may be old until its time is over (``CachedStoreOptions/expiry``), or until ``invalidate(_:)``. For the same reason a
/// store whose entries expire belongs above a cache, not below it.
///
/// The values are kept as they are, without encoding them: a value of a class is shared with whoever reads it.
///
/// A scan goes to the base. An error is never kept, and all who waited for the same load get it. Closing waits for the loads that run.
public final class CachedStore<Base: DataStore>: DataStore {
  /// What the base keeps.
  public typealias Value = Base.Value

  /// The store that keeps everything.
  public let base: Base

  /// What is kept in memory, and for how long.
  public let options: CachedStoreOptions<Base.Value>

  // A hit takes no lock but those inside the cache. A copy is there only while its key is not busy: a write makes the key
  // busy, then removes the copy, and only then calls the base; and while the key is busy no copy is inserted, since an
  // insert and the question whether it is allowed are one step under the lock of the shard, where keys become busy. So
  // while a copy can be found no write runs in the base, and the copy is what the base has.
  let copies: MemoryCache<StoreKey, CachedCopy<Base.Value>>
  let shards: [CacheShard<Base.Value>]
  let lifetime: CopyLifetime
  let counters = CachedStoreCounters()

  /// The loads, the reads of several keys and the writes, for which closing waits.
  let operations = RunningOperations()

  /// What ``information`` says without the maintenance, taken once: each operation checks its arguments by it.
  let ownInformation: StoreInformation

  private let isClosing = Atomic(false)
  private let now: @Sendable () -> Duration

  /// Puts a cache in front of a store.
  ///
  /// - Parameters:
  ///   - base: The store that keeps everything.
  ///   - options: What is kept in memory, and for how long; 10,000 copies unless given.
  ///   - clock: What measures that time; a `ContinuousClock` unless given.
  public init(
    _ base: Base, options: CachedStoreOptions<Base.Value> = CachedStoreOptions(),
    clock: any Clock<Duration> = ContinuousClock()
  ) {
    self.base = base
    self.options = options
    var information = base.information
    information.maintenance = nil
    ownInformation = information
    lifetime = CopyLifetime(options)
    now = CachedStore.elapsedTime(of: clock)
    shards = (0..<CachedStore.shardCount).map { _ in CacheShard() }
    var expiry = options.expiry
    if let afterWrite = expiry.afterWrite { expiry.afterWrite = afterWrite + options.staleLifetime }
    copies = MemoryCache(
      entryLimit: options.entryLimit, costLimit: options.costLimit, policy: options.policy, expiry: expiry,
      clock: clock,
      trimsUnderMemoryPressure: options.trimsUnderMemoryPressure, cost: { _, copy in copy.cost },
      onRemoval: { _, copy, _ in LateRelease.keep(copy) })
  }

  private static func elapsedTime(of clock: some Clock<Duration>) -> @Sendable () -> Duration {
    let start = clock.now
    return { start.duration(to: clock.now) }
  }

  /// What the base says of itself.
  public var information: StoreInformation { base.information }

  /// What happened since the store was made.
  public var statistics: CachedStoreStatistics {
    counters.statistics(of: copies.statistics)
  }

  // MARK: Shards

  private static var shardCount: Int { 64 }

  func shardIndex(of key: StoreKey) -> Int {
    Int(truncatingIfNeeded: UInt(bitPattern: key.hashValue) % UInt(shards.count))
  }

  func shard(of key: StoreKey) -> CacheShard<Value> {
    shards[shardIndex(of: key)]
  }

  // MARK: Copies

  /// Makes a copy of what the base has under a key; what that costs is asked here, without any lock.
  ///
  /// - Parameters:
  ///   - value: The value; `nil` where the key is missing.
  ///   - key: The key.
  /// - Returns: The copy, or `nil` where it is not to be remembered that a key is missing.
  func makeCopy(of value: Value?, forKey key: StoreKey) -> CachedCopy<Value>? {
    guard value != nil || options.missingLifetime != nil else { return nil }
    var cost = 1
    if let value, let costOfValue = options.cost { cost = max(0, costOfValue(key, value)) }
    return CachedCopy(value: value, cost: cost, time: lifetime.matters ? now() : .zero)
  }

  /// Puts the copy of a key in the cache, in place of another, or removes the other where there is none.
  ///
  /// It is called under the lock of the shard, inside ``LateRelease/after(_:)``.
  func keep(_ copy: CachedCopy<Value>?, forKey key: StoreKey, in state: inout CacheShard<Value>.State) {
    guard var copy else {
      copies.removeValue(forKey: key)
      return
    }
    copy.stamp = state.nextStamp()
    copies.setValue(copy, forKey: key)
  }

  /// What a reader is to do with a copy.
  func stage(of copy: CachedCopy<Value>) -> CopyLifetime.Stage {
    guard lifetime.matters else { return .fresh }
    return lifetime.stage(isMissing: copy.value == nil, age: now() - copy.time)
  }

  // MARK: Lifecycle

  /// Makes everything written before durable, in the base.
  public func synchronize() async throws {
    try await base.synchronize()
  }

  /// Waits for running operations, loads behind a reader included, forgets all copies and closes the base.
  public func close() async throws {
    isClosing.store(true, ordering: .releasing)
    await operations.close()
    copies.removeAll()
    try await base.close()
  }

  /// Throws the error of a closed store once closing has begun.
  func checkOpen(for operation: StoreOperation) throws {
    if isClosing.load(ordering: .acquiring) { throw ownInformation.closedError(for: operation) }
  }

  /// Runs an operation for which closing waits.
  func running<Result>(_ operation: StoreOperation, _ body: () async throws -> Result) async throws -> Result {
    guard operations.begin() else { throw ownInformation.closedError(for: operation) }
    defer { operations.end() }
    return try await body()
  }
}

extension CachedStore: CustomStringConvertible {
  /// The base, in brackets.
  public var description: String { "CachedStore[\(base)]" }
}
