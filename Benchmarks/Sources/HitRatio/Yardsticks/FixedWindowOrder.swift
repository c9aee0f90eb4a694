/// W-TinyLFU with a window of a fixed size.
///
/// It uses the lists and the sketch of `MemoryCache`, whose source files are compiled into this program too.
struct FixedWindowOrder: YardstickOrder, ~Copyable {
  private var order: WindowedOrder
  private var sketch: FrequencySketch

  /// Creates an order.
  ///
  /// - Parameters:
  ///   - entryLimit: The maximum number of entries.
  ///   - share: The share of the window in these entries.
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
