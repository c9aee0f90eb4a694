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

  /// Runs a closure on the queue, and returns what it returns.
  ///
  /// - Parameter body: Work that may block.
  /// - Throws: What `body` throws.
  public func run<Result: Sendable>(_ body: @escaping @Sendable () throws -> Result) async throws -> Result {
    try await withCheckedThrowingContinuation { continuation in
      queue.async {
        // The result is handed on and not kept until the closure ends: what it holds, such as a lock, is let go when the
        // caller lets it go.
        do {
          continuation.resume(returning: try body())
        } catch {
          continuation.resume(throwing: error)
        }
      }
    }
  }
}
