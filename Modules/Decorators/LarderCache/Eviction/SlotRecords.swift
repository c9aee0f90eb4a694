/// The records that an eviction order keeps of each slot: its neighbors in its list, the hash of its key, its cost, and
/// a mark.
struct SlotRecords: ~Copyable {
  /// A linked list of slots, whose links are in the records.
  struct List {
    fileprivate(set) var first = Slot.none
    fileprivate(set) var last = Slot.none

    /// The number of slots in the list.
    fileprivate(set) var count = 0

    /// The total cost of their entries.
    fileprivate(set) var cost = 0
  }

  // Not private: the compiler (6.3.1) breaks on arrays of a private type in another file.
  struct Record: BitwiseCopyable, Sendable {
    var previous = Slot.none
    var next = Slot.none
    var hash: UInt32 = 0
    var mark: UInt8 = 0
  }

  private let records = SlotArray<Record>()
  // Empty if each entry costs 1.
  private let costs = SlotArray<Int>()
  private let hasCosts: Bool

  /// Creates records for a cache.
  ///
  /// - Parameter hasCosts: Whether entries may have a cost other than 1.
  init(hasCosts: Bool) {
    self.hasCosts = hasCosts
  }

  // MARK: One slot

  func hash(of slot: Slot) -> UInt32 { records[slot].hash }

  func mark(of slot: Slot) -> UInt8 { records[slot].mark }

  mutating func setMark(_ mark: UInt8, of slot: Slot) { records[slot].mark = mark }

  func cost(of slot: Slot) -> Int { hasCosts ? costs[slot] : 1 }

  func next(after slot: Slot) -> Slot { records[slot].next }

  // MARK: Lists

  /// Appends a new slot to a list.
  mutating func append(_ slot: Slot, hash: UInt32, cost: Int, mark: UInt8, to list: inout List) {
    records.reserve(slot, repeating: Record())
    records[slot].hash = hash
    if hasCosts {
      costs.reserve(slot, repeating: 0)
      costs[slot] = cost
    }
    append(slot, mark: mark, to: &list)
  }

  /// Appends a slot that was removed from its list to another list.
  mutating func append(_ slot: Slot, mark: UInt8, to list: inout List) {
    records[slot].previous = list.last
    records[slot].next = .none
    records[slot].mark = mark
    if list.last == .none { list.first = slot } else { records[list.last].next = slot }
    list.last = slot
    list.count += 1
    list.cost += cost(of: slot)
  }

  /// Removes a slot from its list.
  mutating func remove(_ slot: Slot, from list: inout List) {
    let record = records[slot]
    if record.previous == .none { list.first = record.next } else { records[record.previous].next = record.next }
    if record.next == .none { list.last = record.previous } else { records[record.next].previous = record.previous }
    list.count -= 1
    list.cost -= cost(of: slot)
  }

  /// Moves a slot to the end of its list.
  mutating func moveToEnd(_ slot: Slot, of list: inout List) {
    guard list.last != slot else { return }
    let mark = records[slot].mark
    remove(slot, from: &list)
    append(slot, mark: mark, to: &list)
  }

  /// Changes the cost of the entry of a slot.
  mutating func setCost(_ cost: Int, of slot: Slot, in list: inout List) {
    guard hasCosts else { return }
    list.cost += cost - costs[slot]
    costs[slot] = cost
  }
}
