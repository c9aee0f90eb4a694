/// Everything that a queue knows of an item.
struct ItemState: Sendable, Hashable {
  var item: QueueItem
  /// There is one exactly where the item is delayed or leased.
  var timer: ItemTimer?
  /// There is one exactly where the item is dead.
  var death: Death?
  /// Reserved: the name of the group that the item belongs to; it is kept, and not looked at.
  var group: [UInt8] = []

  /// The phase, with its data.
  var standing: Standing {
    get {
      switch item.phase {
      case .waiting: .waiting
      case .delayed: .delayed(timer ?? ItemTimer(deadline: 0, length: 0))
      case .leased: .leased(timer ?? ItemTimer(deadline: 0, length: 0))
      case .dead: .dead(death ?? Death(reason: .undecodable, time: 0))
      }
    }
    set {
      (timer, death) = (nil, nil)
      switch newValue {
      case .waiting: item.phase = .waiting
      case .delayed(let new): (item.phase, timer) = (.delayed, new)
      case .leased(let new): (item.phase, timer) = (.leased, new)
      case .dead(let new): (item.phase, death) = (.dead, new)
      }
    }
  }
}

/// The phase of an item, with the data that belongs to it.
enum Standing: Sendable, Hashable {
  case waiting
  case delayed(ItemTimer)
  case leased(ItemTimer)
  case dead(Death)

  var phase: QueueItem.Phase {
    switch self {
    case .waiting: .waiting
    case .delayed: .delayed
    case .leased: .leased
    case .dead: .dead
    }
  }
}
