/// A small cache of hashes alone, with a window of a given size: it shows which uses that size would make hits.
struct WindowTrial: ~Copyable {
  private let capacity: Int
  private let bucketMask: UInt32
  private var order: WindowedOrder
  // Chains of slots by hash; a chain of its own for the slots that are free.
  private var buckets: SlotArray<Slot>
  private var nexts: SlotArray<Slot>
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
      entryLimit: capacity, costLimit: nil, slotCount: slotCount, hasCosts: false, windowShare: windowShare)
    var bucketCount = 1
    while bucketCount < capacity { bucketCount *= 2 }
    bucketMask = UInt32(bucketCount - 1)
    buckets = SlotArray(count: bucketCount, repeating: .none)
    nexts = SlotArray(count: slotCount, repeating: .none)
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
      slot = nexts[slot]
    }
    slot = free
    free = nexts[slot]
    nexts[slot] = buckets[bucket]
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
      buckets[bucket] = nexts[slot]
    } else {
      var previous = buckets[bucket]
      while nexts[previous] != slot { previous = nexts[previous] }
      nexts[previous] = nexts[slot]
    }
    nexts[slot] = free
    free = slot
  }
}
