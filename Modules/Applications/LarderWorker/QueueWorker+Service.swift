#if ServiceLifecycle
public import ServiceLifecycle

/// A worker runs in a `ServiceGroup`, whose graceful shutdown lets running closures end and takes no further items.
///
/// ```swift
/// let group = ServiceGroup(
///   configuration: .init(
///     services: [QueueWorkerService(worker)], gracefulShutdownSignals: [.sigterm], logger: logger))
/// try await group.run()
/// ```
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
#else
// This declaration stands in for the service if the trait is off, so that the compiler says what is missing.

/// Requires the trait `ServiceLifecycle` of the package Larder.
@available(*, unavailable, message: "turn on the trait: .package(url: …, from: …, traits: [\"ServiceLifecycle\"])")
public struct QueueWorkerService {
  /// Requires the trait `ServiceLifecycle` of the package Larder.
  public init(_ worker: QueueWorker) {}
}
#endif
