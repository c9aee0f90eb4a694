import Synchronization

/// A count of unfinished tasks.
final class OpenTasks: Sendable {
  private let count: Mutex<Int>

  init(_ count: Int) {
    self.count = Mutex(count)
  }

  /// Whether all tasks are finished.
  var areDone: Bool { count.withLock { $0 == 0 } }

  /// Records that a task is finished.
  func end() {
    count.withLock { $0 -= 1 }
  }
}
