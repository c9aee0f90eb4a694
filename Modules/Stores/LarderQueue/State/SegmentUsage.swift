/// The needed parts of a segment.
struct SegmentUsage: Sendable, Hashable {
  /// Items, dead ones too; remembered keys; and dead letters that came back by a record here.
  var count = 0
  /// About how many bytes it takes to write those anew.
  var size = 0
  /// The bytes that it takes to remember the ids of the items here, once they are acknowledged.
  var idBytes = 0
  /// Items whose payload lies elsewhere, and of which the last record is here.
  var states = 0
  /// The items lie between these sequence numbers that a record here took out or replaced, and of which an older segment
  /// may hold a record still.
  var gone: ClosedRange<UInt64>?
  /// The older segments that hold those records: this one must not go before them.
  var references: Set<UInt32> = []

  /// Whether what is here is needed, whatever other segments there are.
  var isLive: Bool { count > 0 || states > 0 }

  /// About how many bytes it takes to write anew what is needed, what is gone aside.
  var cost: Int { size + 40 * states }
}
