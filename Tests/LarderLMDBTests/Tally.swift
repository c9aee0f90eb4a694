import Synchronization

/// Counts, from several threads.
final class Tally: Sendable {
  private let state = Atomic(0)

  var count: Int { state.load(ordering: .acquiring) }

  func add() {
    state.add(1, ordering: .acquiringAndReleasing)
  }
}
