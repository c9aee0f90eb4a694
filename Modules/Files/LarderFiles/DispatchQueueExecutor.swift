import Dispatch
import Larder

/// An executor that runs the jobs of an actor on its own serial queue, so work that waits for the disk never occupies a
/// thread of the cooperative pool.
///
/// ```swift
/// actor Writer {
///   private let executor = DispatchQueueExecutor(label: "org.example.writer")
///   nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }
/// }
/// ```
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
  /// When it returns, the queue holds neither the closure nor the result. An object that they hold, such as an open file,
  /// is released when the caller releases it.
  ///
  /// - Parameter body: A closure that may block.
  /// - Throws: The error that `body` throws.
  public func run<Result: Sendable, Failure: Error>(
    _ body: @escaping @Sendable () throws(Failure) -> Result
  ) async throws(Failure) -> Result {
    // Only the queue uses the variable after this line, once.
    nonisolated(unsafe) var work: (() throws(Failure) -> Result)? = body
    let result: Swift.Result<Result, Failure> = await withCheckedContinuation { continuation in
      start { continuation.resume(returning: DispatchQueueExecutor.result(ofTaking: &work)) }
    }
    return try result.get()
  }

  /// Calls a closure and returns its result, when the closure and what it holds have been released.
  private static func result<Result, Failure: Error>(
    ofTaking work: inout (() throws(Failure) -> Result)?
  ) -> Swift.Result<Result, Failure> {
    guard let body = work.take() else { preconditionFailure("A piece of work runs once.") }
    return Swift.Result(catching: body)
  }
}
