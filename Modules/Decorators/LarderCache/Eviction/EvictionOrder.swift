/// The order in which entries have to go, on slots alone: it knows neither keys nor values, and has no lock.
///
/// An ``EvictionPolicy`` says which one a cache has.
protocol EvictionOrder: ~Copyable {
  /// How many slots are in the order.
  var count: Int { get }

  /// What their entries cost together.
  var totalCost: Int { get }

  /// Takes in a slot whose key was not there.
  ///
  /// - Parameters:
  ///   - slot: The slot.
  ///   - hash: A part of the hash of its key.
  ///   - cost: What its entry costs.
  mutating func insert(_ slot: Slot, hash: UInt32, cost: Int)

  /// Notes that the entry of a slot was replaced, which is a use of it too.
  ///
  /// - Parameters:
  ///   - slot: The slot.
  ///   - cost: What the new entry costs.
  mutating func update(_ slot: Slot, cost: Int)

  /// Notes that entries were read.
  ///
  /// - Parameters:
  ///   - slots: Their slots; one that is in use no more is passed over.
  ///   - count: How many of them there are.
  mutating func recordUses(of slots: borrowing SlotArray<Slot>, count: Int)

  /// Notes that the entry of a slot is gone, whether it was chosen or not.
  mutating func remove(_ slot: Slot)

  /// Chooses the slot whose entry has to go next; `none` where there is no entry.
  mutating func nextVictim() -> Slot
}
