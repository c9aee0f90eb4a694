/// The order in which entries have to go, on slots alone: it knows neither keys nor values, and has no lock.
///
/// It is W-TinyLFU, with a window whose size follows the workload, or LRU, which is a window of the whole cache.
///
/// See ``WindowedOrder`` for the lists, ``FrequencySketch`` for what decides who may enter the main one, and
/// ``WindowClimber`` for the size of the window.
struct AdaptiveOrder: ~Copyable {
  private let costLimit: Int?
  private let adapts: Bool
  // How many entries there are when the cache is full.
  private var capacity: Int
  private var sketch: FrequencySketch
  private var climber: WindowClimber
  private var order: WindowedOrder

  /// How many entries a full cache is taken to hold as long as only their cost is limited and it was never full.
  private static var likelyCapacity: Int { 10_000 }

  /// Makes an order.
  ///
  /// - Parameters:
  ///   - policy: What decides which entry has to go.
  ///   - entryLimit: The most entries that there may be.
  ///   - costLimit: The most that they may cost together; `nil` where that does not matter.
  ///   - hasCosts: Whether entries may cost anything but 1.
  init(policy: EvictionPolicy, entryLimit: Int, costLimit: Int?, hasCosts: Bool) {
    self.costLimit = costLimit
    adapts = policy == .adaptive
    capacity = costLimit == nil ? entryLimit : min(entryLimit, AdaptiveOrder.likelyCapacity)
    sketch = FrequencySketch(capacity: adapts ? capacity : 1)
    climber = WindowClimber(capacity: adapts ? capacity : 1, best: WindowClimber.initialBest)
    order = WindowedOrder(
      entryLimit: entryLimit, costLimit: costLimit, hasCosts: hasCosts,
      windowShare: adapts ? WindowClimber.shares[WindowClimber.initialBest] : 1)
  }

  /// How many slots are in the order.
  var count: Int { order.count }

  /// What their entries cost together.
  var totalCost: Int { order.totalCost }

  /// Takes in a slot whose key was not there.
  ///
  /// - Parameters:
  ///   - slot: The slot.
  ///   - hash: A part of the hash of its key.
  ///   - cost: What its entry costs.
  mutating func insert(_ slot: Slot, hash: UInt32, cost: Int) {
    if adapts { sketch.reserve(count + 1) }
    noteUse(of: hash)
    order.insert(slot, hash: hash, cost: cost)
  }

  /// Notes that the entry of a slot was replaced, which is a use of it too.
  ///
  /// - Parameters:
  ///   - slot: The slot.
  ///   - cost: What the new entry costs.
  mutating func update(_ slot: Slot, cost: Int) {
    noteUse(of: order.hash(of: slot))
    order.use(slot)
    order.setCost(cost, of: slot)
  }

  /// Notes that entries were read.
  ///
  /// - Parameter slots: Their slots; one that is in use no more is passed over.
  mutating func recordUses(of slots: [Slot]) {
    // One after the other, so that the processor waits for the memory of several at a time.
    for slot in slots where order.isInUse(slot) { noteUse(of: order.hash(of: slot)) }
    for slot in slots where order.isInUse(slot) { order.use(slot) }
  }

  private mutating func noteUse(of hash: UInt32) {
    guard adapts else { return }
    sketch.increment(hash)
    guard climber.noteUse(of: hash, by: sketch) else { return }
    order.setWindowShare(WindowClimber.shares[climber.best])
  }

  /// Notes that the entry of a slot is gone, whether it was chosen or not.
  mutating func remove(_ slot: Slot) {
    order.remove(slot)
  }

  /// Chooses the slot whose entry has to go next; `none` where there is no entry.
  mutating func nextVictim() -> Slot {
    followCapacity()
    return order.nextVictim(by: sketch)
  }

  /// Takes note of how many entries fill the cache, where that hangs on what they cost.
  private mutating func followCapacity() {
    guard adapts, let costLimit, totalCost > costLimit else { return }
    let isNear = count <= capacity * 2 && count >= capacity / 2
    guard !isNear else { return }
    capacity = max(1, count)
    sketch.setCapacity(capacity)
    climber = WindowClimber(capacity: capacity, best: climber.best)
  }
}
