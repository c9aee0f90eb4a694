import Foundation

/// What became of the calls of a group.
struct GroupOutcome: Sendable {
  /// How many callers are worth a task that tells them.
  private static let callersPerTask = 64

  /// How many threads run tasks; asked for once, because on Linux files are read for it.
  private static let threadCount = ProcessInfo.processInfo.activeProcessorCount

  /// The error of each call, in order; nothing where all succeeded.
  let errors: [(any Error)?]

  /// Tells the callers, many of them on all threads at once.
  ///
  /// Where only one thread told them, another would run each caller as fast as it is told, sleep, and be woken for the
  /// next: half of the time would go into that. When all have been told, nearly all of them have still to run.
  func tell(_ callers: [QueuedCaller]) async {
    let count = min(GroupOutcome.threadCount, callers.count / GroupOutcome.callersPerTask)
    guard count > 1 else {
      tell(callers, callers.indices)
      return
    }
    await withDiscardingTaskGroup { tasks in
      for part in 0..<count {
        let indices = callers.count * part / count..<callers.count * (part + 1) / count
        tasks.addTask { tell(callers, indices) }
      }
    }
  }

  private func tell(_ callers: [QueuedCaller], _ indices: Range<Int>) {
    for index in indices { callers[index].tell(.finished(errors.isEmpty ? nil : errors[index])) }
  }
}
