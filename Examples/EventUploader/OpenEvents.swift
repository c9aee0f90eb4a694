import Synchronization

/// How many events have still to be let go, counted by several tasks.
final class OpenEvents: Sendable {
  private let count: Mutex<Int>

  init(_ count: Int) {
    self.count = Mutex(count)
  }

  /// Whether there are none.
  var isEmpty: Bool { count.withLock { $0 == 0 } }

  /// Takes off some that have been let go.
  ///
  /// - Returns: Whether these were the last ones, which one caller is told.
  func settle(_ settled: Int) -> Bool {
    count.withLock { count in
      count -= settled
      return count == 0 && settled > 0
    }
  }
}
