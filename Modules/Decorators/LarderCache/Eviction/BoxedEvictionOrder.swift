/// The box of an ``EvictionOrder`` that is an ``EvictionQueue``.
final class BoxedEvictionOrder<Order: EvictionOrder & ~Copyable>: EvictionQueue {
  private var order: Order

  init(_ order: consuming Order) {
    self.order = order
  }

  var count: Int { order.count }

  var totalCost: Int { order.totalCost }

  func insert(_ slot: Slot, hash: UInt32, cost: Int) { order.insert(slot, hash: hash, cost: cost) }

  func update(_ slot: Slot, cost: Int) { order.update(slot, cost: cost) }

  func recordUses(of slots: borrowing SlotArray<Slot>, count: Int) {
    order.recordUses(of: slots, count: count)
  }

  func remove(_ slot: Slot) { order.remove(slot) }

  func nextVictim() -> Slot { order.nextVictim() }
}
