/// Until when an item is delayed or leased.
struct ItemTimer: Sendable, Hashable {
  /// In microseconds since 1970.
  var deadline: Int64
  /// In microseconds: however the clock on the wall is set, the item is not kept back longer from then on.
  var length: Int64
  /// The number that distinguishes a lease from every other; 0 for a delay.
  var epoch: UInt64 = 0
}
