/// W-TinyLFU with a window whose size does not adapt.
///
/// A new entry comes into a window, a list by recency. What the window has no room for is to enter the main part, and
/// does where it was asked for more often than the main part's own candidate for eviction: the loser of the two goes.
/// The main part is a segmented LRU: an entry is on probation until it is used there, then protected until others have
/// been used since.
struct FixedWindowOrder: YardstickOrder, ~Copyable {
  private enum Mark {
    static let free: UInt8 = 0
    static let window: UInt8 = 1
    static let probation: UInt8 = 2
    static let protected: UInt8 = 3
  }

  /// The part of the main part that may be protected.
  private static var protectedShare: Double { 0.8 }

  /// How many entries one call moves at most from a list that has become too long.
  private static var moveLimit: Int { 64 }

  private var records: SlotRecords
  private var window = SlotRecords.List()
  private var probation = SlotRecords.List()
  private var protected = SlotRecords.List()
  private let windowLimit: Int
  private let protectedLimit: Int
  private var sketch: FrequencySketch
  // The first of those at the end of probation that came from the window with the latest insertion.
  private var candidate = Slot.none
  private var randomState: UInt64 = 0x9E37_79B9_7F4A_7C15

  /// Makes an order.
  ///
  /// - Parameters:
  ///   - entryLimit: How many entries there are at most.
  ///   - share: The part of them that the window holds.
  init(entryLimit: Int, share: Double) {
    windowLimit = max(1, Int(Double(entryLimit) * share))
    protectedLimit = Int(Double(entryLimit) * (1 - share) * FixedWindowOrder.protectedShare)
    sketch = FrequencySketch(capacity: entryLimit)
    records = SlotRecords(slotCount: entryLimit + 1, hasCosts: false)
  }

  var count: Int { window.count + probation.count + protected.count }

  // MARK: Changes

  mutating func insert(_ slot: Slot, hash: UInt32) {
    sketch.increment(hash)
    records.append(slot, hash: hash, cost: 1, mark: Mark.window, to: &window)
    candidate = .none
    shrinkWindow()
  }

  mutating func use(_ slot: Slot) {
    sketch.increment(records.hash(of: slot))
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

  /// Puts on probation what the window has no room for.
  private mutating func shrinkWindow() {
    for _ in 0..<FixedWindowOrder.moveLimit {
      guard window.count > windowLimit else { break }
      let slot = window.first
      records.remove(slot, from: &window)
      records.append(slot, mark: Mark.probation, to: &probation)
      if candidate == .none { candidate = slot }
    }
    shrinkProtected()
  }

  private mutating func shrinkProtected() {
    for _ in 0..<FixedWindowOrder.moveLimit {
      guard protected.count > protectedLimit else { break }
      let slot = protected.first
      records.remove(slot, from: &protected)
      records.append(slot, mark: Mark.probation, to: &probation)
    }
  }

  // MARK: Eviction

  mutating func nextVictim() -> Slot {
    let victim = probation.first
    guard victim != .none else { return protected.first == .none ? window.first : protected.first }
    guard candidate != .none, candidate != victim else { return victim }
    return isAdmitted(candidate, inPlaceOf: victim) ? victim : candidate
  }

  private mutating func isAdmitted(_ candidate: Slot, inPlaceOf victim: Slot) -> Bool {
    let candidateCount = sketch.estimate(records.hash(of: candidate))
    let victimCount = sketch.estimate(records.hash(of: victim))
    if candidateCount > victimCount { return true }
    // Who knows which keys share counters could keep a victim's estimate high for ever; chance ends that.
    guard candidateCount > 5 else { return false }
    randomState ^= randomState << 13
    randomState ^= randomState >> 7
    randomState ^= randomState << 17
    return randomState & 127 == 0
  }
}
