import Synchronization

/// A count that tasks share.
final class Tally: Sendable {
  private let value = Atomic(0)

  var count: Int { value.load(ordering: .sequentiallyConsistent) }

  func add() {
    value.add(1, ordering: .sequentiallyConsistent)
  }
}
