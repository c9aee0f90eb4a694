public import Larder

/// The times and the prefix of the copies of a ``TieredStore``.
///
/// ``timeToLive``, ``refreshAfter`` and ``negativeTimeToLive`` mean the same as in a ``CachedStoreConfiguration``. A cache in
/// memory has limits for its size besides, while the cache on disk, such as a bounded store, has its own.
public struct TieredStoreConfiguration: Sendable {
  /// The time to live of copies, which their use does not prolong.
  ///
  /// Defaults to `nil`, for no limit, which only a base that is exclusive and `Durability.synced` permits. Another base needs
  /// a time to live of your choice: with the 60 seconds of a ``CachedStore``, hardly a copy would be used after a restart.
  ///
  /// Ages are measured by the wall clock, from the beginning of the read or write of the base. A copy whose time lies in the
  /// future, because the clock was set back, is not used.
  public var timeToLive: Duration?

  /// The age after which reading a copy reloads the entry in the background (stale-while-revalidate).
  ///
  /// Defaults to `nil`, meaning never.
  ///
  /// If it is less than the ``timeToLive``, readers of keys in use need not wait for the base. After a failed load, no
  /// background load begins for one second, or for this time if it is shorter. If the error concerns a single key, such as a
  /// damaged value, only that key is left alone.
  public var refreshAfter: Duration?

  /// The time that the cache remembers that the base does not have a key (negative caching).
  ///
  /// Defaults to `nil`, to turn negative caching off. The ``timeToLive`` applies, too.
  public var negativeTimeToLive: Duration?

  /// The reads while the base has not known of all commits for longer than ``maximumLag``.
  ///
  /// Defaults to ``LaggingReads/loadFromBase``. With ``LaggingReads/serveStale``, copies of earlier processes are used, too.
  public var whenReportsLag: LaggingReads = .loadFromBase

  /// The time that a value that another host has replaced may still be read, over a base that reports the commits of all
  /// hosts.
  ///
  /// Defaults to one second.
  public var maximumLag = Duration.seconds(1)

  /// The prefix of the keys in the cache.
  ///
  /// Defaults to an empty prefix. Several stores can share a cache if no prefix begins with another one.
  public var keyPrefix: StoreKey = ""

  /// A Boolean value that indicates whether the copies of encrypted values may be in plain form.
  ///
  /// Defaults to `false`. Then the codec of the copies, or the cache, must encrypt them.
  public var allowsPlainCopies = false

  /// A closure that runs the load of a key while no other host runs one of the same key, or `nil` for no such limit.
  ///
  /// It receives the key and the load, which it must call once, and throw its error. A lock in a store that the hosts share
  /// fits:
  ///
  /// ```swift
  /// configuration.loadingAlone = { key, load in try await locks.withLock(key) { _ in try await load() } }
  /// ```
  ///
  /// Hosts that waited find the copy in the cache, if they share it, and do not load the value again. In a shared cache, values
  /// can be as old as ``timeToLive``; see ``TieredStore``. Loads of several keys in one call, and those with the policy
  /// ``LoadPolicy/reload``, are not limited. Defaults to `nil`.
  public var loadingAlone:
    (@Sendable (_ key: StoreKey, _ load: @Sendable () async throws -> Void) async throws -> Void)?

  /// A closure that receives each error of reading or writing copies that no caller receives, such as that of a copy that
  /// cannot be decoded.
  ///
  /// Defaults to `nil`. ``TieredStoreStatistics/cacheFailures`` counts the errors in any case.
  public var onCacheFailure: (@Sendable (_ error: any Error) -> Void)?

  /// Creates a configuration.
  ///
  /// - Parameters:
  ///   - timeToLive: The time to live of copies. Defaults to no limit.
  ///   - refreshAfter: The age after which reading a copy reloads the entry in the background. Defaults to never.
  ///   - negativeTimeToLive: The time that the cache remembers that the base does not have a key. Defaults to not at all.
  public init(timeToLive: Duration? = nil, refreshAfter: Duration? = nil, negativeTimeToLive: Duration? = nil) {
    self.timeToLive = timeToLive
    self.refreshAfter = refreshAfter
    self.negativeTimeToLive = negativeTimeToLive
  }

  /// Checks the configuration for a base.
  func check(for base: StoreInformation) throws {
    func check(_ isValid: Bool, _ message: String) throws {
      guard !isValid else { return }
      throw StoreError(.invalidArgument, during: .open, store: base.name, message: message)
    }
    for (name, age) in [
      ("timeToLive", timeToLive), ("refreshAfter", refreshAfter), ("negativeTimeToLive", negativeTimeToLive),
    ] {
      if let age { try check(age > .zero, "\(name) must be greater than zero, not \(age)") }
    }
    guard timeToLive == nil else { return }
    try check(
      base.sharing == .exclusive,
      "a cache in front of a store that others can change needs a timeToLive, after which it asks the store again")
    try check(
      base.durability == .synced,
      "a cache that outlives writes that its store can lose needs a timeToLive, after which it asks the store again")
  }
}

/// The statistics of a ``TieredStore`` since it was created.
///
/// The counts are exact when no operation is running.
public struct TieredStoreStatistics: Sendable, Hashable {
  /// The number of reads of a key that the cache answered.
  public var hits = 0

  /// The number of reads of a key that the cache could not answer.
  public var misses = 0

  /// The number of reads of the base, for one key or several, including background loads.
  public var loads = 0

  /// The number of loads that failed.
  ///
  /// A failed background load appears nowhere else.
  public var loadFailures = 0

  /// The number of reads of a key that waited for a load started by another reader.
  public var sharedLoads = 0

  /// The number of errors of the cache that no caller received.
  public var cacheFailures = 0

  /// Creates statistics with all counts at zero.
  public init() {}
}
