/// The right to do some work that a ``StoreLimiter`` grants.
///
/// If the number of permits is limited, a permit has a lease that is renewed in each third of its duration until the permit
/// is released. If the object is discarded without that, or its process crashes, the permit ends with its lease.
public final class LimiterPermit: Sendable {
  /// The time of the decision to grant the permit, which counts as the time of its starts.
  public let time: ClockReading

  /// The number of starts that were permitted.
  public let starts: Int

  let id: UInt64

  /// The starts that the rate limit permitted before.
  let previousRate: RateLimitState

  private let limiter: StoreLimiter
  private let renewal: Task<Void, Never>?

  init(_ grant: StoreLimiter.Grant, of limiter: StoreLimiter) {
    id = grant.id
    time = grant.time
    starts = grant.starts
    previousRate = grant.previousRate
    self.limiter = limiter
    let id = grant.id
    renewal = limiter.configuration.concurrency == nil ? nil : Task { await limiter.keepRenewing(id) }
  }

  deinit {
    renewal?.cancel()
  }

  /// Runs a closure, and then releases the permit.
  ///
  /// If the release fails, the permit ends with its lease.
  ///
  /// ```swift
  /// guard let permit = try await limiter.tryAcquire() else { throw TooManyRequests() }
  /// return try await permit.holding { try await respond() }
  /// ```
  ///
  /// - Parameter body: The closure.
  /// - Returns: The result of `body`.
  /// - Throws: The error of `body`.
  public func holding<Result>(_ body: () async throws -> Result) async throws -> Result {
    let result: Swift.Result<Result, any Error>
    do {
      result = .success(try await body())
    } catch {
      result = .failure(error)
    }
    do {
      try await release()
    } catch {
      // The permit ends with its lease. The result of `body` is more useful than this error.
    }
    return try result.get()
  }

  /// Releases the permit, so another caller can get one.
  ///
  /// Releasing it again is a no-op. Releasing ignores cancellation.
  ///
  /// - Parameter usedStarts: The number of starts that have happened, such as 0 if there was nothing to do. Defaults to all that
  ///   were permitted. The others are returned if no other start has been permitted since.
  /// - Throws: ``StoreError`` with `corrupted` or `versionMismatch` if the state cannot be read; the errors of the store. The
  ///   permit then ends with its lease.
  public func release(usedStarts: Int? = nil) async throws {
    renewal?.cancel()
    try await limiter.release(self, usedStarts: usedStarts, keepsPermit: false)
  }

  /// Returns starts that do not happen, if no other start has been permitted since, and keeps the permit.
  ///
  /// - Parameter usedStarts: The number of starts that happen.
  /// - Throws: As ``release(usedStarts:)``.
  public func returnStarts(except usedStarts: Int) async throws {
    try await limiter.release(self, usedStarts: usedStarts, keepsPermit: true)
  }
}
