import Dispatch
import Larder

/// An executor that runs the jobs of an actor on its own serial queue, so work that waits for the disk never occupies a
/// thread of the cooperative pool.
public final class DispatchQueueExecutor: SerialExecutor {
  private let label: String
  private let queue: DispatchQueue

  /// Creates an executor with its own queue.
  ///
  /// - Parameter label: The label of the queue, for debuggers.
  public init(label: String) {
    self.label = label
    queue = DispatchQueue(label: label)
  }

  /// Runs a job after all previous ones.
  public func enqueue(_ job: consuming ExecutorJob) {
    let job = UnownedJob(job)
    start { job.runSynchronously(on: self.asUnownedSerialExecutor()) }
  }

  /// Starts a closure on the queue after all previous work, without waiting for it.
  ///
  /// - Parameter body: A closure that may block.
  public func start(_ body: @escaping @Sendable () -> Void) {
    #if DEBUG
    if let scheduler = WorkScheduler.current { return scheduler.schedule(on: self, named: label, body) }
    #endif
    queue.async(execute: body)
  }

  /// Runs a closure on the queue and returns its result.
  ///
  /// - Parameter body: A closure that may block.
  /// - Throws: The error that `body` throws.
  public func run<Result: Sendable, Failure: Error>(
    _ body: @escaping @Sendable () throws(Failure) -> Result
  ) async throws(Failure) -> Result {
    let result: Swift.Result<Result, Failure> = await withCheckedContinuation { continuation in
      start {
        // The result is passed on directly instead of being kept until this closure ends. An object that it holds, such
        // as a lock, is then released when the caller releases it.
        continuation.resume(returning: Swift.Result(catching: body))
      }
    }
    return try result.get()
  }
}
