import Dispatch

/// Runs tasks on threads of their own, outside the pool that Swift's tasks share, so that they start even while
/// something blocks that pool.
final class SeparateThreads: TaskExecutor {
  private let queue = DispatchQueue(label: "larder.testing.separate", attributes: .concurrent)

  func enqueue(_ job: consuming ExecutorJob) {
    let job = UnownedJob(job)
    queue.async {
      job.runSynchronously(on: self.asUnownedTaskExecutor())
    }
  }
}
