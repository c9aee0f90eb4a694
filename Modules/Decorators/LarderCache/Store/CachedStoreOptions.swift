public import Larder

/// What a ``CachedStore`` keeps, and for how long.
///
/// ```swift
/// var options = CachedStoreOptions<User>(entryLimit: 50_000)
/// options.missingLifetime = .seconds(5)
/// let users = store.cached(options)
/// ```
public struct CachedStoreOptions<Value: Sendable>: Sendable {
  /// Tells what a copy costs, in a unit of your choice, such as bytes; less than nothing counts as nothing.
  public typealias Cost = @Sendable (_ key: StoreKey, _ value: Value) -> Int

  /// The most copies that there may be; `nil`, the default, for 10,000, or for as many as ``costLimit`` allows where that
  /// is set.
  ///
  /// With none or less nothing is kept.
  public var entryLimit: Int?

  /// The most that all copies together may cost; `nil`, the default, where only their number is limited.
  public var costLimit: Int?

  /// Tells what a copy costs; each costs 1 unless set, and so does the knowledge that a key is missing.
  public var cost: Cost?

  /// What decides which copy has to go; ``EvictionPolicy/adaptive`` unless set.
  public var policy: EvictionPolicy = .adaptive

  /// How long a copy is used at most; ``CacheExpiry/never`` limited unless set.
  ///
  /// It is for bases that others change past the cache. What is written through the cache is seen at once in any case.
  public var expiry: CacheExpiry = .never

  /// The age from which the copy that a read uses is loaded anew behind it; `nil`, the default, where none is.
  ///
  /// Less than the lifetime of ``expiry``, it spares the readers of keys in use the wait for the base, whether the
  /// base's reads suspend or not. When such a load fails, none is begun for the next second, or for this time if it is
  /// shorter; where the error is that of one key, such as a damaged value, only that key is left alone.
  public var refreshAge: Duration?

  /// How long it is remembered that the base does not have a key; `nil`, the default, where it is not.
  public var missingLifetime: Duration?

  /// Whether copies are given up where the system is short of memory; they are unless set.
  public var trimsUnderMemoryPressure = true

  /// Makes options: limits, and for all else what is the default.
  ///
  /// - Parameters:
  ///   - entryLimit: The most copies that there may be; 10,000 unless given, and not limited where there is a
  ///     `costLimit`.
  ///   - costLimit: The most that all copies together may cost; unlimited unless given.
  ///   - cost: Tells what a copy costs; each costs 1 unless given.
  public init(entryLimit: Int? = nil, costLimit: Int? = nil, cost: Cost? = nil) {
    self.entryLimit = entryLimit
    self.costLimit = costLimit
    self.cost = cost
  }
}
