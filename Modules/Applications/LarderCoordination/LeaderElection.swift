public import Larder

/// An election among processes, of which one at a time leads.
///
/// ```swift
/// let election = LeaderElection(locks, name: "scheduler")
///
/// try await election.run { token in
///   try await schedule(requiring: token)
/// }
/// ```
///
/// Each process campaigns. The one that is elected leads for a term, which ends when it resigns, crashes or is suspended for
/// longer than the lease. The election is a lock: an old leader may not have noticed yet that its term is over, so its
/// writes must require the token of its term.
public final class LeaderElection: Sendable {
  /// The locks of which the election uses one.
  public let locks: StoreLock

  /// The name of the lock.
  public let name: StoreKey

  /// Creates an election, without taking part.
  ///
  /// - Parameters:
  ///   - locks: The locks of which the election uses one.
  ///   - name: The name of the lock that all candidates share.
  public init(_ locks: StoreLock, name: StoreKey) {
    self.locks = locks
    self.name = name
  }

  /// Waits until this process is elected.
  ///
  /// ```swift
  /// let term = try await election.campaign()
  /// try await term.run { token in try await schedule(requiring: token) }
  /// ```
  ///
  /// - Returns: The term. End it with ``LeaderTerm/resign()``.
  /// - Throws: As ``StoreLock/acquire(_:)``.
  public func campaign() async throws -> LeaderTerm {
    LeaderTerm(held: try await locks.acquire(name))
  }

  /// The terms of this process, of which the next one begins when it is elected again.
  ///
  /// ```swift
  /// for try await term in election.terms {
  ///   try await term.run { token in try await schedule(requiring: token) }
  /// }
  /// ```
  ///
  /// The loop waits for the next election after its body has returned. A term that is not over then is resigned. Leaving the
  /// loop with `break`, `return` or an error does not resign: call ``LeaderTerm/resign()`` before, or the term ends with its
  /// lease.
  public var terms: LeaderTerms { LeaderTerms(election: self) }

  /// Campaigns, and runs a closure in each term, until the closure returns.
  ///
  /// If a term is lost, its closure is cancelled, and the process campaigns again, whether the closure returns or throws.
  ///
  /// - Parameters:
  ///   - isolation: The actor that the closure runs on. Defaults to your actor.
  ///   - body: The closure. It receives the token that its writes require.
  /// - Throws: The error of `body`, after a resignation, unless its term is lost; as ``campaign()``. `CancellationError` if
  ///   the task is cancelled.
  public func run(
    isolation: isolated (any Actor)? = #isolation, _ body: (FencingToken) async throws -> Void
  ) async throws {
    while true {
      let term = try await campaign()
      do {
        try await term.run(isolation: isolation, body)
        guard term.isLost else { return }
        try Task.checkCancellation()
      } catch StoreError.Code.lockLost {
        try Task.checkCancellation()
      }
    }
  }
}

/// A term of this process as the leader; see ``LeaderElection``.
public struct LeaderTerm: Sendable {
  fileprivate let held: HeldLock

  /// The token that the writes of the leader require.
  ///
  /// Its number is that of the term.
  public var token: FencingToken { held.token }

  /// A Boolean value that indicates whether the term was lost, as far as this process knows.
  public var isLost: Bool { held.isLost }

  /// Calls a closure when the term is lost, or immediately if it is; see ``HeldLock/onLoss(_:)``.
  public func onLoss(_ action: @escaping @Sendable () -> Void) {
    held.onLoss(action)
  }

  /// Runs a closure, which is cancelled if the term is lost, and then resigns; see ``HeldLock/run(isolation:_:)``.
  public func run<Result>(
    isolation: isolated (any Actor)? = #isolation, _ body: (FencingToken) async throws -> Result
  ) async throws -> Result {
    try await held.run(isolation: isolation, body)
  }

  /// Ends the term, so that another process is elected.
  ///
  /// Resigning again is a no-op.
  ///
  /// - Returns: Whether this process was still the leader.
  /// - Throws: As ``HeldLock/release()``. The term then ends with its lease.
  @discardableResult
  public func resign() async throws -> Bool {
    try await held.release()
  }
}

/// The terms of a process; see ``LeaderElection/terms``.
public struct LeaderTerms: AsyncSequence, Sendable {
  let election: LeaderElection

  /// Returns an iterator that takes part in the election whenever its next term is awaited.
  public func makeAsyncIterator() -> Iterator {
    Iterator(election: election)
  }

  /// An iterator over terms.
  public struct Iterator: AsyncIteratorProtocol {
    let election: LeaderElection
    private var term: LeaderTerm?

    init(election: LeaderElection) {
      self.election = election
    }

    /// Resigns, campaigns, and returns the next term.
    ///
    /// - Parameter actor: The actor of the caller, which a `for try await` loop passes automatically.
    /// - Returns: The term, or `nil` if the task is cancelled.
    /// - Throws: As ``LeaderElection/campaign()``.
    public mutating func next(isolation actor: isolated (any Actor)? = #isolation) async throws -> LeaderTerm? {
      do {
        try await term?.resign()
        term = nil
        term = try await election.campaign()
        return term
      } catch is CancellationError {
        return nil
      }
    }
  }
}
