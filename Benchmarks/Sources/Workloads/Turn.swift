import Synchronization

/// Gives the numbers below a count in turn, for rounds that each do another part of the work and for tasks that share it.
final class Turn: Sendable {
  private let count: Int
  private let number = Atomic(0)

  init(count: Int) {
    self.count = count
  }

  /// The next number.
  func next() -> Int {
    number.add(1, ordering: .relaxed).oldValue % count
  }
}
