import Larder

/// The lease of a lock, as its holder knows it.
///
/// This is plain state without any clock. Times are nanoseconds from an arbitrary start.
struct LockLease: Sendable, Hashable {
  /// The length, in nanoseconds.
  let length: Int64

  /// The time when a waiter may take the lock at the earliest.
  private(set) var end: Int64

  /// The time of the next renewal.
  private(set) var nextRenewal: Int64

  /// A Boolean value that indicates whether another caller may hold the lock.
  private(set) var isLost = false

  /// Creates the lease of a lock that was just granted.
  ///
  /// - Parameters:
  ///   - length: The length.
  ///   - start: A time before the commit. A waiter has seen the heartbeat no earlier.
  init(_ length: Int64, from start: Int64) {
    self.length = length
    end = start.addingSaturating(length)
    nextRenewal = start.addingSaturating(length / 3)
  }

  /// Notes a renewal that began at a time.
  mutating func renewed(at start: Int64) {
    self = isLost ? self : LockLease(length, from: start)
  }

  /// Notes a renewal that failed, or a wait that has ended.
  mutating func failed(at now: Int64) {
    if now >= end { isLost = true }
    nextRenewal = min(now.addingSaturating(length / 10), end)
  }

  /// Notes that the stored term is another one.
  mutating func lose() {
    isLost = true
  }
}

/// A lock that is held until it is released or lost; see ``StoreLock/acquire(_:)``.
///
/// The lock is renewed in each third of its lease. A renewal that fails is repeated. The lock is lost if another caller has
/// taken it, or if it could not be renewed for its lease. If the object is discarded, the lock ends with its lease.
public final class HeldLock: Sendable {
  private struct State: Sendable {
    var lease: LockLease
    var onLoss: [@Sendable () -> Void] = []
    var renewal: Task<Void, Never>?
    /// A Boolean value that indicates whether a release has begun, so that the stored term may have ended without a loss.
    var isReleasing = false
    /// A Boolean value that indicates whether the lock was released, or must no longer be renewed.
    var hasEnded = false
    /// A Boolean value that indicates whether the next caller of the same object waits for this one.
    var hasTurn = true
  }

  /// The token that writes under the lock require.
  public let token: FencingToken

  private let lock: StoreLock
  private let state: Locked<State>

  init(_ token: FencingToken, of lock: StoreLock, since start: Int64) {
    self.token = token
    self.lock = lock
    state = Locked(State(lease: LockLease(token.term.lease, from: start)))
    let renewal = Task { [weak self, clock = lock.clock] in
      while let pause = self?.pauseBeforeRenewal, await clock.hasSlept(for: pause) { await self?.renew() }
    }
    state.withLock { $0.renewal = renewal }
  }

  deinit {
    end()
  }

  /// A Boolean value that indicates whether the lock has ended before it was released, as far as this process knows.
  public var isLost: Bool { state.withLock { $0.lease.isLost } }

  /// Calls a closure when the lock is lost, or immediately if it is.
  ///
  /// Closures that were passed earlier are called, too.
  ///
  /// ```swift
  /// lock.onLoss { download.cancel() }
  /// ```
  ///
  /// - Parameter action: The closure. It must return quickly, and must not call the store.
  public func onLoss(_ action: @escaping @Sendable () -> Void) {
    let isLost = state.withLock { state in
      if !state.lease.isLost, !state.hasEnded { state.onLoss.append(action) }
      return state.lease.isLost
    }
    if isLost { action() }
  }

  /// Runs a closure, which is cancelled if the lock is lost, and then releases the lock.
  ///
  /// If the release fails, the lock ends with its lease.
  ///
  /// ```swift
  /// guard let lock = try await locks.tryAcquire("import") else { return }
  /// try await lock.run { token in try await importRows(requiring: token) }
  /// ```
  ///
  /// - Parameters:
  ///   - isolation: The actor that the closure runs on. Defaults to your actor.
  ///   - body: The closure.
  /// - Returns: The result of `body`.
  /// - Throws: The error of `body`; `StoreError` with `lockLost` if the lock has ended before, in which case `body` does not
  ///   run, or if `body` throws after the lock was lost, with the error of `body` as the underlying one.
  public func run<Result>(
    isolation: isolated (any Actor)? = #isolation, _ body: (FencingToken) async throws -> Result
  ) async throws -> Result {
    let result = try await working(isolation: isolation, body)
    await releaseOrExpire()
    return result
  }

  /// Runs a closure as ``run(isolation:_:)``, and releases the lock only if the closure throws.
  ///
  /// - Parameter companion: An entry that changes with the release if the closure has failed by itself. It does not if the
  ///   closure was cancelled or the lock was lost, because it is unknown then how far the closure has come.
  func working<Result>(
    isolation: isolated (any Actor)? = #isolation, onFailure companion: LockCompanion? = nil,
    _ body: (FencingToken) async throws -> Result
  ) async throws -> Result {
    let token = token
    guard state.withLock({ !$0.hasEnded && !$0.lease.isLost }) else {
      throw StoreError.lockLost(during: .lock, of: lock.base.information)
    }
    do {
      return try await withCancellableTask({ try await body(token) }, isolation: isolation) { onLoss($0) }
    } catch {
      let isLost = isLost
      let hasFailed = !isLost && !(error is CancellationError) && !Task.isCancelled
      await releaseOrExpire(with: hasFailed ? companion : nil)
      guard isLost else { throw error }
      throw StoreError.lockLost(during: .lock, of: lock.base.information, underlying: error)
    }
  }

  /// Releases the lock, which ends with its lease if that fails.
  func releaseOrExpire(with companion: LockCompanion? = nil) async {
    do {
      _ = try await release(with: companion)
    } catch {
      // The lock ends with its lease. The result of the work is more useful than this error.
    }
  }

  /// Releases the lock.
  ///
  /// Releasing it again is a no-op. Releasing ignores cancellation.
  ///
  /// - Returns: Whether the lock was still held.
  /// - Throws: `StoreError` with `corrupted` or `versionMismatch` if the state cannot be read; the errors of the store. The
  ///   lock then ends with its lease.
  @discardableResult
  public func release() async throws -> Bool {
    try await release(with: nil)
  }

  /// Releases the lock, and changes another entry in the same commit.
  func release(with companion: LockCompanion?) async throws -> Bool {
    guard beginRelease() else { return false }
    // The next caller gets its turn after the commit, so that it finds the lock free.
    defer { end() }
    return try await lock.release(token, with: companion)
  }

  /// Releases the lock, and changes another entry in the same commit, which must not get lost.
  ///
  /// An attempt that fails with a retryable error is repeated for a lease, while the lock is renewed.
  ///
  /// - Returns: Whether the lock was still held, and whether the outcome of an earlier attempt is unknown.
  func release(repeating companion: LockCompanion) async throws -> (wasHeld: Bool, isRepetition: Bool) {
    guard beginRelease() else { return (false, false) }
    defer { end() }
    let start = lock.elapsed.nanoseconds
    var isRepetition = false
    while true {
      do {
        return (try await lock.release(token, with: companion), isRepetition)
      } catch let error as StoreError where error.isRetryable && canRepeat(since: start) {
        isRepetition = true
        // In a task of its own, because a cancelled caller must store its outcome, too.
        try await Task { [lock, pause = token.term.lease / 10] in
          try await lock.clock.sleep(for: .nanoseconds(pause))
        }.value
      }
    }
  }

  private func beginRelease() -> Bool {
    state.withLock { state in
      state.isReleasing = true
      return !state.hasEnded
    }
  }

  private func canRepeat(since start: Int64) -> Bool {
    lock.elapsed.nanoseconds - start < token.term.lease && !isLost
  }

  /// Ends the renewal and the turn of the caller.
  private func end() {
    let (renewal, hadTurn) = state.withLock { state in
      state.hasEnded = true
      defer { (state.renewal, state.onLoss, state.hasTurn) = (nil, [], false) }
      return (state.renewal, state.hasTurn)
    }
    renewal?.cancel()
    if hadTurn { lock.leave(token.name) }
  }

  // MARK: Renewing

  /// The time until the next renewal, or `nil` if there is no further one.
  private var pauseBeforeRenewal: Duration? {
    let now = lock.elapsed.nanoseconds
    return state.withLock { state in
      state.hasEnded || state.lease.isLost ? nil : .nanoseconds(max(0, state.lease.nextRenewal - now))
    }
  }

  private func renew() async {
    let start = lock.elapsed.nanoseconds
    // A renewal that hangs must not keep the lock beyond its lease.
    let remaining = state.withLock { $0.lease.end } - start
    let watch = Task { [weak self, clock = lock.clock] in
      guard await clock.hasSlept(for: .nanoseconds(max(0, remaining))) else { return }
      self?.change { $0.lease.failed(at: .max) }
    }
    defer { watch.cancel() }
    do {
      let isHeld = try await lock.renew(token)
      let now = lock.elapsed.nanoseconds
      change { state in
        if isHeld {
          state.lease.renewed(at: start)
        } else if state.isReleasing {
          // The release may have ended the term.
          state.lease.failed(at: now)
        } else {
          state.lease.lose()
        }
      }
    } catch StoreError.Code.closed {
      change { $0.lease.lose() }
    } catch {
      let now = lock.elapsed.nanoseconds
      change { $0.lease.failed(at: now) }
    }
  }

  /// Changes the lease, and reports a loss.
  private func change(_ body: @Sendable (inout State) -> Void) {
    let (onLoss, hadTurn) = state.withLock { state -> ([@Sendable () -> Void], Bool) in
      guard !state.hasEnded else { return ([], false) }
      body(&state)
      guard state.lease.isLost else { return ([], false) }
      defer { (state.onLoss, state.hasTurn) = ([], false) }
      return (state.onLoss, state.hasTurn)
    }
    for action in onLoss { action() }
    if hadTurn { lock.leave(token.name) }
  }
}
