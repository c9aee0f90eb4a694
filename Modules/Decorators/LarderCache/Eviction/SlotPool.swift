/// The slots of a cache that are free.
struct SlotPool: ~Copyable {
  private var nexts: SlotArray<Slot>
  private var firstReturned = Slot.none
  private var firstUnused: UInt32 = 0

  /// Makes a pool in which all slots are free.
  ///
  /// - Parameter slotCount: How many there are.
  init(slotCount: Int) {
    nexts = SlotArray(count: slotCount, repeating: .none)
  }

  /// The slot that ``take()`` would take; `none` where all are in use.
  var next: Slot {
    if firstReturned != .none { return firstReturned }
    return Int(firstUnused) < nexts.count ? Slot(firstUnused) : .none
  }

  /// Takes the next free slot, where there is one.
  mutating func take() {
    if firstReturned != .none {
      firstReturned = nexts[firstReturned]
    } else if Int(firstUnused) < nexts.count {
      firstUnused += 1
    }
  }

  /// Gives a slot back.
  mutating func giveBack(_ slot: Slot) {
    nexts[slot] = firstReturned
    firstReturned = slot
  }
}
