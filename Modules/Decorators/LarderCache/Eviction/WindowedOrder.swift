/// The lists of W-TinyLFU, with a window of a given size.
///
/// A new entry enters the window, a list in order of recency. Entries that no longer fit in the window become
/// candidates for the main part. A candidate is admitted if it was used more often than the entry that the main part
/// would evict. Otherwise, the candidate is evicted. The main part is a segmented LRU. An entry is on probation until
/// it is used there. Then it is protected until entries used more recently displace it.
struct WindowedOrder: ~Copyable {
  private enum Mark {
    static let free: UInt8 = 0
    static let window: UInt8 = 1
    static let probation: UInt8 = 2
    static let protected: UInt8 = 3
  }

  /// The share of the main part that may be protected.
  private static var protectedShare: Double { 0.8 }

  /// The maximum number of entries that one call moves from a list that has become too long.
  private static var moveLimit: Int { 64 }

  private let entryLimit: Int
  private let costLimit: Int

  private var records: SlotRecords
  private var window = SlotRecords.List()
  private var probation = SlotRecords.List()
  private var protected = SlotRecords.List()
  private var windowLimit = 0
  private var windowCostLimit = 0
  private var protectedLimit = 0
  private var protectedCostLimit = 0
  // The first of the entries at the end of the probation list that the latest insertion moved there from the window.
  private var candidate = Slot.none
  private var randomState: UInt64 = 0x9E37_79B9_7F4A_7C15

  init(entryLimit: Int, costLimit: Int?, hasCosts: Bool, windowShare: Double) {
    self.entryLimit = entryLimit
    self.costLimit = costLimit ?? .max
    records = SlotRecords(hasCosts: hasCosts)
    setWindowShare(windowShare)
  }

  var count: Int { window.count + probation.count + protected.count }

  var totalCost: Int { window.cost + probation.cost + protected.cost }

  func isInUse(_ slot: Slot) -> Bool { records.mark(of: slot) != Mark.free }

  func hash(of slot: Slot) -> UInt32 { records.hash(of: slot) }

  /// Changes the size of the window.
  ///
  /// Entries move as others are inserted and used.
  ///
  /// - Parameter share: The share of the whole cache, or 1 for a window of the whole cache, which is LRU.
  mutating func setWindowShare(_ share: Double) {
    guard share < 1 else { return (windowLimit, windowCostLimit) = (.max, .max) }
    let protected = (1 - share) * WindowedOrder.protectedShare
    windowLimit = max(1, Int(Double(entryLimit) * share))
    protectedLimit = Int(Double(entryLimit) * protected)
    windowCostLimit = costLimit == .max ? .max : Int(Double(costLimit) * share)
    protectedCostLimit = costLimit == .max ? .max : Int(Double(costLimit) * protected)
  }

  // MARK: Changes

  mutating func insert(_ slot: Slot, hash: UInt32, cost: Int) {
    records.append(slot, hash: hash, cost: cost, mark: Mark.window, to: &window)
    candidate = .none
    shrinkWindow()
  }

  mutating func setCost(_ cost: Int, of slot: Slot) {
    switch records.mark(of: slot) {
    case Mark.window: records.setCost(cost, of: slot, in: &window)
    case Mark.probation: records.setCost(cost, of: slot, in: &probation)
    default: records.setCost(cost, of: slot, in: &protected)
    }
    candidate = .none
    shrinkWindow()
  }

  mutating func use(_ slot: Slot) {
    switch records.mark(of: slot) {
    case Mark.window:
      records.moveToEnd(slot, of: &window)
    case Mark.probation:
      if candidate == slot { candidate = records.next(after: slot) }
      records.remove(slot, from: &probation)
      records.append(slot, mark: Mark.protected, to: &protected)
      shrinkProtected()
    default:
      records.moveToEnd(slot, of: &protected)
    }
  }

  mutating func remove(_ slot: Slot) {
    switch records.mark(of: slot) {
    case Mark.window:
      records.remove(slot, from: &window)
    case Mark.probation:
      if candidate == slot { candidate = records.next(after: slot) }
      records.remove(slot, from: &probation)
    default:
      records.remove(slot, from: &protected)
    }
    records.setMark(Mark.free, of: slot)
  }

  /// Moves entries that no longer fit in the window to probation.
  private mutating func shrinkWindow() {
    for _ in 0..<WindowedOrder.moveLimit {
      guard window.count > windowLimit || window.cost > windowCostLimit else { break }
      let slot = window.first
      records.remove(slot, from: &window)
      records.append(slot, mark: Mark.probation, to: &probation)
      if candidate == .none { candidate = slot }
    }
    shrinkProtected()
  }

  private mutating func shrinkProtected() {
    for _ in 0..<WindowedOrder.moveLimit {
      guard protected.count > protectedLimit || protected.cost > protectedCostLimit else { break }
      let slot = protected.first
      records.remove(slot, from: &protected)
      records.append(slot, mark: Mark.probation, to: &probation)
    }
  }

  // MARK: Eviction

  mutating func nextVictim(by sketch: borrowing FrequencySketch) -> Slot {
    let victim = probation.first
    guard victim != .none else { return protected.first == .none ? window.first : protected.first }
    guard candidate != .none, candidate != victim else { return victim }
    return isAdmitted(candidate, inPlaceOf: victim, by: sketch) ? victim : candidate
  }

  private mutating func isAdmitted(
    _ candidate: Slot, inPlaceOf victim: Slot, by sketch: borrowing FrequencySketch
  ) -> Bool {
    let candidateCount = sketch.estimate(records.hash(of: candidate))
    let victimCount = sketch.estimate(records.hash(of: victim))
    if candidateCount > victimCount { return true }
    // An attacker who knows which keys share counters could keep the estimate of a victim high. Random admission ends
    // that.
    guard candidateCount > 5 else { return false }
    randomState ^= randomState << 13
    randomState ^= randomState >> 7
    randomState ^= randomState << 17
    return randomState & 127 == 0
  }
}

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
  /// A Boolean value that indicates whether entries may have a cost other than 1.
  let hasCosts: Bool

  // MARK: One slot

  func hash(of slot: Slot) -> UInt32 { self[slot].pointee.hash }

  func mark(of slot: Slot) -> UInt8 { self[slot].pointee.mark }

  mutating func setMark(_ mark: UInt8, of slot: Slot) { self[slot].pointee.mark = mark }

  func cost(of slot: Slot) -> Int { hasCosts ? costs[slot] : 1 }

  func next(after slot: Slot) -> Slot { self[slot].pointee.next }

  // A pointer, because changing one field would otherwise copy the record twice.
  private subscript(slot: Slot) -> UnsafeMutablePointer<Record> { records.pointer(to: slot) }

  // MARK: Lists

  /// Appends a new slot to a list.
  mutating func append(_ slot: Slot, hash: UInt32, cost: Int, mark: UInt8, to list: inout List) {
    records.reserve(slot, repeating: Record())
    self[slot].pointee.hash = hash
    if hasCosts {
      costs.reserve(slot, repeating: 0)
      costs[slot] = cost
    }
    append(slot, mark: mark, to: &list)
  }

  /// Appends a slot that was removed from its list to another list.
  mutating func append(_ slot: Slot, mark: UInt8, to list: inout List) {
    let record = self[slot]
    record.pointee.previous = list.last
    record.pointee.next = .none
    record.pointee.mark = mark
    if list.last == .none { list.first = slot } else { self[list.last].pointee.next = slot }
    list.last = slot
    list.count += 1
    list.cost += cost(of: slot)
  }

  /// Removes a slot from its list.
  mutating func remove(_ slot: Slot, from list: inout List) {
    let (previous, next) = (self[slot].pointee.previous, self[slot].pointee.next)
    if previous == .none { list.first = next } else { self[previous].pointee.next = next }
    if next == .none { list.last = previous } else { self[next].pointee.previous = previous }
    list.count -= 1
    list.cost -= cost(of: slot)
  }

  /// Moves a slot to the end of its list.
  mutating func moveToEnd(_ slot: Slot, of list: inout List) {
    guard list.last != slot else { return }
    remove(slot, from: &list)
    append(slot, mark: mark(of: slot), to: &list)
  }

  /// Changes the cost of the entry of a slot.
  mutating func setCost(_ cost: Int, of slot: Slot, in list: inout List) {
    guard hasCosts else { return }
    list.cost += cost - costs[slot]
    costs[slot] = cost
  }
}
