#if ServiceLifecycle
public import ServiceLifecycle

/// A worker runs in a `ServiceGroup`, whose graceful shutdown lets running closures end and takes no further items.
public struct QueueWorkerService: Service {
  /// The worker.
  public let worker: QueueWorker

  /// Creates a service.
  ///
  /// - Parameter worker: The worker.
  public init(_ worker: QueueWorker) {
    self.worker = worker
  }

  /// Runs the worker until the graceful shutdown; see ``QueueWorker/run()``.
  public func run() async throws {
    try await withGracefulShutdownHandler {
      try await worker.run()
    } onGracefulShutdown: {
      worker.shutDown()
    }
  }
}
#endif
