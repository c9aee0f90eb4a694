import Larder

/// An item of a queue, without its payload: what is kept in memory of each.
struct QueueItem: Sendable, Hashable {
  /// In which of the states an item is; the numbers stand in the files.
  enum Phase: UInt8, Sendable, CaseIterable {
    case waiting = 0
    case delayed = 1
    case leased = 2
    case dead = 3
  }

  /// Its place in the order of arrival; never given again.
  let sequence: UInt64
  let key: StoreKey
  /// When it came, in microseconds since 1970.
  var arrival: Int64
  var place: QueuePlace
  /// How often it was handed out.
  var attempts: UInt32 = 0
  /// The segment with the last record about it; that of its payload where no other says anything.
  var stateSegment: UInt32 = 0
  var phase: Phase = .waiting
  /// Whether the caller gave the key, so that it is remembered after acknowledgement.
  var hasCallersKey: Bool
  /// Reserved: it is kept, and not looked at.
  var priority: UInt8 = 0

  /// The bytes that it counts against a capacity.
  var size: Int { key.count + Int(place.length) }
}
