/// W-TinyLFU with a window whose size does not adapt: the lists and the sketch of `MemoryCache`, whose files are compiled here
/// too, without what adapts them.
struct FixedWindowOrder: YardstickOrder, ~Copyable {
  private var order: WindowedOrder
  private var sketch: FrequencySketch

  /// Makes an order.
  ///
  /// - Parameters:
  ///   - entryLimit: How many entries there are at most.
  ///   - share: The part of them that the window holds.
  init(entryLimit: Int, share: Double) {
    order = WindowedOrder(entryLimit: entryLimit, costLimit: nil, hasCosts: false, windowShare: share)
    sketch = FrequencySketch(capacity: entryLimit)
  }

  var count: Int { order.count }

  mutating func insert(_ slot: Slot, hash: UInt32) {
    sketch.reserve(count + 1)
    sketch.increment(hash)
    order.insert(slot, hash: hash, cost: 1)
  }

  mutating func use(_ slot: Slot) {
    sketch.increment(order.hash(of: slot))
    order.use(slot)
  }

  mutating func remove(_ slot: Slot) {
    order.remove(slot)
  }

  mutating func nextVictim() -> Slot {
    order.nextVictim(by: sketch)
  }
}
