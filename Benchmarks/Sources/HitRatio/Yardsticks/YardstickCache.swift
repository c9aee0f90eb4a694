/// The eviction order of a ``YardstickCache``.
protocol YardstickOrder: ~Copyable {
  /// The number of slots in the order.
  var count: Int { get }

  /// Inserts the slot of a new key.
  mutating func insert(_ slot: Slot, hash: UInt32)

  /// Records a use of the key of a slot.
  mutating func use(_ slot: Slot)

  /// Removes the slot of a removed key.
  mutating func remove(_ slot: Slot)

  /// Returns the slot to evict next, or `none` if the cache is empty.
  mutating func nextVictim() -> Slot
}

/// A cache of keys without values, to compare `MemoryCache` with other eviction policies.
struct YardstickCache<Order: YardstickOrder & ~Copyable>: ~Copyable {
  private let entryLimit: Int
  private var order: Order
  private var slots: [UInt64: Slot] = [:]
  private var keys: [UInt64] = []
  private var free: [Slot] = []

  /// Creates a cache.
  ///
  /// - Parameters:
  ///   - entryLimit: The maximum number of keys.
  ///   - order: The eviction order.
  init(entryLimit: Int, order: consuming Order) {
    self.entryLimit = entryLimit
    self.order = order
  }

  /// Reads a key, and inserts it if it is missing.
  ///
  /// - Returns: Whether the read was a hit.
  mutating func use(_ key: UInt64) -> Bool {
    if let slot = slots[key] {
      order.use(slot)
      return true
    }
    let slot = free.popLast() ?? Slot(UInt32(keys.count))
    if Int(slot.index) == keys.count { keys.append(key) } else { keys[Int(slot.index)] = key }
    slots[key] = slot
    order.insert(slot, hash: UInt32(truncatingIfNeeded: key.hashValue))
    if order.count > entryLimit {
      let victim = order.nextVictim()
      order.remove(victim)
      slots[keys[Int(victim.index)]] = nil
      free.append(victim)
    }
    return false
  }
}
