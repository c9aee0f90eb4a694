import Larder

/// An item of a queue without its payload, as kept in memory.
struct QueueItem: Sendable, Hashable {
  /// The phase of an item.
  ///
  /// The files store the raw values.
  enum Phase: UInt8, Sendable, CaseIterable {
    case waiting = 0
    case delayed = 1
    case leased = 2
    case dead = 3
  }

  /// The position in the order of arrival, which is never assigned again.
  let sequence: UInt64
  let key: StoreKey
  /// The time of arrival, in microseconds since 1970.
  var arrival: Int64
  var place = QueuePlace(segment: 0, offset: 0, length: 0)
  /// The number of deliveries.
  var attempts: UInt32 = 0
  /// The segment with the last record about the item.
  ///
  /// It is the segment of the payload if there is no other record.
  var stateSegment: UInt32 = 0
  var phase: Phase = .waiting
  /// A Boolean value that indicates whether the caller gave the key, so it is remembered after acknowledgement and the
  /// codec learns it.
  var hasCallersKey: Bool

  /// The size that counts against the capacity, in bytes.
  var size: Int { key.count + Int(place.length) }
}

/// The complete state of an item.
struct ItemState: Sendable, Hashable {
  var item: QueueItem
  /// The timer, present only if the item is delayed or leased.
  var timer: ItemTimer?
  /// The cause, present only if the item is a dead letter.
  var cause: DeadLetterCause?

  /// The phase with its data.
  var standing: Standing {
    get {
      switch item.phase {
      case .waiting: .waiting
      case .delayed: .delayed(timer ?? ItemTimer(deadline: 0, length: 0))
      case .leased: .leased(timer ?? ItemTimer(deadline: 0, length: 0))
      case .dead: .dead(cause ?? DeadLetterCause(reason: .undecodable, time: 0))
      }
    }
    set {
      (timer, cause) = (nil, nil)
      switch newValue {
      case .waiting: item.phase = .waiting
      case .delayed(let new): (item.phase, timer) = (.delayed, new)
      case .leased(let new): (item.phase, timer) = (.leased, new)
      case .dead(let new): (item.phase, cause) = (.dead, new)
      }
    }
  }
}

/// The phase of an item with its data.
enum Standing: Sendable, Hashable {
  case waiting
  case delayed(ItemTimer)
  case leased(ItemTimer)
  case dead(DeadLetterCause)

  var phase: QueueItem.Phase {
    switch self {
    case .waiting: .waiting
    case .delayed: .delayed
    case .leased: .leased
    case .dead: .dead
    }
  }
}

/// The deadline of a delay or a lease.
struct ItemTimer: Sendable, Hashable {
  /// The deadline, in microseconds since 1970.
  var deadline: Int64
  /// The duration, in microseconds.
  ///
  /// It limits the remaining time if the wall clock is changed.
  var length: Int64
  /// A number that distinguishes a lease from all other leases; 0 for a delay.
  var epoch: UInt64 = 0
}

/// The reason why an item became a dead letter, and the time.
struct DeadLetterCause: Sendable, Hashable {
  var reason: DeadLetterReason
  /// The time, in microseconds since 1970.
  var time: Int64
}

/// The location of an item's payload in the log.
struct QueuePlace: Sendable, Hashable {
  /// The number of the segment.
  var segment: UInt32
  /// The offset in the segment of the payload's checksum, which the payload follows.
  var offset: UInt32
  /// The length of the payload, in bytes.
  var length: UInt32
}
