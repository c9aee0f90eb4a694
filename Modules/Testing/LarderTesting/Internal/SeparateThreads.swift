import Foundation

/// Runs tasks on threads of their own, outside the pool that Swift's tasks share, so that they start even while
/// something blocks that pool, or other threads of theirs: a queue has only so many.
final class SeparateThreads: TaskExecutor {
  func enqueue(_ job: consuming ExecutorJob) {
    let job = UnownedJob(job)
    Thread.detachNewThread {
      job.runSynchronously(on: self.asUnownedTaskExecutor())
    }
  }
}
