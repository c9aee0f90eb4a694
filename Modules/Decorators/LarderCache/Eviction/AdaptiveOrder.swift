/// The order of ``EvictionPolicy/adaptive``: W-TinyLFU, with a window whose size follows the workload.
///
/// See ``WindowedOrder`` for the lists, ``FrequencySketch`` for what decides who may enter the main one, and
/// ``WindowClimber`` for the size of the window.
struct AdaptiveOrder: EvictionOrder, ~Copyable {
  private let costLimit: Int?
  private let fixedWindowShare: Double?
  // How many entries there are when the cache is full.
  private var capacity: Int
  private var sketch: FrequencySketch
  private var climber: WindowClimber
  private var order: WindowedOrder

  /// Makes an order.
  ///
  /// - Parameters:
  ///   - entryLimit: The most entries that there may be.
  ///   - costLimit: The most that they may cost together; `nil` where that does not matter.
  ///   - slotCount: How many slots there are.
  ///   - hasCosts: Whether entries may cost anything but 1.
  ///   - fixedWindowShare: How much of the cache the window is for ever; `nil`, the default, where it is to adapt.
  init(entryLimit: Int, costLimit: Int?, slotCount: Int, hasCosts: Bool, fixedWindowShare: Double? = nil) {
    self.costLimit = costLimit
    self.fixedWindowShare = fixedWindowShare
    capacity = entryLimit
    sketch = FrequencySketch(capacity: entryLimit)
    climber = WindowClimber(capacity: entryLimit, best: WindowClimber.initialBest)
    order = WindowedOrder(
      entryLimit: entryLimit, costLimit: costLimit, slotCount: slotCount, hasCosts: hasCosts,
      windowShare: fixedWindowShare ?? WindowClimber.shares[WindowClimber.initialBest])
  }

  var count: Int { order.count }

  var totalCost: Int { order.totalCost }

  mutating func insert(_ slot: Slot, hash: UInt32, cost: Int) {
    noteUse(of: hash)
    order.insert(slot, hash: hash, cost: cost)
  }

  mutating func update(_ slot: Slot, cost: Int) {
    noteUse(of: order.hash(of: slot))
    order.use(slot)
    order.setCost(cost, of: slot)
  }

  mutating func recordUses(of slots: borrowing SlotArray<Slot>, count: Int) {
    // One after the other, so that the processor waits for the memory of several at a time.
    for index in 0..<count where order.isInUse(slots[index]) {
      noteUse(of: order.hash(of: slots[index]))
    }
    for index in 0..<count where order.isInUse(slots[index]) {
      order.use(slots[index])
    }
  }

  private mutating func noteUse(of hash: UInt32) {
    sketch.increment(hash)
    guard fixedWindowShare == nil, climber.noteUse(of: hash, by: sketch) else { return }
    order.setWindowShare(WindowClimber.shares[climber.best])
  }

  mutating func remove(_ slot: Slot) {
    order.remove(slot)
  }

  mutating func nextVictim() -> Slot {
    followCapacity()
    return order.nextVictim(by: sketch)
  }

  /// Takes note of how many entries fill the cache, where that hangs on what they cost.
  private mutating func followCapacity() {
    guard let costLimit, totalCost > costLimit else { return }
    let isNear = count <= capacity * 2 && count >= capacity / 2
    guard !isNear else { return }
    capacity = max(1, count)
    sketch.setCapacity(capacity)
    climber = WindowClimber(capacity: capacity, best: climber.best)
  }
}
