import Dispatch

/// Runs the jobs of tasks on the serial queue of a ``DispatchQueueExecutor``.
///
/// It is an object of its own: one that ran jobs both of the actor and of tasks would have every job of the actor look as
/// if it belonged to a task that prefers the queue.
final class DispatchQueueTaskExecutor: TaskExecutor {
  private let queue: DispatchQueue

  /// Makes one.
  ///
  /// - Parameter queue: The queue.
  init(_ queue: DispatchQueue) {
    self.queue = queue
  }

  /// Runs a job after those that came before.
  func enqueue(_ job: consuming ExecutorJob) {
    let job = UnownedJob(job)
    queue.async {
      job.runSynchronously(on: self.asUnownedTaskExecutor())
    }
  }
}
