/// An ``EvictionOrder`` of a kind that its user need not know.
protocol EvictionQueue: AnyObject {
  var count: Int { get }
  var totalCost: Int { get }
  func insert(_ slot: Slot, hash: UInt32, cost: Int)
  func update(_ slot: Slot, cost: Int)
  func recordUses(of slots: borrowing SlotArray<Slot>, count: Int)
  func remove(_ slot: Slot)
  func nextVictim() -> Slot
}
