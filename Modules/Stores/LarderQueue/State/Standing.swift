/// What an item waits for: a phase, with what belongs to it.
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
