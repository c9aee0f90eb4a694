/// Determines which size of the window gives the most hits.
///
/// It climbs the hill of hit ratios, but sees all of it. Small caches of hashes, one for each size, process a sample of
/// the keys. The sample is as small relative to all keys as these caches are relative to the real one, so they show the
/// hit ratio that the real cache would have with their size. A climber that only compares its hit ratio with the
/// previous one is misled by workloads that change in between, and stops at the first local maximum.
///
/// The caches process the same uses, so it suffices to count those that hit with one size and miss with another. Older
/// uses count less. A size is chosen only if it is better by more than chance explains.
///
/// See Einziger, Eytan, Friedman and Manes, "Adaptive Software Cache Management" (Middleware 2018), for climbing; and
/// Waldspurger, Saemundsson, Ahmad and Park, "Cache Modeling and Optimization using Miniature Simulations" (USENIX ATC
/// 2017).
struct WindowClimber: ~Copyable {
  /// The sizes, as shares of the whole cache.
  ///
  /// The last one is almost LRU.
  static let shares = [0.01, 0.2, 0.5, 0.99]

  /// The index of the initial size.
  ///
  /// It suffers least from loops and scans.
  static var initialBest: Int { 0 }

  /// The maximum number of entries of a small cache.
  ///
  /// A loop that just fits in a small cache and does not fit in the real one is misleading. With as many entries as the
  /// real cache, there is no such effect.
  private static var highestTrialCapacity: Int { 512 }

  /// The time between two comparisons, and the time that a use counts, in uses for each entry of a small cache.
  private static var period: Double { 0.25 }
  private static var memory: Double { 10 }

  /// The number of entries of a small cache below which the period and the memory are those of this number.
  ///
  /// A comparison costs as much as several uses.
  private static var lowestPeriodCapacity: Int { 64 }

  /// The margin by which a size must be better, in standard deviations and as a share of all uses.
  private static var deviations: Double { 3 }
  private static var margin: Double { 0.01 }

  /// The index of the best size.
  private(set) var best: Int

  private let sampledShift: UInt32
  private let periodSize: Int
  private let memorySize: Double
  private var useCount = 0
  // The number of uses that were hits in exactly these caches, with one bit of the index for each cache.
  private var outcomes = [Double](repeating: 0, count: 16)
  private var narrow: WindowTrial
  private var fifth: WindowTrial
  private var half: WindowTrial
  private var wide: WindowTrial

  /// Creates a climber.
  ///
  /// - Parameters:
  ///   - capacity: The number of entries of the real cache.
  ///   - best: The index of the initial size.
  init(capacity: Int, best: Int) {
    self.best = best
    var shift: UInt32 = 0
    while capacity >> Int(shift) > WindowClimber.highestTrialCapacity { shift += 1 }
    sampledShift = shift
    let trialCapacity = max(1, capacity >> Int(shift))
    let periodCapacity = Double(max(trialCapacity, WindowClimber.lowestPeriodCapacity))
    periodSize = Int(WindowClimber.period * periodCapacity)
    memorySize = WindowClimber.memory * periodCapacity
    narrow = WindowTrial(capacity: trialCapacity, windowShare: WindowClimber.shares[0])
    fifth = WindowTrial(capacity: trialCapacity, windowShare: WindowClimber.shares[1])
    half = WindowTrial(capacity: trialCapacity, windowShare: WindowClimber.shares[2])
    wide = WindowTrial(capacity: trialCapacity, windowShare: WindowClimber.shares[3])
  }

  /// Records a use of a key.
  ///
  /// - Parameters:
  ///   - hash: A part of the hash of the key.
  ///   - sketch: The estimates of how often keys are used.
  /// - Returns: A Boolean value that indicates whether the best size has changed.
  mutating func noteUse(of hash: UInt32, by sketch: borrowing FrequencySketch) -> Bool {
    // These are not the bits that select a bucket or a counter.
    guard (hash &* 0x85EB_CA6B) >> 1 < UInt32(1 << 31) >> sampledShift else { return false }
    var outcome = 0
    if narrow.use(hash, by: sketch) { outcome |= 1 }
    if fifth.use(hash, by: sketch) { outcome |= 2 }
    if half.use(hash, by: sketch) { outcome |= 4 }
    if wide.use(hash, by: sketch) { outcome |= 8 }
    outcomes[outcome] += 1
    useCount += 1
    guard useCount % periodSize == 0 else { return false }
    return compare()
  }

  private mutating func compare() -> Bool {
    let previous = best
    var highestAdvantage = 0.0
    for other in WindowClimber.shares.indices where other != previous {
      let advantage = advantage(of: other, over: previous)
      if advantage > highestAdvantage {
        highestAdvantage = advantage
        best = other
      }
    }
    for index in outcomes.indices { outcomes[index] *= 1 - WindowClimber.period / WindowClimber.memory }
    return best != previous
  }

  /// Returns the number of additional hits that a size gives compared with another one, beyond the required margin.
  private func advantage(of one: Int, over other: Int) -> Double {
    var gained = 0.0
    var lost = 0.0
    for (outcome, count) in outcomes.enumerated() {
      let isHit = (outcome >> one) & 1 == 1
      guard isHit != ((outcome >> other) & 1 == 1) else { continue }
      if isHit { gained += count } else { lost += count }
    }
    let uses = min(Double(useCount), memorySize)
    return gained - lost - WindowClimber.deviations * (gained + lost).squareRoot() - WindowClimber.margin * uses
  }
}

/// A small cache of hashes only, which shows the uses that would be hits with a given window size.
private struct WindowTrial: ~Copyable {
  private let capacity: Int
  private let bucketMask: UInt32
  private var order: WindowedOrder
  // Chains of slots by hash, and one chain of the free slots.
  private var buckets: [Slot]
  private var nexts: [Slot]
  private var free = Slot(0)

  /// Creates a trial.
  ///
  /// - Parameters:
  ///   - capacity: The number of entries.
  ///   - windowShare: The share of the window.
  init(capacity: Int, windowShare: Double) {
    self.capacity = capacity
    // One more, for a new entry before another one is evicted.
    let slotCount = capacity + 1
    order = WindowedOrder(
      entryLimit: capacity, costLimit: nil, hasCosts: false, windowShare: windowShare)
    var bucketCount = 1
    while bucketCount < capacity { bucketCount *= 2 }
    bucketMask = UInt32(bucketCount - 1)
    buckets = Array(repeating: .none, count: bucketCount)
    nexts = Array(repeating: .none, count: slotCount)
    for index in 0..<capacity { nexts[index] = Slot(UInt32(index + 1)) }
  }

  /// Uses a key, and inserts it if it is missing.
  ///
  /// - Parameters:
  ///   - hash: A part of the hash of the key.
  ///   - sketch: The estimates of how often keys are used.
  /// - Returns: A Boolean value that indicates whether the key was present.
  mutating func use(_ hash: UInt32, by sketch: borrowing FrequencySketch) -> Bool {
    let bucket = self.bucket(of: hash)
    var slot = buckets[bucket]
    while slot != .none {
      if order.hash(of: slot) == hash {
        order.use(slot)
        return true
      }
      slot = nexts[Int(slot.index)]
    }
    slot = free
    free = nexts[Int(slot.index)]
    nexts[Int(slot.index)] = buckets[bucket]
    buckets[bucket] = slot
    order.insert(slot, hash: hash, cost: 1)
    if order.count > capacity { remove(order.nextVictim(by: sketch)) }
    return false
  }

  private func bucket(of hash: UInt32) -> Int {
    Int(((hash &* 0x9E37_79B9) >> 8) & bucketMask)
  }

  private mutating func remove(_ slot: Slot) {
    let bucket = self.bucket(of: order.hash(of: slot))
    order.remove(slot)
    if buckets[bucket] == slot {
      buckets[bucket] = nexts[Int(slot.index)]
    } else {
      var previous = buckets[bucket]
      while nexts[Int(previous.index)] != slot { previous = nexts[Int(previous.index)] }
      nexts[Int(previous.index)] = nexts[Int(slot.index)]
    }
    nexts[Int(slot.index)] = free
    free = slot
  }
}
