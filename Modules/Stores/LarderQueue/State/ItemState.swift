/// Everything that a queue knows of an item.
struct ItemState: Sendable, Hashable {
  var item: QueueItem
  /// There is one exactly where the item is delayed or leased.
  var timer: ItemTimer?
  /// There is one exactly where the item is dead.
  var death: Death?
}
