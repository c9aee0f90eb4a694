import Foundation
public import Larder

/// A bounded in-memory cache that evicts its least valuable entries when full.
///
/// ```swift
/// let images = MemoryCache<URL, Image>(costLimit: 64 << 20, cost: { _, image in image.byteCount })
/// images.setValue(image, forKey: url)
/// let again = images.value(forKey: url)
/// ```
///
/// The cache is bounded by a number of entries and, if you set a cost limit, by their total cost. An ``EvictionPolicy``
/// decides which entries to evict. All calls are quick, never wait for input or output, and may be made from any
/// thread. Keys and values are released, and the removal listener is called, outside all locks, so they may use the
/// cache themselves. Only the equality of keys is evaluated under a lock. It must not use the cache.
///
/// Besides keys and values, the cache keeps 70 to 80 bytes for each entry of its largest number of entries so far. This
/// memory is allocated as the cache grows, is reused, and never moves.
///
/// The cache evicts entries when the system runs short of memory, unless you turn that off.
public final class MemoryCache<Key: Hashable & Sendable, Value: Sendable>: Sendable {
  /// A closure that returns the cost of an entry, in a unit of your choice, such as bytes.
  ///
  /// A negative cost counts as zero. The costs of all entries must not overflow when added. If
  /// ``MemoryCache/costLimit`` is greater than a quarter of `Int.max`, or `nil`, a cost is therefore limited to
  /// `Int.max` divided by the maximum number of entries.
  public typealias Cost = @Sendable (_ key: Key, _ value: Value) -> Int

  /// A closure that the cache calls after removing an entry.
  public typealias RemovalListener = @Sendable (_ key: Key, _ value: Value, _ reason: RemovalReason) -> Void

  /// The maximum number of entries, or `nil` if only their cost is limited.
  public let entryLimit: Int?

  /// The maximum total cost of the entries, or `nil` if only their number is limited.
  public let costLimit: Int?

  /// The policy that decides which entries to evict.
  public let policy: EvictionPolicy

  /// The time to live of the entries.
  public let timeToLive: CacheTimeToLive

  @usableFromInline let cost: Cost?
  @usableFromInline let onRemoval: RemovalListener?
  // `nil` if entries do not expire, because reading the clock costs as much as a read of the cache.
  @usableFromInline let time: ElapsedTime?
  @usableFromInline let table: CacheTable<Key, Value>
  // The maximum cost that one entry may count, so that the sum of all costs does not overflow.
  @usableFromInline let highestCost: Int
  @usableFromInline let keepsNothing: Bool
  /// The lock for writing.
  ///
  /// The locks of the stripes are taken inside it, one at a time, and never the other way round.
  @usableFromInline let eviction: Locked<EvictionState>

  /// Creates a cache.
  ///
  /// ```swift
  /// let pages = MemoryCache<String, Page>(entryLimit: 1000, timeToLive: .afterAccess(.seconds(600)))
  /// ```
  ///
  /// - Parameters:
  ///   - entryLimit: The maximum number of entries, up to 1,073,741,824. With less than 1, nothing is kept. Defaults to
  ///     10,000, or to the upper bound if there is a `costLimit`.
  ///   - costLimit: The maximum total cost of the entries. Defaults to no limit.
  ///   - policy: The policy that decides which entries to evict. Defaults to ``EvictionPolicy/adaptive``.
  ///   - timeToLive: The time to live of the entries. Defaults to ``CacheTimeToLive/unlimited``.
  ///   - clock: The clock that measures the time to live. Defaults to a `ContinuousClock`.
  ///   - trimsUnderMemoryPressure: A Boolean value that indicates whether entries are evicted when the system is short
  ///     of memory. Defaults to `true`.
  ///   - cost: A closure that returns the cost of an entry. It is called outside all locks. Defaults to a cost of 1 for
  ///     each entry.
  ///   - onRemoval: A closure that is called after an entry was removed, on the thread that removed it, outside all
  ///     locks.
  public init(
    entryLimit: Int? = nil, costLimit: Int? = nil, policy: EvictionPolicy = .adaptive,
    timeToLive: CacheTimeToLive = .unlimited,
    clock: any Clock<Duration> = ContinuousClock(), trimsUnderMemoryPressure: Bool = true, cost: Cost? = nil,
    onRemoval: RemovalListener? = nil
  ) {
    self.entryLimit = entryLimit ?? (costLimit == nil ? 10_000 : nil)
    let slotLimit = max(0, min(self.entryLimit ?? .max, 1 << 30))
    let timesToLive = EntryTimesToLive(timeToLive)
    // This does not depend on the number of processors, because a cache should keep the same entries everywhere.
    var stripeCount = 1
    while stripeCount < 64, stripeCount < slotLimit / 64 { stripeCount *= 2 }
    self.costLimit = costLimit
    self.policy = policy
    self.timeToLive = timeToLive
    self.cost = cost
    self.onRemoval = onRemoval
    keepsNothing = slotLimit == 0
    highestCost = costLimit ?? .max <= .max / 4 ? .max : .max / (slotLimit + 1)
    time = timesToLive.areLimited ? ElapsedTime(by: clock) : nil
    table = CacheTable(stripeCount: stripeCount, timesToLive: timesToLive)
    eviction = Locked(
      EvictionState(
        entryLimit: slotLimit, costLimit: costLimit, hasCosts: cost != nil, policy: policy,
        expires: timesToLive.areLimited))
    if trimsUnderMemoryPressure { trim(by: .ofSystem) }
  }

  @inlinable
  static func hash(of key: Key) -> UInt32 {
    UInt32(truncatingIfNeeded: key.hashValue)
  }

  // MARK: Reading

  /// Returns the value of a key.
  ///
  /// The read counts in the statistics and, for the eviction policy, as a use of the entry.
  ///
  /// - Returns: The value, or `nil` if there isn't one.
  @inlinable
  public func value(forKey key: Key) -> Value? {
    let hash = MemoryCache.hash(of: key)
    let time = time?.nanoseconds ?? 0
    let reading = table.read(key, hash: hash, at: time, counts: true)
    if reading.isFull { recordReads(of: table.stripe(of: hash)) }
    if reading.isExpired { removeExpired(key, hash: hash, at: time) }
    return reading.value
  }

  /// Returns the value of a key without counting a hit, a miss or a use of the entry.
  ///
  /// - Returns: The value, or `nil` if there isn't one.
  @inlinable
  public func peekValue(forKey key: Key) -> Value? {
    table.read(key, hash: MemoryCache.hash(of: key), at: time?.nanoseconds ?? 0, counts: false).value
  }

  /// Passes the reads noted in a stripe to the eviction order, or drops them if another thread is writing.
  @inlinable @inline(never)
  func recordReads(of stripe: UnsafeMutablePointer<CacheStripe>) {
    let isRecorded: Void? = eviction.withLockIfAvailable { state in
      recordReads(of: stripe, in: &state)
    }
    guard isRecorded == nil else { return }
    stripe.pointee.state.withLock { $0.reads.removeAll(keepingCapacity: true) }
  }

  @inlinable
  func recordReads(of stripe: UnsafeMutablePointer<CacheStripe>, in state: inout EvictionState) {
    stripe.pointee.state.withLock { swap(&$0.reads, &state.reads) }
    state.recordReads()
  }

  @inlinable @inline(never)
  func removeExpired(_ key: Key, hash: UInt32, at time: Int64) {
    var removed = RemovedEntries<Key, Value>()
    eviction.withLock { state in
      let slot = table.find(key, hash: hash)
      // Another value may have been stored since.
      guard slot != .none, table.hasExpired(slot, at: time) else { return }
      remove(slot, .expired, from: &state, to: &removed)
    }
    removed.report(to: onRemoval)
  }

  // MARK: Writing

  /// Stores a value, replacing any existing one.
  ///
  /// A value whose own cost exceeds the cost limit is refused. It evicts no other entry, and an existing entry of the
  /// key is removed.
  ///
  /// ```swift
  /// images.setValue(image, forKey: url)
  /// ```
  @inlinable
  public func setValue(_ value: Value, forKey key: Key) {
    put(value, forKey: key).report(to: onRemoval)
  }

  /// Stores a value; see ``setValue(_:forKey:)``.
  ///
  /// - Returns: The removed entries, not yet reported.
  @inlinable
  func put(_ value: Value, forKey key: Key) -> RemovedEntries<Key, Value> {
    let newCost = cost.map { max(0, $0(key, value)) } ?? 1
    let hash = MemoryCache.hash(of: key)
    guard !keepsNothing, newCost <= costLimit ?? .max else { return refuse(key, hash: hash) }
    let time = time?.nanoseconds ?? 0
    var removed = RemovedEntries<Key, Value>()
    eviction.withLock { state in
      recordReads(of: table.stripe(of: hash), in: &state)
      recordReads(of: table.stripes + state.nextStripe, in: &state)
      state.nextStripe = (state.nextStripe + 1) % table.stripeCount
      let (slot, old) = table.put(value, forKey: key, hash: hash, at: time, free: state.freeSlot)
      if let old {
        state.update(slot, cost: min(newCost, highestCost))
        removed.append(key, old, .replaced)
      } else {
        state.insert(hash: hash, cost: min(newCost, highestCost))
      }
      while state.isOverLimit {
        let victim = state.nextVictim()
        guard victim != .none else { break }
        remove(victim, .evicted, from: &state, to: &removed)
      }
      if self.time != nil { removeExpired(atMost: 2, at: time, from: &state, to: &removed) }
    }
    return removed
  }

  @inlinable @inline(never)
  func refuse(_ key: Key, hash: UInt32) -> RemovedEntries<Key, Value> {
    var removed = RemovedEntries<Key, Value>()
    eviction.withLock { state in
      state.statistics.refusals += 1
      let slot = table.find(key, hash: hash)
      if slot != .none { remove(slot, .replaced, from: &state, to: &removed) }
    }
    return removed
  }

  @inlinable
  func remove(
    _ slot: Slot, _ reason: RemovalReason, from state: inout EvictionState, to removed: inout RemovedEntries<Key, Value>
  ) {
    let entry = table.take(slot)
    state.remove(slot, reason)
    removed.append(entry.key, entry.value, reason)
  }

  /// Removes a value.
  ///
  /// - Returns: The value, or `nil` if there wasn't one.
  @inlinable @discardableResult
  public func removeValue(forKey key: Key) -> Value? {
    let removed = take(key)
    removed.report(to: onRemoval)
    return removed.first.flatMap { $0.reason == .removed ? $0.value : nil }
  }

  /// Removes a value; see ``removeValue(forKey:)``.
  ///
  /// - Returns: The removed entries, not yet reported.
  @inlinable
  func take(_ key: Key) -> RemovedEntries<Key, Value> {
    let hash = MemoryCache.hash(of: key)
    let time = time?.nanoseconds ?? 0
    var removed = RemovedEntries<Key, Value>()
    eviction.withLock { state in
      let slot = table.find(key, hash: hash)
      guard slot != .none else { return }
      remove(slot, table.hasExpired(slot, at: time) ? .expired : .removed, from: &state, to: &removed)
    }
    return removed
  }

  /// Removes all entries.
  @inlinable
  public func removeAll() {
    removeAll { _ in true }
  }

  /// Removes the entries whose keys satisfy a condition.
  ///
  /// It examines the keys that exist when it begins. A key that is added while it runs may stay.
  ///
  /// ```swift
  /// images.removeAll { $0.host() == "old.example" }
  /// ```
  ///
  /// - Parameter isRemoved: The condition. It is evaluated outside all locks.
  @inlinable
  public func removeAll(where isRemoved: (Key) -> Bool) {
    for index in 0..<table.stripeCount {
      for key in table.keys(ofStripe: index) where isRemoved(key) {
        removeValue(forKey: key)
      }
    }
  }

  // MARK: Expiry and trimming

  /// Removes all expired entries.
  ///
  /// Expired entries are never returned. Call this method only to free their memory.
  @inlinable
  public func removeExpired() {
    guard let time = time?.nanoseconds else { return }
    var rest = count
    while rest > 0 {
      var removed = RemovedEntries<Key, Value>()
      // A few at a time, so that other threads need not wait for all of them.
      eviction.withLock { state in
        removeExpired(atMost: min(rest, 64), at: time, from: &state, to: &removed)
      }
      removed.report(to: onRemoval)
      rest -= 64
    }
  }

  /// Removes expired entries among those that were written first.
  @inlinable
  func removeExpired(
    atMost count: Int, at time: Int64, from state: inout EvictionState, to removed: inout RemovedEntries<Key, Value>
  ) {
    for _ in 0..<count {
      let slot = state.oldest
      guard slot != .none else { return }
      if table.hasExpired(slot, at: time) {
        remove(slot, .expired, from: &state, to: &removed)
      } else if table.timesToLive.afterAccess != nil {
        // Later entries may have been used less recently.
        state.postponeCheck(slot)
      } else {
        return
      }
    }
  }

  /// Evicts entries, the least valuable first, until the total cost of the others is within a limit.
  ///
  /// The cache may grow again afterward.
  ///
  /// ```swift
  /// images.trim(to: 16 << 20)  // the program goes to the background
  /// ```
  ///
  /// - Parameter cost: The maximum total cost of the remaining entries, or their number if the cache was created
  ///   without a cost. A negative limit removes all entries, including those that cost nothing.
  @inlinable
  public func trim(to cost: Int) {
    var isOver = true
    while isOver {
      var removed = RemovedEntries<Key, Value>()
      // A few at a time, so that other threads need not wait for all of them.
      isOver = eviction.withLock { state in
        for _ in 0..<64 {
          guard state.totalCost > cost else { return false }
          let victim = state.nextVictim()
          guard victim != .none else { return false }
          remove(victim, .trimmed, from: &state, to: &removed)
        }
        return true
      }
      removed.report(to: onRemoval)
    }
  }

  /// Evicts entries whenever a monitor reports that the system is short of memory.
  func trim(by monitor: MemoryPressureMonitor) {
    monitor.add(self) { [weak self] pressure in
      guard let self else { return }
      switch pressure {
      case .none: return
      case .warning: trim(to: totalCost / 2)
      case .critical: trim(to: -1)
      }
    }
  }

  // MARK: Size

  /// The number of entries, including expired entries that were not yet removed.
  public var count: Int { eviction.withLock { $0.count } }

  /// The total cost of the entries, or their number if the cache was created without a cost.
  public var totalCost: Int { eviction.withLock { $0.totalCost } }

  /// Returns the statistics since the cache was created.
  public func statistics() -> CacheStatistics {
    var statistics = eviction.withLock { $0.statistics }
    for index in 0..<table.stripeCount {
      let (hits, misses) = (table.stripes + index).pointee.state.withLock { ($0.hits, $0.misses) }
      statistics.hits += hits
      statistics.misses += misses
    }
    return statistics
  }
}

// Constrained to these types so that you can use the property by the name `MemoryCache` alone.
extension MemoryCache where Key == Never, Value == Never {
  /// A recommended limit for caches whose costs are bytes: a fifth of the physical memory, or a tenth if there is at
  /// most 512 MB of it.
  ///
  /// ```swift
  /// MemoryCache<URL, [UInt8]>(costLimit: MemoryCache.recommendedCostLimit) { _, bytes in bytes.count }
  /// ```
  public static var recommendedCostLimit: Int {
    recommendedCostLimit(physicalMemory: ProcessInfo.processInfo.physicalMemory)
  }

  static func recommendedCostLimit(physicalMemory: UInt64) -> Int {
    Int(clamping: physicalMemory / (physicalMemory <= 512 << 20 ? 10 : 5))
  }
}
