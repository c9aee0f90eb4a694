public import Larder
import Synchronization

/// The in-memory part of a ``CachedStore``, with its entries and the state of the keys.
///
/// It knows neither the base nor the type of the values.
///
/// A hit takes no lock except those of the ``MemoryCache``. An entry is cached only while its key is not busy. A write
/// marks the key as busy, then removes the entry, and only then calls the base. While the key is busy, no entry is
/// inserted, because an insertion and the check whether it is allowed are one step under the lock under which keys
/// become busy. Therefore, no write is running in the base while an entry can be found, and the entry is what the base
/// has, except for a write beside the cache that the base has not reported yet.
@usableFromInline
final class EntryCache: Sendable {
  typealias Keys = BusyKeys<SharedLoad.Part>

  private typealias Entries = MemoryCache<StoreKey, CachedEntry>

  private struct State: Sendable {
    var busy = Keys()
    var refreshes = Refreshes()
    var lastStamp: UInt64 = 0
    /// The statistics, with corrections of the hits and misses that the `MemoryCache` counts.
    var statistics = CachedStoreStatistics()
  }

  /// The way to answer a read of a key that was not cached.
  enum Reading {
    /// With an entry that another load has cached in the meantime.
    case found(CachedEntry)
    /// With a read of the base.
    case base(Keys.Reading)
  }

  /// A running write.
  struct Write: Sendable {
    fileprivate let keys: [Keys.KeyWrite]
    fileprivate let ranges: [Keys.RangeWrite]
  }

  /// The longest time after a failed background load during which no other one begins, or none of the key at fault.
  private static var longestRefreshPause: Duration { .seconds(1) }

  private let entries: Entries
  // Its lock comes before the locks of the `MemoryCache`. Values are inserted into that cache while the lock is held, and
  // the lock is never taken while one of those is held.
  private let state = Locked(State())
  private let negativeTimeToLive: Duration?
  private let refreshAfter: Duration?
  private let time: ElapsedTime
  private let isClosing = Atomic(false)

  /// The time to live of entries of a base whose changes by other programs are not reported.
  static let timeToLiveWithoutReports = Duration.seconds(60)

  init<Value>(_ configuration: CachedStoreConfiguration<Value>, hearsOfAllCommits: Bool, clock: any Clock<Duration>) {
    negativeTimeToLive = configuration.negativeTimeToLive
    refreshAfter = configuration.refreshAfter
    time = ElapsedTime(by: clock)
    var cost: Entries.Cost?
    if configuration.cost != nil { cost = { _, entry in entry.cost } }
    entries = MemoryCache(
      entryLimit: configuration.entryLimit, costLimit: configuration.costLimit, policy: configuration.policy,
      timeToLive: configuration.timeToLive
        ?? (hearsOfAllCommits ? .unlimited : CacheTimeToLive(afterWrite: Self.timeToLiveWithoutReports)),
      clock: clock, trimsUnderMemoryPressure: configuration.trimsUnderMemoryPressure, cost: cost)
  }

  /// The statistics since the cache was created.
  var statistics: CachedStoreStatistics {
    let cache = entries.statistics()
    var statistics = state.withLock { $0.statistics }
    statistics.hits += cache.hits
    statistics.misses += cache.misses
    statistics.evictions = cache.evictions
    return statistics
  }

  /// Changes the statistics.
  func count(_ change: (inout CachedStoreStatistics) -> Void) {
    state.withLock { change(&$0.statistics) }
  }

  /// Counts cached entries that were found and not used.
  func countPassedOver(_ number: Int) {
    count {
      $0.hits -= number
      $0.misses += number
    }
  }

  /// A Boolean value that indicates whether no read and no write is running.
  var isIdle: Bool {
    state.withLock { $0.refreshes.count == 0 && $0.busy.isIdle }
  }

  /// A Boolean value that indicates whether the age of an entry can matter.
  private var agesMatter: Bool { negativeTimeToLive != nil || refreshAfter != nil }

  /// Ends the use of cached entries.
  func beginClosing() {
    isClosing.store(true, ordering: .releasing)
  }

  /// A Boolean value that indicates whether ``beginClosing()`` was called.
  var hasBegunClosing: Bool { isClosing.load(ordering: .acquiring) }

  // MARK: Entries

  /// A Boolean value that indicates whether a cached value can be returned without checking anything else, which is the
  /// common case.
  var hasPlainEntries: Bool { !agesMatter && !hasBegunClosing }

  /// Returns the cached value of a key if nothing else has to be checked.
  @usableFromInline
  func plainValue(forKey key: StoreKey) -> (any CachedValue)? {
    hasPlainEntries ? entries.value(forKey: key)?.value : nil
  }

  /// Returns the entry of a key that a reader may use.
  ///
  /// - Parameter key: The key.
  /// - Returns: The entry, and whether it is due for a refresh.
  func entry(of key: StoreKey) -> (entry: CachedEntry, isDue: Bool)? {
    guard let entry = entries.value(forKey: key) else { return nil }
    guard agesMatter else { return (entry, false) }
    let time = time.duration
    guard !hasExpired(entry, at: time) else {
      countPassedOver(1)
      return nil
    }
    return (entry, refreshAfter.map { time - entry.time >= $0 } ?? false)
  }

  /// Returns whether an entry of negative caching has expired.
  private func hasExpired(_ entry: CachedEntry, at time: Duration) -> Bool {
    guard entry.value == nil, let negativeTimeToLive else { return false }
    return time - entry.time >= negativeTimeToLive
  }

  /// Returns whether an entry has been cached without interruption, in which case the base has had its value all the
  /// time.
  func isStillThere(_ entry: CachedEntry, _ key: StoreKey) -> Bool {
    entries.peekValue(forKey: key)?.stamp == entry.stamp
  }

  /// Returns an entry for a value of the base.
  ///
  /// - Parameters:
  ///   - value: The value, or `nil` if the key is missing.
  ///   - cost: The cost of the value.
  /// - Returns: The entry, or `nil` if the key is missing and negative caching is off.
  func makeEntry(of value: (any CachedValue)?, cost: Int) -> CachedEntry? {
    guard value != nil || negativeTimeToLive != nil else { return nil }
    return CachedEntry(value: value, cost: max(0, cost), time: agesMatter ? time.duration : .zero)
  }

  /// Stores the entry of a key, or removes the cached one if there is no entry.
  ///
  /// It must be called under the lock.
  ///
  /// - Returns: The removed entries, to be released after unlocking. The deinitializer of a value may run code of its
  ///   user, which may call the store and would then deadlock.
  private func keep(
    _ entry: CachedEntry?, forKey key: StoreKey, in state: inout State
  ) -> RemovedEntries<StoreKey, CachedEntry> {
    guard var entry else { return entries.take(key) }
    state.lastStamp += 1
    entry.stamp = state.lastStamp
    return entries.put(entry, forKey: key)
  }

  // MARK: Reads of the base

  /// Begins a read of the base for a reader that found no entry, or that wants the current value of the base.
  ///
  /// - Parameters:
  ///   - key: The key.
  ///   - isReload: A Boolean value that indicates whether the current value of the base is wanted.
  ///   - makeLoad: A closure that creates the load for others to join, if this reader leads.
  func beginReading(_ key: StoreKey, isReload: Bool, makeLoad: () -> SharedLoad.Part) -> Reading {
    let time = agesMatter ? time.duration : .zero
    return state.withLock { state in
      // Another load may have ended after the lookup. Its entry is good for all readers that would join. It is still
      // cached, so no write has begun since.
      if !isReload, let entry = entries.peekValue(forKey: key), !hasExpired(entry, at: time) {
        state.statistics.hits += 1
        state.statistics.misses -= 1
        return .found(entry)
      }
      if isReload {
        state.statistics.misses += 1
        return .base(state.busy.beginReloading(key, makeLoad: makeLoad))
      }
      let reading = state.busy.beginReading(key, makeLoad: makeLoad)
      if case .joining = reading { state.statistics.sharedLoads += 1 }
      return .base(reading)
    }
  }

  /// Ends a read of the base, and caches its result if that is allowed.
  ///
  /// - Parameters:
  ///   - fill: The read, or `nil` if the key was busy.
  ///   - key: The key.
  ///   - isReload: A Boolean value that indicates whether no value may stay that may be older.
  ///   - entry: The entry that was read.
  func end(_ fill: Keys.Fill?, of key: StoreKey, isReload: Bool, keeping entry: CachedEntry?) {
    guard fill != nil || isReload else { return }
    let removed = state.withLock { state in
      let isCurrent = fill.map { state.busy.end($0) } ?? false
      if isReload { state.busy.invalidate(key) }
      return isCurrent || isReload ? keep(isCurrent ? entry : nil, forKey: key, in: &state) : RemovedEntries()
    }
    // An entry that the cache refuses is also released here, not under the lock.
    withExtendedLifetime((entry, removed)) {}
  }

  /// Ends a read of the base without caching a result, because there isn't one or another reader performs the read.
  ///
  /// - Returns: A Boolean value that indicates whether the key has not been changed since.
  @discardableResult
  func end(_ fill: Keys.Fill) -> Bool {
    state.withLock { $0.busy.end(fill) }
  }

  // MARK: Background loads

  /// Begins a background load, unless too many others are running or one has failed a short time ago.
  ///
  /// - Parameter keys: The keys of the entries that are due.
  /// - Returns: The keys that may be loaded, or `nil` if there isn't one. If it is not `nil`, call
  ///   ``endRefresh(of:failure:)``.
  func beginRefresh(of keys: [StoreKey]) -> Set<StoreKey>? {
    let time = time.duration
    return state.withLock { $0.refreshes.begin(keys, at: time) }
  }

  /// Ends a background load begun with ``beginRefresh(of:)``.
  ///
  /// - Parameters:
  ///   - keys: The keys that were read.
  ///   - failure: The error of the base, or `nil` if the read succeeded.
  func endRefresh(of keys: [StoreKey], failure: (any Error)?) {
    let time = time.duration
    let pauseEnd = time + min(refreshAfter ?? .zero, EntryCache.longestRefreshPause)
    state.withLock { $0.refreshes.end(keys, failure: failure, at: time, pauseEnd: pauseEnd) }
  }

  /// Begins a background read of a key, unless its entry is gone or the key is busy or being read.
  func beginRefreshing(_ key: StoreKey, _ entry: CachedEntry, _ load: SharedLoad.Part) -> Keys.Fill? {
    state.withLock { state in
      isStillThere(entry, key) ? state.busy.beginRefreshing(key, makeLoad: { load })?.fill : nil
    }
  }

  // MARK: Writes

  /// Marks all keys of a write as busy, and then removes their entries.
  ///
  /// - Parameters:
  ///   - keys: The keys that it names, each once.
  ///   - ranges: The ranges that it removes.
  func beginWrite(_ keys: [StoreKey], _ ranges: [KeyRange]) -> Write {
    // The lock is taken for one key at a time, so that others need not wait for all of a large batch.
    let rangeWrites = ranges.map { range in state.withLock { $0.busy.beginWrite(in: range) } }
    let keyWrites = keys.map { key in state.withLock { $0.busy.beginWrite(of: key, besides: rangeWrites) } }
    for key in keys { entries.removeValue(forKey: key) }
    if !ranges.isEmpty { entries.removeAll { key in ranges.contains { $0.contains(key) } } }
    return Write(keys: keyWrites, ranges: rangeWrites)
  }

  /// Ends a write, and caches the new entries if that is allowed.
  ///
  /// - Parameters:
  ///   - write: The write.
  ///   - entries: The new entry of each key, or `nil` if they are not known.
  ///   - readOnly: The indices of the keys that the write has only read. Defaults to an empty set.
  func end(_ write: Write, keeping entries: [CachedEntry?]?, readOnly: Set<Int> = []) {
    for range in write.ranges { state.withLock { $0.busy.end(range) } }
    for (index, key) in write.keys.enumerated() {
      let removed = state.withLock { state -> RemovedEntries<StoreKey, CachedEntry>? in
        guard state.busy.end(key, isReported: !readOnly.contains(index)), let entries else { return nil }
        return keep(entries[index], forKey: key.key, in: &state)
      }
      withExtendedLifetime(removed) {}
    }
    withExtendedLifetime(entries) {}
  }

  // MARK: Invalidation

  /// Removes the entry of a key, and prevents running reads and writes from caching one.
  func invalidate(_ key: StoreKey) {
    state.withLock { $0.busy.invalidate(key) }
    entries.removeValue(forKey: key)
  }

  /// Removes the entries in a range, and prevents running reads and writes from caching any.
  func invalidate(in range: KeyRange) {
    state.withLock { $0.busy.invalidate(in: range) }
    entries.removeAll { range.contains($0) }
  }

  /// Removes the entries that the base has reported, and prevents running reads, and writes of others, from caching
  /// any.
  func receive(_ event: StoreEvent) {
    switch event {
    case .changed(let changes):
      for change in changes {
        switch change {
        case .key(let key):
          _ = state.withLock { $0.busy.report(key) }
          // Also if the key is busy. Its writer may not have removed the entry yet.
          entries.removeValue(forKey: key)
        case .range(let range):
          if let key = range.onlyKey { invalidate(key) } else { invalidate(in: range) }
        }
      }
    case .closed:
      // The base reports nothing any more, and refuses every read.
      invalidate(in: .all)
    }
  }
}

/// The state of a key in the cache of a ``CachedStore``: its value, or the knowledge that it is missing.
///
/// It does not depend on the type of the value, so the cache is compiled once, for concrete types. In generic code that
/// is not specialized, an insertion takes 2.6 µs instead of 1.1 µs and a lookup 300 ns instead of 50 ns. A miss through
/// the full stack would exceed its limit in `Docs/BenchmarkResults.md`.
struct CachedEntry: Sendable {
  /// The value, or `nil` if the base does not have the key.
  let value: (any CachedValue)?

  /// The cost of the entry.
  let cost: Int

  /// The time when it was created, by the clock of the store, or zero if ages do not matter.
  let time: Duration

  /// A number that distinguishes it from every earlier and later entry of the key, even from an equal one.
  var stamp: UInt64 = 0
}

/// A value of a ``CachedStore``, of any type.
@usableFromInline
protocol CachedValue: AnyObject, Sendable {}

/// A box for a value of a ``CachedStore`` of a known type.
@usableFromInline
final class ValueBox<Value: Sendable>: CachedValue {
  @usableFromInline let value: Value

  init(_ value: Value) {
    self.value = value
  }
}
