public import Larder
import Synchronization

/// The memory of a ``CachedStore``: copies by key, and what goes on with the keys.
///
/// It knows neither the base nor the type of the values.
///
/// A hit takes no lock but those inside the cache of the copies. A copy is there only while its key is not busy: a
/// write makes the key busy, then removes the copy, and only then calls the base; and while the key is busy no copy is
/// inserted, since an insert and the question whether it is allowed are one step under the lock of the shard, where
/// keys become busy. So while a copy can be found no write runs in the base, and the copy is what the base has.
@usableFromInline
final class CopyCache: Sendable {
  typealias Keys = BusyKeys<SharedLoad.Part>

  private typealias Copies = MemoryCache<StoreKey, CachedCopy>

  /// What goes on with a part of the keys.
  ///
  /// Its lock comes before the locks of the cache: values are inserted into the cache while it is held, and never is it
  /// taken while one of those is held.
  private final class Shard: Sendable {
    struct State: Sendable {
      var busy = Keys()
      var lastStamp: UInt64 = 0
    }

    let state = Mutex(State())

    func withLock<Result: Sendable>(_ body: (inout State) -> Result) -> Result {
      state.withLock { state in body(&state) }
    }
  }

  /// How a read of a key that had no copy is answered.
  enum Reading {
    /// By a copy that another load has brought meanwhile.
    case found(CachedCopy)
    /// By the base.
    case base(Keys.Reading)
  }

  /// What came of the first look for a copy.
  @usableFromInline
  enum FirstLook: Sendable {
    /// The value of the copy.
    case value(any CachedValue)
    /// There is no copy.
    case nothing
    /// Nobody looked: there is more to ask than whether there is a copy.
    case none
  }

  /// A write that runs.
  struct Write: Sendable {
    /// The part of it that touches one shard.
    fileprivate struct Part: Sendable {
      let shard: Int
      /// The places of its keys among those of the write.
      let places: [Int]
      var keys: [Keys.KeyWrite] = []
      var ranges: [Keys.RangeWrite] = []
    }

    fileprivate let keys: [StoreKey]
    fileprivate var parts: [Part]
  }

  /// What happened.
  let counters = CachedStoreCounters()

  private static var shardCount: Int { 64 }

  /// How long no load behind a reader is begun after one has failed, or none of the key at fault, unless copies are due
  /// more often.
  private static var longestRefreshPause: Duration { .seconds(1) }

  private let copies: Copies
  private let shards: [Shard]
  private let missingLifetime: Duration?
  private let refreshAge: Duration?
  private let refreshes = Mutex(Refreshes())
  private let now: @Sendable () -> Duration
  private let isClosing = Atomic(false)

  init<Value>(_ options: CachedStoreOptions<Value>, clock: any Clock<Duration>) {
    missingLifetime = options.missingLifetime
    refreshAge = options.refreshAge
    now = CopyCache.elapsedTime(of: clock)
    shards = (0..<CopyCache.shardCount).map { _ in Shard() }
    var cost: Copies.Cost?
    if options.cost != nil { cost = { _, copy in copy.cost } }
    copies = MemoryCache(
      entryLimit: options.entryLimit, costLimit: options.costLimit, policy: options.policy, expiry: options.expiry,
      clock: clock, trimsUnderMemoryPressure: options.trimsUnderMemoryPressure, cost: cost)
  }

  private static func elapsedTime(of clock: some Clock<Duration>) -> @Sendable () -> Duration {
    let start = clock.now
    return { start.duration(to: clock.now) }
  }

  /// What happened since the cache was made.
  var statistics: CachedStoreStatistics { counters.statistics(of: copies.statistics) }

  /// Whether no read and no write goes on.
  var isIdle: Bool {
    refreshes.withLock { $0.count == 0 } && shards.allSatisfy { $0.withLock { $0.busy.isIdle } }
  }

  private func shardIndex(of key: StoreKey) -> Int {
    Int(truncatingIfNeeded: UInt(bitPattern: key.hashValue) % UInt(shards.count))
  }

  private func shard(of key: StoreKey) -> Shard {
    shards[shardIndex(of: key)]
  }

  /// Whether the age of any copy matters.
  private var agesMatter: Bool { missingLifetime != nil || refreshAge != nil }

  /// Lets nobody look for copies any more.
  func beginClosing() {
    isClosing.store(true, ordering: .releasing)
  }

  /// Whether ``beginClosing()`` was called.
  var hasBegunClosing: Bool { isClosing.load(ordering: .acquiring) }

  // MARK: Copies

  /// Looks for the copy of a key where no more is to be asked, as is the rule.
  @usableFromInline
  func look(for key: StoreKey) -> FirstLook {
    guard !agesMatter, !hasBegunClosing else { return .none }
    guard let copy = copies.value(forKey: key), let value = copy.value else { return .nothing }
    return .value(value)
  }

  /// The copy of a key that a reader may use.
  ///
  /// - Parameter key: The key.
  /// - Returns: The copy, and whether it is to be loaded anew.
  func copy(of key: StoreKey) -> (copy: CachedCopy, isDue: Bool)? {
    guard let copy = copies.value(forKey: key) else { return nil }
    guard agesMatter else { return (copy, false) }
    let time = now()
    guard !isOver(copy, at: time) else {
      counters.passedOver.add(1, ordering: .relaxed)
      return nil
    }
    return (copy, refreshAge.map { time - copy.time >= $0 } ?? false)
  }

  /// Whether a copy that is the knowledge that a key is missing is too old.
  private func isOver(_ copy: CachedCopy, at time: Duration) -> Bool {
    guard copy.value == nil, let missingLifetime else { return false }
    return time - copy.time >= missingLifetime
  }

  /// Whether a copy has been there without a break: then the base has had that value all the time.
  func isStillThere(_ copy: CachedCopy, _ key: StoreKey) -> Bool {
    copies.peekValue(forKey: key)?.stamp == copy.stamp
  }

  /// Makes a copy of what the base has under a key.
  ///
  /// - Parameters:
  ///   - value: The value; `nil` where the key is missing.
  ///   - cost: What it costs.
  /// - Returns: The copy, or `nil` where it is not to be remembered that a key is missing.
  func makeCopy(of value: (any CachedValue)?, cost: Int) -> CachedCopy? {
    guard value != nil || missingLifetime != nil else { return nil }
    return CachedCopy(value: value, cost: max(0, cost), time: agesMatter ? now() : .zero)
  }

  /// Puts the copy of a key in its place, or removes the one that is there where there is none.
  ///
  /// It is called under the lock of the shard.
  ///
  /// - Returns: What left the cache, to be released after the lock: the end of a value may run code of its user, which
  ///   may call the store, and would wait for the lock for ever.
  private func keep(
    _ copy: CachedCopy?, forKey key: StoreKey, in state: inout Shard.State
  ) -> RemovedEntries<StoreKey, CachedCopy> {
    guard var copy else { return copies.take(key) }
    state.lastStamp += 1
    copy.stamp = state.lastStamp
    return copies.put(copy, forKey: key)
  }

  // MARK: Reads of the base

  /// Begins a base read for a reader who found no copy, or who wants what the base has now.
  ///
  /// - Parameters:
  ///   - key: The key.
  ///   - isReload: Whether what the base has now is wanted.
  ///   - makeLoad: Makes the load for others to join, where this reader leads.
  func beginReading(_ key: StoreKey, isReload: Bool, makeLoad: () -> SharedLoad.Part) -> Reading {
    if isReload { counters.reloads.add(1, ordering: .relaxed) }
    let time = agesMatter ? now() : .zero
    let reading: Reading = shard(of: key).withLock { state in
      // Another load may have ended after the reader looked. That copy is good for all who would join: it is there, so
      // no write has begun since.
      if !isReload, let copy = copies.peekValue(forKey: key), !isOver(copy, at: time) { return .found(copy) }
      return .base(
        isReload
          ? state.busy.beginReloading(key, makeLoad: makeLoad) : state.busy.beginReading(key, makeLoad: makeLoad))
    }
    switch reading {
    case .found: counters.foundLate.add(1, ordering: .relaxed)
    case .base(.joining): counters.sharedLoads.add(1, ordering: .relaxed)
    default: break
    }
    return reading
  }

  /// Ends a base read, and keeps what it found where it may.
  ///
  /// - Parameters:
  ///   - fill: The read; `nil` where the key was busy.
  ///   - key: The key.
  ///   - isReload: Whether nothing may stay that may be older.
  ///   - copy: What it found.
  func end(_ fill: Keys.Fill?, of key: StoreKey, isReload: Bool, keeping copy: CachedCopy?) {
    guard fill != nil || isReload else { return }
    let removed = shard(of: key).withLock { state in
      let isCurrent = fill.map { state.busy.end($0) } ?? false
      if isReload { state.busy.invalidate(key) }
      return isCurrent || isReload ? keep(isCurrent ? copy : nil, forKey: key, in: &state) : RemovedEntries()
    }
    // What the cache refuses is released here as well, not under the lock.
    withExtendedLifetime((copy, removed)) {}
  }

  /// Ends a base read that found nothing to keep, or that another reader makes.
  ///
  /// - Returns: Whether nothing has happened to the key since.
  @discardableResult
  func end(_ fill: Keys.Fill) -> Bool {
    shard(of: fill.key).withLock { $0.busy.end(fill) }
  }

  // MARK: Reads behind a reader

  /// Begins to load copies anew, unless too many others are or one has failed a short time ago.
  ///
  /// - Parameter keys: The keys of the copies.
  /// - Returns: Those whose copies may be; `nil` where none may. Then ``endRefresh(of:failure:)`` ends it.
  func beginRefresh(of keys: [StoreKey]) -> Set<StoreKey>? {
    let time = now()
    return refreshes.withLock { $0.begin(keys, at: time) }
  }

  /// Ends what ``beginRefresh(of:)`` began.
  ///
  /// - Parameters:
  ///   - keys: The keys that were read.
  ///   - failure: What the base threw; `nil` where it was read.
  func endRefresh(of keys: [StoreKey], failure: (any Error)?) {
    let time = now()
    let pauseEnd = time + min(refreshAge ?? .zero, CopyCache.longestRefreshPause)
    refreshes.withLock { $0.end(keys, failure: failure, at: time, pauseEnd: pauseEnd) }
  }

  /// Begins a base read behind a reader, unless its copy is gone or the key is busy or being read.
  func beginRefreshing(_ key: StoreKey, _ copy: CachedCopy, _ load: SharedLoad.Part) -> Keys.Fill? {
    shard(of: key).withLock { state in
      isStillThere(copy, key) ? state.busy.beginRefreshing(key, makeLoad: { load })?.fill : nil
    }
  }

  // MARK: Writes

  /// Makes all keys of a write busy, and then removes their copies.
  ///
  /// - Parameters:
  ///   - keys: The keys that it names, each once.
  ///   - ranges: The ranges that it removes.
  func beginWrite(_ keys: [StoreKey], _ ranges: [KeyRange]) -> Write {
    var write = Write(keys: keys, parts: parts(of: keys, inAllShards: !ranges.isEmpty))
    for index in write.parts.indices {
      let part = write.parts[index]
      write.parts[index] = shards[part.shard].withLock { state in
        var part = part
        part.ranges = ranges.map { state.busy.beginWrite(in: $0) }
        part.keys = part.places.map { state.busy.beginWrite(of: keys[$0], besides: part.ranges) }
        return part
      }
    }
    for key in keys { copies.removeValue(forKey: key) }
    if !ranges.isEmpty { copies.removeAll { key in ranges.contains { $0.contains(key) } } }
    return write
  }

  private func parts(of keys: [StoreKey], inAllShards: Bool) -> [Write.Part] {
    if keys.count == 1, !inAllShards { return [Write.Part(shard: shardIndex(of: keys[0]), places: [0])] }
    var places: [[Int]] = shards.map { _ in [] }
    for (place, key) in keys.enumerated() { places[shardIndex(of: key)].append(place) }
    return places.enumerated().compactMap { shard, places in
      places.isEmpty && !inAllShards ? nil : Write.Part(shard: shard, places: places)
    }
  }

  /// Ends a write, and keeps what it wrote where it may.
  ///
  /// - Parameters:
  ///   - write: The write.
  ///   - copies: What each of its keys has now; `nil` where that is not known.
  func end(_ write: Write, keeping copies: [CachedCopy?]?) {
    for part in write.parts {
      let removed = shards[part.shard].withLock { state in
        var removed: [RemovedEntries<StoreKey, CachedCopy>] = []
        for (place, keyWrite) in zip(part.places, part.keys) where state.busy.end(keyWrite) {
          if let copies { removed.append(keep(copies[place], forKey: write.keys[place], in: &state)) }
        }
        for rangeWrite in part.ranges { state.busy.end(rangeWrite) }
        return removed
      }
      withExtendedLifetime(removed) {}
    }
    withExtendedLifetime(copies) {}
  }

  // MARK: Forgetting

  /// Forgets the copy of a key, and what reads and writes that run would leave of it.
  func invalidate(_ key: StoreKey) {
    shard(of: key).withLock { $0.busy.invalidate(key) }
    copies.removeValue(forKey: key)
  }

  /// Forgets all copies, and what reads and writes that run would leave.
  func invalidateAll() {
    for shard in shards { shard.withLock { $0.busy.invalidateAll() } }
    copies.removeAll()
  }
}
