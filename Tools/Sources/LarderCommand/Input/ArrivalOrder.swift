import Dispatch

/// Runs tasks one after another, in the order in which they were made, as far as each goes without waiting.
///
/// So what they ask of a store comes to it in that order, though all of it may be waited for at once.
final class ArrivalOrder: TaskExecutor {
  private let queue = DispatchQueue(label: "larder.import")

  /// Runs a job after those that came before.
  func enqueue(_ job: consuming ExecutorJob) {
    let job = UnownedJob(job)
    queue.async {
      job.runSynchronously(on: self.asUnownedTaskExecutor())
    }
  }
}
