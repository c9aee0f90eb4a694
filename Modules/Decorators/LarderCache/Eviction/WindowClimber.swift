/// Finds out which size of the window brings most hits.
///
/// It climbs the hill of hit ratios with a view of it. Small caches of hashes, one for each size, see a sample of the
/// keys: a part of them as small as these caches are beside the real one. So they show the hit ratio that the real
/// cache would have with their size. A climber who only compares his hit ratio with his last one is led astray by
/// workloads that change in between, and stays on the first top that he finds.
///
/// The caches see the same uses, so it is enough to count those that are hits with one size and misses with another;
/// older ones count less. A size has to be better by more than chance explains before it is taken.
///
/// See Einziger, Eytan, Friedman and Manes, "Adaptive Software Cache Management" (Middleware 2018), for climbing; and
/// Waldspurger, Saemundsson, Ahmad and Park, "Cache Modeling and Optimization using Miniature Simulations" (USENIX ATC
/// 2017).
struct WindowClimber: ~Copyable {
  /// The sizes, as parts of the whole cache; the last one is as good as LRU.
  static let shares = [0.01, 0.2, 0.5, 0.99]

  /// The index of the size to begin with: the one that loops and scans harm least.
  static var initialBest: Int { 0 }

  /// The most entries of a small cache: a loop that just fits into it, and does not into the real one, misleads; with
  /// as many entries as the real cache there is no such chance.
  private static var highestTrialCapacity: Int { 512 }

  /// How often sizes are compared, and how long a use counts, in uses for each entry of a small cache.
  private static var period: Double { 0.25 }
  private static var memory: Double { 10 }

  /// By how much a size has to be better: by so many standard deviations, and by such a part of all uses.
  private static var deviations: Double { 3 }
  private static var margin: Double { 0.01 }

  /// The index of the best size.
  private(set) var best: Int

  private let sampledShift: UInt32
  private let periodSize: Int
  private let memorySize: Double
  private var useCount = 0
  // How many uses were hits in just these caches: a bit of the index for each.
  private var outcomes = [Double](repeating: 0, count: 16)
  private var narrow: WindowTrial
  private var fifth: WindowTrial
  private var half: WindowTrial
  private var wide: WindowTrial

  /// Makes one.
  ///
  /// - Parameters:
  ///   - capacity: How many entries the real cache holds.
  ///   - best: The index of the size to begin with.
  init(capacity: Int, best: Int) {
    self.best = best
    var shift: UInt32 = 0
    while capacity >> Int(shift) > WindowClimber.highestTrialCapacity { shift += 1 }
    sampledShift = shift
    let trialCapacity = max(1, capacity >> Int(shift))
    periodSize = max(1, Int(WindowClimber.period * Double(trialCapacity)))
    memorySize = WindowClimber.memory * Double(trialCapacity)
    narrow = WindowTrial(capacity: trialCapacity, windowShare: WindowClimber.shares[0])
    fifth = WindowTrial(capacity: trialCapacity, windowShare: WindowClimber.shares[1])
    half = WindowTrial(capacity: trialCapacity, windowShare: WindowClimber.shares[2])
    wide = WindowTrial(capacity: trialCapacity, windowShare: WindowClimber.shares[3])
  }

  /// Notes a use of a key.
  ///
  /// - Parameters:
  ///   - hash: A part of the hash of the key.
  ///   - sketch: What estimates how often keys are used.
  /// - Returns: Whether another size is the best now.
  mutating func noteUse(of hash: UInt32, by sketch: borrowing FrequencySketch) -> Bool {
    // Other bits than those that choose a bucket or a counter.
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

  /// How many hits more a size brings than another, beyond what it has to.
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

/// A small cache of hashes alone, with a window of a given size: it shows which uses that size would make hits.
private struct WindowTrial: ~Copyable {
  private let capacity: Int
  private let bucketMask: UInt32
  private var order: WindowedOrder
  // Chains of slots by hash; a chain of its own for the slots that are free.
  private var buckets: [Slot]
  private var nexts: [Slot]
  private var free = Slot(0)

  /// Makes one.
  ///
  /// - Parameters:
  ///   - capacity: How many entries it holds.
  ///   - windowShare: How much of that is the window.
  init(capacity: Int, windowShare: Double) {
    self.capacity = capacity
    // One more, for the entry that another one has to go for.
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

  /// Uses a key, and takes it in where it is missing.
  ///
  /// - Parameters:
  ///   - hash: A part of the hash of the key.
  ///   - sketch: What estimates how often keys are used.
  /// - Returns: Whether it was there.
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
