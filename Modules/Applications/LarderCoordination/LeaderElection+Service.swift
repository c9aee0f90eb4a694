#if ServiceLifecycle
public import ServiceLifecycle

/// A candidate runs in a `ServiceGroup`, whose graceful shutdown ends its campaign, or cancels its work and resigns.
///
/// ```swift
/// let service = LeaderElectionService(election) { token in
///   try await schedule(requiring: token)
/// }
/// ```
public struct LeaderElectionService: Service {
  /// The election.
  public let election: LeaderElection

  private let body: @Sendable (FencingToken) async throws -> Void

  /// Creates a service.
  ///
  /// - Parameters:
  ///   - election: The election.
  ///   - body: A closure that runs in each term, until it returns.
  public init(_ election: LeaderElection, _ body: @escaping @Sendable (FencingToken) async throws -> Void) {
    self.election = election
    self.body = body
  }

  /// Takes part in the election until the graceful shutdown; see ``LeaderElection/run(isolation:_:)``.
  public func run() async throws {
    do {
      try await cancelWhenGracefulShutdown { [election, body] in try await election.run(body) }
    } catch is CancellationError where Task.isShuttingDownGracefully && !Task.isCancelled {
      // The shutdown has ended the campaign or the term.
    }
  }
}
#else
// This declaration stands in for the service if the trait is off, so that the compiler says what is missing.

/// Requires the trait `ServiceLifecycle` of the package Larder.
@available(*, unavailable, message: "turn on the trait: .package(url: …, from: …, traits: [\"ServiceLifecycle\"])")
public struct LeaderElectionService {
  /// Requires the trait `ServiceLifecycle` of the package Larder.
  public init(_ election: LeaderElection, _ body: @escaping @Sendable (FencingToken) async throws -> Void) {}
}
#endif
