public import Larder

/// A store in front of another that keeps copies of what is used most in memory.
///
/// ```swift
/// let users = try await LMDBStore<User>(path: path).cached(CachedStoreOptions(entryLimit: 50_000))
/// let user = try await users.value(forKey: "user:1")      // from the base, and then from memory
/// try await users.setValue(ada, forKey: "user:2")         // to the base, and then to memory
/// ```
///
/// Many readers who miss the same key read the base once. Writes go through to the base at once, and mean what they
/// mean there; what a write changes is seen by every read that begins after it, and the promises of `DataStore` hold
/// under any races: to whoever uses the store through this object it looks like the base.
///
/// **It sees only the writes that are made through it.** Where others write to the base, another process or another
/// object, a copy may be old until its time is over (``CachedStoreOptions/expiry``), or until ``invalidate(_:)``. For
/// the same reason a store whose entries expire belongs above a cache, not below it.
///
/// The values are kept as they are, without encoding them: a value of a class is shared with whoever reads it.
///
/// A scan goes to the base. An error is never kept, and all who waited for the same load get it, but for those who did
/// not ask for the key that it names: what they asked for is loaded again. Closing waits for the loads that run.
public final class CachedStore<Base: DataStore>: DataStore {
  /// What the base keeps.
  public typealias Value = Base.Value

  /// The store that keeps everything.
  public let base: Base

  /// What is kept in memory, and for how long.
  public let options: CachedStoreOptions<Base.Value>

  /// What is in memory.
  @usableFromInline let cache: CopyCache

  /// The loads, the reads of several keys and the writes, for which closing waits.
  let operations = RunningOperations()

  /// What ``information`` says without the maintenance, taken once: each operation checks its arguments by it.
  let ownInformation: StoreInformation

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
    cache = CopyCache(options, clock: clock)
  }

  /// What the base says of itself.
  public var information: StoreInformation { base.information }

  /// What happened since the store was made.
  public var statistics: CachedStoreStatistics { cache.statistics }

  // MARK: Values

  /// Puts a value in a box for the cache.
  func box(_ value: Value) -> any CachedValue {
    ValueBox(value)
  }

  /// Takes a value out of its box.
  @inlinable
  func value(of box: any CachedValue) -> Value {
    // Every box in the cache of this store was made by this store, by the method above.
    unsafeDowncast(box, to: ValueBox<Value>.self).value
  }

  /// Makes a copy of what the base has under a key; what that costs is asked here, without any lock.
  ///
  /// - Parameters:
  ///   - box: The value; `nil` where the key is missing.
  ///   - key: The key.
  /// - Returns: The copy, or `nil` where it is not to be remembered that a key is missing.
  func makeCopy(of box: (any CachedValue)?, forKey key: StoreKey) -> CachedCopy? {
    var cost = 1
    if let box, let costOfValue = options.cost { cost = costOfValue(key, value(of: box)) }
    return cache.makeCopy(of: box, cost: cost)
  }

  // MARK: Lifecycle

  /// Makes everything written before durable, in the base.
  public func synchronize() async throws {
    try await base.synchronize()
  }

  /// Waits for running operations, loads behind a reader included, forgets all copies and closes the base.
  public func close() async throws {
    cache.beginClosing()
    await operations.close()
    cache.invalidateAll()
    try await base.close()
  }

  /// Throws the error of a closed store once closing has begun.
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
  /// The base, in brackets.
  public var description: String { "CachedStore[\(base)]" }
}
