public import Synchronization

/// Values by key, in memory, of which the ones least worth their place go when it is full.
///
/// ```swift
/// let images = MemoryCache<URL, Image>(costLimit: 64 << 20, cost: { _, image in image.byteCount })
/// images.setValue(image, forKey: url)
/// let again = images.value(forKey: url)
/// ```
///
/// It is bounded by a number of entries and, where you give one, by what they cost together. What has to go is decided
/// by an ``EvictionPolicy``. All calls are quick, never wait for input or output, and may be made from any thread. Keys
/// and values are released, and the removal listener is called, outside all locks: they may use the cache themselves.
/// Only the equality of keys is asked for inside, and must not use it.
///
/// Beside keys and values it keeps 70 to 80 bytes for each entry that it has had at a time. That memory is taken as the
/// cache grows, and used again: what lies there never moves.
///
/// Where the system runs short of memory the cache gives up entries by itself, unless told not to.
public final class MemoryCache<Key: Hashable & Sendable, Value: Sendable>: Sendable {
  /// Tells what an entry costs, in a unit of your choice, such as bytes; less than nothing counts as nothing.
  ///
  /// The costs of all entries have to add up. Where ``MemoryCache/costLimit`` is more than a quarter of `Int.max`, or
  /// there is none, what is more than `Int.max` divided by the most entries counts as that.
  public typealias Cost = @Sendable (_ key: Key, _ value: Value) -> Int

  /// Is told of an entry that left the cache, and why.
  public typealias RemovalListener = @Sendable (_ key: Key, _ value: Value, _ reason: RemovalReason) -> Void

  /// The most entries that there may be; `nil` where only their cost is limited.
  public let entryLimit: Int?

  /// The most that all entries together may cost; `nil` where only their number is limited.
  public let costLimit: Int?

  /// What decides which entry has to go.
  public let policy: EvictionPolicy

  /// How long an entry is kept at most.
  public let expiry: CacheExpiry

  @usableFromInline let cost: Cost?
  @usableFromInline let onRemoval: RemovalListener?
  // The time in nanoseconds since the cache was made; `nil` where entries do not expire, since telling it costs as much
  // as a read.
  @usableFromInline let now: (@Sendable () -> Int64)?
  @usableFromInline let table: CacheTable<Key, Value>
  // The most that one entry may count, so that the sum of all is a number.
  @usableFromInline let highestCost: Int
  @usableFromInline let keepsNothing: Bool
  /// The lock for writing, inside of which those of stripes are taken, one at a time, and never the other way round.
  @usableFromInline let eviction: Mutex<EvictionState>

  private let pressureObservation: MemoryPressureObservation?

  /// Makes a cache.
  ///
  /// - Parameters:
  ///   - entryLimit: The most entries that there may be, up to 1,073,741,824; with less than 1 nothing is kept. 10,000
  ///     unless given, and as many as there may be at all where there is a `costLimit`.
  ///   - costLimit: The most that all entries together may cost; unlimited unless given.
  ///   - policy: What decides which entry has to go; ``EvictionPolicy/adaptive`` unless given.
  ///   - expiry: How long an entry is kept at most; without limit unless given.
  ///   - clock: What measures that time; a `ContinuousClock` unless given.
  ///   - trimsUnderMemoryPressure: Whether entries are given up where the system is short of memory; true unless given.
  ///   - cost: Tells what an entry costs, outside all locks; each costs 1 unless given.
  ///   - onRemoval: Is told of each entry that left the cache, on the thread that made it leave, outside all locks.
  public convenience init(
    entryLimit: Int? = nil, costLimit: Int? = nil, policy: EvictionPolicy = .adaptive, expiry: CacheExpiry = .never,
    clock: any Clock<Duration> = ContinuousClock(), trimsUnderMemoryPressure: Bool = true, cost: Cost? = nil,
    onRemoval: RemovalListener? = nil
  ) {
    self.init(
      entryLimit: entryLimit, costLimit: costLimit, policy: policy, expiry: expiry, clock: clock,
      memoryPressure: trimsUnderMemoryPressure ? .ofSystem : nil, cost: cost, onRemoval: onRemoval)
  }

  init(
    entryLimit: Int?, costLimit: Int?, policy: EvictionPolicy, expiry: CacheExpiry, clock: any Clock<Duration>,
    memoryPressure: MemoryPressureMonitor?, cost: Cost?, onRemoval: RemovalListener?
  ) {
    self.entryLimit = entryLimit ?? (costLimit == nil ? 10_000 : nil)
    let slotLimit = max(0, min(self.entryLimit ?? .max, 1 << 30))
    let lifetimes = EntryLifetimes(expiry)
    // Not by the number of processors: what a cache keeps is to be the same everywhere.
    var stripeCount = 1
    while stripeCount < 64, stripeCount < slotLimit / 64 { stripeCount *= 2 }
    self.costLimit = costLimit
    self.policy = policy
    self.expiry = expiry
    self.cost = cost
    self.onRemoval = onRemoval
    keepsNothing = slotLimit == 0
    highestCost = costLimit ?? .max <= .max / 4 ? .max : .max / (slotLimit + 1)
    now = lifetimes.areLimited ? MemoryCache.elapsedTime(of: clock) : nil
    table = CacheTable(stripeCount: stripeCount, lifetimes: lifetimes)
    eviction = Mutex(
      EvictionState(
        entryLimit: slotLimit, costLimit: costLimit, hasCosts: cost != nil, policy: policy,
        expires: lifetimes.areLimited))
    let observation = memoryPressure.map { _ in MemoryPressureObservation() }
    pressureObservation = observation
    if let memoryPressure, let observation {
      memoryPressure.add(observation) { [weak self] pressure in self?.respond(to: pressure) }
    }
  }

  private static func elapsedTime(of clock: some Clock<Duration>) -> @Sendable () -> Int64 {
    let start = clock.now
    return { EntryLifetimes.nanoseconds(start.duration(to: clock.now)) }
  }

  @inlinable
  static func hash(of key: Key) -> UInt32 {
    UInt32(truncatingIfNeeded: key.hashValue)
  }

  // MARK: Reading

  /// Reads a value, and counts the read: for the statistics, and for the policy as a use of the entry.
  ///
  /// - Parameter key: The key.
  /// - Returns: The value, or `nil` where there is none.
  @inlinable
  public func value(forKey key: Key) -> Value? {
    let hash = MemoryCache.hash(of: key)
    let time = now?() ?? 0
    let reading = table.read(key, hash: hash, at: time, counts: true)
    if reading.isFull { recordReads(of: table.stripe(of: hash)) }
    if reading.isExpired { removeExpired(key, hash: hash, at: time) }
    return reading.value
  }

  /// Reads a value without any trace: it counts neither as a hit or miss nor as a use of the entry.
  ///
  /// - Parameter key: The key.
  /// - Returns: The value, or `nil` where there is none.
  @inlinable
  public func peekValue(forKey key: Key) -> Value? {
    table.read(key, hash: MemoryCache.hash(of: key), at: now?() ?? 0, counts: false).value
  }

  /// Tells the order of eviction which entries of a stripe were read; where another thread is writing, it is never
  /// told.
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
      // Another value may have come since.
      guard slot != .none, table.isOver(slot, at: time) else { return }
      remove(slot, .expired, from: &state, to: &removed)
    }
    removed.report(to: onRemoval)
  }

  // MARK: Writing

  /// Stores a value, in place of the one that the key has.
  ///
  /// A value that alone costs more than the cache may hold is not kept: it makes no other entry go, and the value that
  /// the key had goes.
  ///
  /// - Parameters:
  ///   - value: The value.
  ///   - key: The key.
  @inlinable
  public func setValue(_ value: Value, forKey key: Key) {
    put(value, forKey: key).report(to: onRemoval)
  }

  /// Stores a value; see ``setValue(_:forKey:)``.
  ///
  /// - Returns: What left the cache, of which nobody has been told.
  @inlinable
  func put(_ value: Value, forKey key: Key) -> RemovedEntries<Key, Value> {
    let newCost = cost.map { max(0, $0(key, value)) } ?? 1
    let hash = MemoryCache.hash(of: key)
    guard !keepsNothing, newCost <= costLimit ?? .max else { return refuse(key, hash: hash) }
    let time = now?() ?? 0
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
      while state.isOver {
        let victim = state.nextVictim()
        guard victim != .none else { break }
        remove(victim, .evicted, from: &state, to: &removed)
      }
      if now != nil { removeExpired(atMost: 2, at: time, from: &state, to: &removed) }
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
  /// - Parameter key: The key.
  /// - Returns: The value, or `nil` where there was none.
  @inlinable @discardableResult
  public func removeValue(forKey key: Key) -> Value? {
    let removed = take(key)
    removed.report(to: onRemoval)
    return removed.first.flatMap { $0.reason == .removed ? $0.value : nil }
  }

  /// Removes a value; see ``removeValue(forKey:)``.
  ///
  /// - Returns: What left the cache, of which nobody has been told.
  @inlinable
  func take(_ key: Key) -> RemovedEntries<Key, Value> {
    let hash = MemoryCache.hash(of: key)
    let time = now?() ?? 0
    var removed = RemovedEntries<Key, Value>()
    eviction.withLock { state in
      let slot = table.find(key, hash: hash)
      guard slot != .none else { return }
      remove(slot, table.isOver(slot, at: time) ? .expired : .removed, from: &state, to: &removed)
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
  /// It looks at each key that is there when it begins. A key that comes while it runs may stay.
  ///
  /// - Parameter isRemoved: The condition; it is asked outside all locks.
  @inlinable
  public func removeAll(where isRemoved: (Key) -> Bool) {
    for index in 0..<table.stripeCount {
      for key in table.keys(ofStripe: index) where isRemoved(key) {
        removeValue(forKey: key)
      }
    }
  }

  // MARK: Giving up

  /// Removes the entries whose time is over; there is no need to, but for their memory.
  @inlinable
  public func removeExpired() {
    guard let now else { return }
    let time = now()
    var rest = count
    while rest > 0 {
      var removed = RemovedEntries<Key, Value>()
      // A few at a time, so that others need not wait for all.
      eviction.withLock { state in
        removeExpired(atMost: min(rest, 64), at: time, from: &state, to: &removed)
      }
      removed.report(to: onRemoval)
      rest -= 64
    }
  }

  /// Looks at the entries that were written first.
  @inlinable
  func removeExpired(
    atMost count: Int, at time: Int64, from state: inout EvictionState, to removed: inout RemovedEntries<Key, Value>
  ) {
    for _ in 0..<count {
      let slot = state.oldest
      guard slot != .none else { return }
      if table.isOver(slot, at: time) {
        remove(slot, .expired, from: &state, to: &removed)
      } else if table.lifetimes.afterAccess != nil {
        // Others may have been used less lately.
        state.putOff(slot)
      } else {
        return
      }
    }
  }

  /// Gives up entries, those least worth their place first, until the others cost no more than a limit.
  ///
  /// The cache may grow again afterwards.
  ///
  /// - Parameter cost: What the others may cost together: their number, where the cache was made without a cost. With less
  ///   than 0 all entries go, those that cost nothing too.
  @inlinable
  public func trim(to cost: Int) {
    var isOver = true
    while isOver {
      var removed = RemovedEntries<Key, Value>()
      // A few at a time, so that others need not wait for all.
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

  private func respond(to pressure: MemoryPressure) {
    switch pressure {
    case .none: return
    case .warning: trim(to: totalCost / 2)
    case .critical: trim(to: -1)
    }
  }

  // MARK: Size

  /// How many entries there are, those included whose time is over and that were not yet removed.
  public var count: Int { eviction.withLock { $0.count } }

  /// What the entries cost together: their number, where the cache was made without a cost.
  public var totalCost: Int { eviction.withLock { $0.totalCost } }

  /// What happened since the cache was made.
  public var statistics: CacheStatistics {
    var statistics = eviction.withLock { $0.statistics }
    for index in 0..<table.stripeCount {
      let (hits, misses) = (table.stripes + index).pointee.state.withLock { ($0.hits, $0.misses) }
      statistics.hits += hits
      statistics.misses += misses
    }
    return statistics
  }
}
