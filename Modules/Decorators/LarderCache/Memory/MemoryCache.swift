import Synchronization

/// Values by key, in memory, of which the ones least worth their place go when it is full.
///
/// ```swift
/// let images = MemoryCache<URL, Image>(costLimit: 64 << 20, cost: { _, image in image.byteCount })
/// images.setValue(image, forKey: url)
/// let again = images.value(forKey: url)
/// ```
///
/// It is bounded by a number of entries and, where you give one, by what they cost together. What has to go is decided by an
/// ``EvictionPolicy``. All calls are quick, never wait for input or output, and may be made from any thread. Keys and values are released, and the
/// removal listener is called, outside all locks: they may use the cache themselves.
///
/// Where the system runs short of memory the cache gives up entries by itself, unless told not to.
public final class MemoryCache<Key: Hashable & Sendable, Value: Sendable>: Sendable {
  /// Tells what an entry costs, in a unit of your choice, such as bytes; less than nothing counts as nothing.
  public typealias Cost = @Sendable (_ key: Key, _ value: Value) -> Int

  /// Is told of an entry that left the cache, and why.
  public typealias RemovalListener = @Sendable (_ key: Key, _ value: Value, _ reason: RemovalReason) -> Void

  private struct Entry {
    var value: Value
    var cost: Int
    var written: Duration
    var used: Duration
    var turn: Int
  }

  private struct State {
    var entries: [Key: Entry] = [:]
    var totalCost = 0
    var turn = 0
    var statistics = CacheStatistics()
  }

  /// The most entries that there may be.
  public let entryLimit: Int

  /// The most that all entries together may cost; `nil` where only their number is limited.
  public let costLimit: Int?

  /// What decides which entry has to go.
  public let policy: EvictionPolicy

  /// How long an entry is kept at most.
  public let expiry: CacheExpiry

  private let cost: Cost?
  private let onRemoval: RemovalListener?
  private let now: @Sendable () -> Duration
  private let state = Mutex(State())

  /// Makes a cache.
  ///
  /// - Parameters:
  ///   - entryLimit: The most entries that there may be; 10,000 unless given. With none or less nothing is kept.
  ///   - costLimit: The most that all entries together may cost; unlimited unless given.
  ///   - policy: What decides which entry has to go; ``EvictionPolicy/adaptive`` unless given.
  ///   - expiry: How long an entry is kept at most; ``CacheExpiry/never`` limited unless given.
  ///   - clock: What measures that time; a `ContinuousClock` unless given.
  ///   - trimsUnderMemoryPressure: Whether entries are given up where the system is short of memory; true unless given.
  ///   - cost: Tells what an entry costs; each costs 1 unless given.
  ///   - onRemoval: Is told of each entry that left the cache, on the thread that made it leave, after it left.
  public init(
    entryLimit: Int = 10_000, costLimit: Int? = nil, policy: EvictionPolicy = .adaptive, expiry: CacheExpiry = .never,
    clock: any Clock<Duration> = ContinuousClock(), trimsUnderMemoryPressure: Bool = true, cost: Cost? = nil,
    onRemoval: RemovalListener? = nil
  ) {
    self.entryLimit = entryLimit
    self.costLimit = costLimit
    self.policy = policy
    self.expiry = expiry
    self.cost = cost
    self.onRemoval = onRemoval
    now = MemoryCache.elapsedTime(of: clock)
  }

  private static func elapsedTime(of clock: some Clock<Duration>) -> @Sendable () -> Duration {
    let start = clock.now
    return { start.duration(to: clock.now) }
  }

  // MARK: Reading

  /// Reads a value, and counts the read: for the statistics, and for the policy as a use of the entry.
  ///
  /// - Parameter key: The key.
  /// - Returns: The value, or `nil` where there is none.
  public func value(forKey key: Key) -> Value? {
    find(key, isUse: true)
  }

  /// Reads a value without any trace: it counts neither as a hit or miss nor as a use of the entry.
  ///
  /// - Parameter key: The key.
  /// - Returns: The value, or `nil` where there is none.
  public func peekValue(forKey key: Key) -> Value? {
    find(key, isUse: false)
  }

  private func find(_ key: Key, isUse: Bool) -> Value? {
    let time = now()
    let (value, expired): (Value?, Entry?) = state.withLock { state in
      guard let entry = state.entries[key] else {
        if isUse { state.statistics.misses += 1 }
        return (nil, nil)
      }
      guard !hasExpired(entry, at: time) else {
        if isUse { state.statistics.misses += 1 }
        state.statistics.expirations += 1
        state.entries[key] = nil
        state.totalCost -= entry.cost
        return (nil, entry)
      }
      if isUse {
        state.statistics.hits += 1
        state.turn += 1
        state.entries[key]?.turn = state.turn
        state.entries[key]?.used = time
      }
      return (entry.value, nil)
    }
    if let expired { onRemoval?(key, expired.value, .expired) }
    return value
  }

  private func hasExpired(_ entry: Entry, at time: Duration) -> Bool {
    if let lifetime = expiry.afterWrite, time - entry.written >= lifetime { return true }
    if let lifetime = expiry.afterAccess, time - entry.used >= lifetime { return true }
    return false
  }

  // MARK: Writing

  /// Stores a value, in place of the one that the key has.
  ///
  /// A value that alone costs more than the cache may hold is not kept: it makes no other entry go, and the value that the
  /// key had goes.
  ///
  /// - Parameters:
  ///   - value: The value.
  ///   - key: The key.
  public func setValue(_ value: Value, forKey key: Key) {
    let time = now()
    let newCost = cost.map { max(0, $0(key, value)) } ?? 1
    let isRefused = entryLimit < 1 || newCost > costLimit ?? .max
    let gone: [(Key, Entry, RemovalReason)] = state.withLock { state in
      var gone: [(Key, Entry, RemovalReason)] = []
      if let old = state.entries.removeValue(forKey: key) {
        state.totalCost -= old.cost
        state.statistics.replacements += 1
        gone.append((key, old, .replaced))
      }
      guard !isRefused else {
        state.statistics.refusals += 1
        return gone
      }
      if gone.isEmpty { state.statistics.insertions += 1 }
      state.turn += 1
      state.entries[key] = Entry(value: value, cost: newCost, written: time, used: time, turn: state.turn)
      state.totalCost += newCost
      while state.entries.count > entryLimit || state.totalCost > costLimit ?? .max,
        let victim = state.entries.min(by: { $0.value.turn < $1.value.turn })
      {
        state.entries[victim.key] = nil
        state.totalCost -= victim.value.cost
        state.statistics.evictions += 1
        gone.append((victim.key, victim.value, .evicted))
      }
      return gone
    }
    report(gone)
  }

  /// Removes a value.
  ///
  /// - Parameter key: The key.
  /// - Returns: The value, or `nil` where there was none.
  @discardableResult
  public func removeValue(forKey key: Key) -> Value? {
    let time = now()
    let entry = state.withLock { state in
      let entry = state.entries.removeValue(forKey: key)
      if let entry {
        state.totalCost -= entry.cost
        state.statistics.removals += 1
      }
      return entry
    }
    guard let entry else { return nil }
    let isExpired = hasExpired(entry, at: time)
    onRemoval?(key, entry.value, isExpired ? .expired : .removed)
    return isExpired ? nil : entry.value
  }

  /// Removes all entries.
  public func removeAll() {
    removeAll { _ in true }
  }

  /// Removes the entries whose keys satisfy a condition.
  ///
  /// It looks at each key that is there when it begins. A key that comes while it runs may stay.
  ///
  /// - Parameter isRemoved: The condition; it is asked outside all locks.
  public func removeAll(where isRemoved: (Key) -> Bool) {
    for key in state.withLock({ Array($0.entries.keys) }) where isRemoved(key) {
      removeValue(forKey: key)
    }
  }

  /// Removes the entries whose time is over; there is no need to, but for their memory.
  public func removeExpired() {
    for key in state.withLock({ Array($0.entries.keys) }) { _ = peekValue(forKey: key) }
  }

  /// Gives up entries, those least worth their place first, until the others cost no more than a limit.
  ///
  /// The cache may grow again afterwards.
  ///
  /// - Parameter cost: What the others may cost together: their number, where the cache was made without a cost.
  public func trim(to cost: Int) {
    let gone: [(Key, Entry, RemovalReason)] = state.withLock { state in
      var gone: [(Key, Entry, RemovalReason)] = []
      while state.totalCost > cost, let victim = state.entries.min(by: { $0.value.turn < $1.value.turn }) {
        state.entries[victim.key] = nil
        state.totalCost -= victim.value.cost
        state.statistics.trims += 1
        gone.append((victim.key, victim.value, .trimmed))
      }
      return gone
    }
    report(gone)
  }

  private func report(_ gone: [(Key, Entry, RemovalReason)]) {
    guard let onRemoval else { return }
    for (key, entry, reason) in gone { onRemoval(key, entry.value, reason) }
  }

  // MARK: Size

  /// How many entries there are, those included whose time is over and that were not yet removed.
  public var count: Int { state.withLock { $0.entries.count } }

  /// What the entries cost together: their number, where the cache was made without a cost.
  public var totalCost: Int { state.withLock { $0.totalCost } }

  /// What happened since the cache was made.
  public var statistics: CacheStatistics { state.withLock { $0.statistics } }
}
