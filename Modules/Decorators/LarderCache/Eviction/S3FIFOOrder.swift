/// The order of ``EvictionPolicy/s3FIFO``: three queues, of which no use moves an entry.
///
/// What is new comes into a small queue, of a tenth of the cache. What was used again by the time it reaches its end
/// goes over into the main queue; the rest goes, and the hashes of their keys are remembered for as long as the main
/// queue is: if such a key comes again, it comes into the main queue at once. There an entry that was used goes round
/// again, up to three times.
///
/// See Yang, Zhang, Qiu, Yue and Vinayak, "FIFO queues are all you need for cache eviction" (SOSP 2023).
struct S3FIFOOrder: EvictionOrder, ~Copyable {
  private enum Mark {
    static let free: UInt8 = 0
    static let small: UInt8 = 4
    static let main: UInt8 = 8
    /// The lowest two bits count uses.
    static let uses: UInt8 = 3
  }

  private static var smallShare: Double { 0.1 }

  private let smallLimit: Int
  private let smallCostLimit: Int

  private var records: SlotRecords
  private var small = SlotRecords.List()
  private var main = SlotRecords.List()
  private var ghosts: GhostQueue

  init(entryLimit: Int, costLimit: Int?, slotCount: Int, hasCosts: Bool) {
    smallLimit = max(1, Int(Double(entryLimit) * S3FIFOOrder.smallShare))
    smallCostLimit = costLimit.map { Int(Double($0) * S3FIFOOrder.smallShare) } ?? .max
    records = SlotRecords(slotCount: slotCount, hasCosts: hasCosts)
    ghosts = GhostQueue(capacity: max(1, entryLimit - smallLimit))
  }

  var count: Int { small.count + main.count }

  var totalCost: Int { small.cost + main.cost }

  mutating func insert(_ slot: Slot, hash: UInt32, cost: Int) {
    if ghosts.remove(hash) {
      records.append(slot, hash: hash, cost: cost, mark: Mark.main, to: &main)
    } else {
      records.append(slot, hash: hash, cost: cost, mark: Mark.small, to: &small)
    }
  }

  mutating func update(_ slot: Slot, cost: Int) {
    if records.mark(of: slot) & Mark.small != 0 {
      records.setCost(cost, of: slot, in: &small)
    } else {
      records.setCost(cost, of: slot, in: &main)
    }
    use(slot)
  }

  mutating func recordUses(of slots: borrowing SlotArray<Slot>, count: Int) {
    for index in 0..<count { use(slots[index]) }
  }

  private mutating func use(_ slot: Slot) {
    let mark = records.mark(of: slot)
    guard mark != Mark.free, mark & Mark.uses < Mark.uses else { return }
    records.setMark(mark + 1, of: slot)
  }

  mutating func remove(_ slot: Slot) {
    if records.mark(of: slot) & Mark.small != 0 {
      records.remove(slot, from: &small)
    } else {
      records.remove(slot, from: &main)
    }
    records.setMark(Mark.free, of: slot)
  }

  mutating func nextVictim() -> Slot {
    while small.count > smallLimit || small.cost > smallCostLimit || main.count == 0 {
      let slot = small.first
      guard slot != .none else { break }
      guard records.mark(of: slot) & Mark.uses > 1 else {
        ghosts.append(records.hash(of: slot))
        return slot
      }
      records.remove(slot, from: &small)
      records.append(slot, mark: Mark.main, to: &main)
    }
    while main.first != .none {
      let slot = main.first
      let mark = records.mark(of: slot)
      guard mark & Mark.uses > 0 else { return slot }
      records.remove(slot, from: &main)
      records.append(slot, mark: mark - 1, to: &main)
    }
    return small.first
  }
}
