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
  typealias Keys = BusyKeys<SharedLoad>

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

  private let copies: MemoryCache<StoreKey, CachedCopy>
  private let shards: [CacheShard]
  private let lifetime: CopyLifetime
  private let remembersMissing: Bool
  private let now: @Sendable () -> Duration
  private let isClosing = Atomic(false)

  init<Value>(_ options: CachedStoreOptions<Value>, clock: any Clock<Duration>) {
    lifetime = CopyLifetime(options)
    remembersMissing = options.missingLifetime != nil
    now = CopyCache.elapsedTime(of: clock)
    shards = (0..<CopyCache.shardCount).map { _ in CacheShard() }
    var expiry = options.expiry
    if let afterWrite = expiry.afterWrite { expiry.afterWrite = afterWrite + max(.zero, options.staleLifetime) }
    var cost: MemoryCache<StoreKey, CachedCopy>.Cost?
    if options.cost != nil { cost = { _, copy in copy.cost } }
    copies = MemoryCache(
      entryLimit: options.entryLimit, costLimit: options.costLimit, policy: options.policy, expiry: expiry,
      clock: clock,
      trimsUnderMemoryPressure: options.trimsUnderMemoryPressure, cost: cost,
      onRemoval: { _, copy, _ in LateRelease.keep(copy) })
  }

  private static func elapsedTime(of clock: some Clock<Duration>) -> @Sendable () -> Duration {
    let start = clock.now
    return { start.duration(to: clock.now) }
  }

  /// What happened since the cache was made.
  var statistics: CachedStoreStatistics { counters.statistics(of: copies.statistics) }

  /// Whether no read and no write goes on.
  var isIdle: Bool { shards.allSatisfy { $0.withLock { $0.busy.isIdle } } }

  private func shardIndex(of key: StoreKey) -> Int {
    Int(truncatingIfNeeded: UInt(bitPattern: key.hashValue) % UInt(shards.count))
  }

  private func shard(of key: StoreKey) -> CacheShard {
    shards[shardIndex(of: key)]
  }

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
    guard !lifetime.matters, !hasBegunClosing else { return .none }
    guard let copy = copies.value(forKey: key), let value = copy.value else { return .nothing }
    return .value(value)
  }

  /// The copy of a key that a reader may use.
  ///
  /// - Parameters:
  ///   - key: The key.
  ///   - allowsOld: Whether its time may be over.
  /// - Returns: The copy, and whether it is to be loaded anew.
  func copy(of key: StoreKey, allowsOld: Bool = false) -> (copy: CachedCopy, isDue: Bool)? {
    guard let copy = copies.value(forKey: key) else { return nil }
    switch stage(of: copy) {
    case .fresh: return (copy, false)
    case .due: return (copy, true)
    case .old where allowsOld: return (copy, true)
    case .old, .over:
      counters.passedOver.add(1, ordering: .relaxed)
      return nil
    }
  }

  /// The copy of a key for which a load has begun, where another load has put one there meanwhile.
  ///
  /// It is good for all who have joined and will: the load began after the last write, and the copy is there after
  /// that.
  func copyFoundLate(of key: StoreKey) -> CachedCopy? {
    guard let copy = copies.peekValue(forKey: key) else { return nil }
    switch stage(of: copy) {
    case .fresh, .due:
      counters.foundLate.add(1, ordering: .relaxed)
      return copy
    case .old, .over:
      return nil
    }
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
    guard value != nil || remembersMissing else { return nil }
    return CachedCopy(value: value, cost: max(0, cost), time: lifetime.matters ? now() : .zero)
  }

  private func stage(of copy: CachedCopy) -> CopyLifetime.Stage {
    guard lifetime.matters else { return .fresh }
    return lifetime.stage(isMissing: copy.value == nil, age: now() - copy.time)
  }

  /// Puts the copy of a key in its place, or removes the one that is there where there is none.
  ///
  /// It is called under the lock of the shard, inside ``LateRelease/after(_:)``.
  private func keep(_ copy: CachedCopy?, forKey key: StoreKey, in state: inout CacheShard.State) {
    guard var copy else {
      copies.removeValue(forKey: key)
      return
    }
    copy.stamp = state.nextStamp()
    copies.setValue(copy, forKey: key)
  }

  // MARK: Reads of the base

  /// Begins a base read for a reader who found no copy.
  func beginReading(_ key: StoreKey) -> Keys.Reading {
    shard(of: key).withLock { $0.busy.beginReading(key, makeLoad: SharedLoad.init) }
  }

  /// Begins a base read for a reader who wants what the base has now.
  func beginReloading(_ key: StoreKey) -> Keys.Reading {
    counters.reloads.add(1, ordering: .relaxed)
    return shard(of: key).withLock { $0.busy.beginReloading(key, makeLoad: SharedLoad.init) }
  }

  /// Begins a base read behind a reader, unless the key is busy or being read.
  func beginRefreshing(_ key: StoreKey) -> (fill: Keys.Fill, load: SharedLoad)? {
    shard(of: key).withLock { $0.busy.beginRefreshing(key, makeLoad: SharedLoad.init) }
  }

  /// Begins the part of a base read of several keys that concerns one, unless that is busy.
  func beginFill(of key: StoreKey, isReload: Bool) -> Keys.Fill? {
    shard(of: key).withLock { state in
      if isReload { state.busy.invalidate(key) }
      return state.busy.beginFill(of: key)
    }
  }

  /// Ends a base read, and keeps what it found where it may.
  ///
  /// - Parameters:
  ///   - fill: The read.
  ///   - copy: What it found.
  func end(_ fill: Keys.Fill, keeping copy: CachedCopy?) {
    LateRelease.after {
      shard(of: fill.key).withLock { state in
        if state.busy.end(fill) { keep(copy, forKey: fill.key, in: &state) }
      }
    }
    // What the cache refuses is released here, not under the lock.
    withExtendedLifetime(copy) {}
  }

  /// Ends a base read that found nothing to keep.
  func end(_ fill: Keys.Fill) {
    _ = shard(of: fill.key).withLock { $0.busy.end(fill) }
  }

  /// Begins a scan of the base.
  ///
  /// - Returns: What ``keep(_:forKey:of:)`` wants.
  func beginScan() -> [Keys.Scan?] {
    shards.map { shard in shard.withLock { $0.busy.beginScan() } }
  }

  /// Keeps an entry that a scan has read, where it may and none is there.
  ///
  /// - Parameters:
  ///   - copy: The copy of the value.
  ///   - key: The key.
  ///   - scans: What the scan began with.
  func keep(_ copy: CachedCopy?, forKey key: StoreKey, of scans: [Keys.Scan?]) {
    let index = shardIndex(of: key)
    guard let scan = scans[index], copies.peekValue(forKey: key) == nil else { return }
    LateRelease.after {
      shards[index].withLock { state in
        if state.busy.allows(scan) { keep(copy, forKey: key, in: &state) }
      }
    }
    withExtendedLifetime(copy) {}
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
      LateRelease.after {
        shards[part.shard].withLock { state in
          for (place, keyWrite) in zip(part.places, part.keys) where state.busy.end(keyWrite) {
            if let copies { keep(copies[place], forKey: write.keys[place], in: &state) }
          }
          for rangeWrite in part.ranges { state.busy.end(rangeWrite) }
        }
      }
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
