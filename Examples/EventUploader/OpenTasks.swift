import Synchronization

/// How many tasks have something left to do, counted by themselves.
final class OpenTasks: Sendable {
  private let count: Mutex<Int>

  init(_ count: Int) {
    self.count = Mutex(count)
  }

  /// Whether all of them are done.
  var areDone: Bool { count.withLock { $0 == 0 } }

  /// Takes off one that is done.
  func end() {
    count.withLock { $0 -= 1 }
  }
}
