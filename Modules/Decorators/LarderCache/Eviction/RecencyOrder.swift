/// The order of ``EvictionPolicy/lru``: what was not used for the longest time goes first.
struct RecencyOrder: EvictionOrder, ~Copyable {
  private enum Mark {
    static let free: UInt8 = 0
    static let used: UInt8 = 1
  }

  private var records: SlotRecords
  private var list = SlotRecords.List()

  init(slotCount: Int, hasCosts: Bool) {
    records = SlotRecords(slotCount: slotCount, hasCosts: hasCosts)
  }

  var count: Int { list.count }

  var totalCost: Int { list.cost }

  mutating func insert(_ slot: Slot, hash: UInt32, cost: Int) {
    records.append(slot, hash: hash, cost: cost, mark: Mark.used, to: &list)
  }

  mutating func update(_ slot: Slot, cost: Int) {
    records.setCost(cost, of: slot, in: &list)
    use(slot)
  }

  mutating func recordUses(of slots: borrowing SlotArray<Slot>, count: Int) {
    for index in 0..<count { use(slots[index]) }
  }

  private mutating func use(_ slot: Slot) {
    guard records.mark(of: slot) != Mark.free else { return }
    records.moveToEnd(slot, of: &list)
  }

  mutating func remove(_ slot: Slot) {
    records.remove(slot, from: &list)
    records.setMark(Mark.free, of: slot)
  }

  mutating func nextVictim() -> Slot { list.first }
}
