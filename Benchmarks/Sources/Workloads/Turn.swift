import Synchronization

/// Gives the numbers below a count in turn, for rounds that each do another part of the work.
final class Turn: Sendable {
  private let count: Int
  private let number = Mutex(0)

  init(count: Int) {
    self.count = count
  }

  /// The next number.
  func next() -> Int {
    number.withLock { number in
      defer { number = (number + 1) % count }
      return number
    }
  }
}
