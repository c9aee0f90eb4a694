import Synchronization

/// The numbers below a count in turn, for rounds that do different parts of the work, and for tasks that share it.
final class Turn: Sendable {
  private let count: Int
  private let number = Atomic(0)

  init(count: Int) {
    self.count = count
  }

  /// Returns the next number.
  func next() -> Int {
    number.add(1, ordering: .relaxed).oldValue % count
  }
}
