/// The slots whose entries were read in a stripe, until the order of eviction hears of them.
@usableFromInline
struct NotedReads: ~Copyable {
  /// How many there may be.
  @inlinable static var capacity: Int { 16 }

  @usableFromInline var slots = SlotArray<Slot>(count: NotedReads.capacity, repeating: .none)
  @usableFromInline var count = 0

  @usableFromInline
  init() {}

  @inlinable var isFull: Bool { count == NotedReads.capacity }

  @inlinable
  mutating func append(_ slot: Slot) {
    guard !isFull else { return }
    slots[count] = slot
    count += 1
  }

  @inlinable
  mutating func removeAll() {
    count = 0
  }
}
