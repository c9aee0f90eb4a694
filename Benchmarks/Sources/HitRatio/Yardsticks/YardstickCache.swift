/// The order in which the entries of a ``YardstickCache`` go.
protocol YardstickOrder: ~Copyable {
  /// How many slots are in the order.
  var count: Int { get }

  /// Takes in a slot whose key was not there.
  mutating func insert(_ slot: Slot, hash: UInt32)

  /// Notes a use of the key of a slot.
  mutating func use(_ slot: Slot)

  /// Notes that the key of a slot is gone.
  mutating func remove(_ slot: Slot)

  /// Chooses the slot whose key has to go next; `none` where there is none.
  mutating func nextVictim() -> Slot
}

/// A cache of keys alone, for comparing `MemoryCache` with other ways to choose what has to go.
struct YardstickCache<Order: YardstickOrder & ~Copyable>: ~Copyable {
  private let entryLimit: Int
  private var order: Order
  private var slots: [UInt64: Slot] = [:]
  private var keys: [UInt64] = []
  private var free: [Slot] = []

  /// Makes a cache.
  ///
  /// - Parameters:
  ///   - entryLimit: How many keys it holds at most.
  ///   - order: The order in which they go.
  init(entryLimit: Int, order: consuming Order) {
    self.entryLimit = entryLimit
    self.order = order
  }

  /// Asks for a key, and takes it in where it is missing.
  ///
  /// - Returns: Whether it was there.
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
