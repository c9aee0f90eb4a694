import Dispatch

/// Runs the jobs of an actor on a serial queue of its own, so that work which waits for the disk never occupies a thread
/// of the cooperative pool.
public final class DispatchQueueExecutor: SerialExecutor {
  private let queue: DispatchQueue

  /// Makes an executor with a queue of its own.
  ///
  /// - Parameter label: What the queue is called in debuggers.
  public init(label: String) {
    queue = DispatchQueue(label: label)
  }

  /// Runs a job after those that came before.
  public func enqueue(_ job: consuming ExecutorJob) {
    let job = UnownedJob(job)
    queue.async {
      job.runSynchronously(on: self.asUnownedSerialExecutor())
    }
  }

  /// Starts a closure on the queue after what came before, and does not wait for it.
  ///
  /// - Parameter body: Work that may block.
  public func start(_ body: @escaping @Sendable () -> Void) {
    queue.async(execute: body)
  }

  /// Runs a closure on the queue, and returns what it returns.
  ///
  /// - Parameter body: Work that may block.
  /// - Throws: What `body` throws.
  public func run<Result: Sendable, Failure: Error>(
    _ body: @escaping @Sendable () throws(Failure) -> Result
  ) async throws(Failure) -> Result {
    let result: Swift.Result<Result, Failure> = await withCheckedContinuation { continuation in
      queue.async {
        // The result is handed on and not kept until the closure ends: what it holds, such as a lock, is let go when the
        // caller lets it go.
        do throws(Failure) {
          continuation.resume(returning: .success(try body()))
        } catch {
          continuation.resume(returning: .failure(error))
        }
      }
    }
    return try result.get()
  }
}
