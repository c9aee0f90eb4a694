/// The knowledge of a consumer about the leases of some deliveries.
///
/// This is plain state without any clock. Times are durations from an arbitrary start.
struct LeaseState: Sendable {
  /// The duration of each lease.
  let length: Duration

  /// The receipts whose leases may be running.
  private(set) var held: [DeliveryReceipt]

  /// The earliest time when a lease may have ended.
  private(set) var end: Duration

  /// The time of the next renewal.
  private(set) var nextRenewal: Duration

  /// The number of renewals in sequence that failed.
  private var failures = 0

  /// Creates the state of deliveries that were just received.
  ///
  /// - Parameters:
  ///   - held: The receipts of the deliveries.
  ///   - length: The duration of each lease.
  ///   - start: A time that is not later than the beginning of a lease.
  init(_ held: [DeliveryReceipt], length: Duration, from start: Duration) {
    self.held = held
    self.length = length
    end = start + length
    nextRenewal = start + length / 3
  }

  /// A Boolean value that indicates whether no lease is running any more.
  var areLost: Bool { held.isEmpty }

  /// Notes a renewal.
  ///
  /// - Parameters:
  ///   - start: The time when it began. The leases end no earlier than their duration after it.
  ///   - stale: The receipts that were stale.
  mutating func renewed(at start: Duration, stale: [DeliveryReceipt]) {
    if !stale.isEmpty {
      let stale = Set(stale)
      held.removeAll { stale.contains($0) }
    }
    end = start + length
    nextRenewal = start + length / 3
    failures = 0
  }

  /// Notes a renewal that failed.
  ///
  /// - Parameters:
  ///   - now: The current time. If the leases may have ended by now, another consumer may have the items, so they count as
  ///     lost.
  ///   - generator: The generator of the random part of the pause.
  mutating func renewalFailed(at now: Duration, using generator: inout some RandomNumberGenerator) {
    guard now < end else {
      held = []
      return
    }
    failures += 1
    let pause = RetryPolicy.ofConsumers.delay(afterAttempt: failures, using: &generator)
    nextRenewal = min(now + min(pause, length / 3), end)
  }
}

/// The attempts to acknowledge or release deliveries.
///
/// This is plain state without any clock.
struct SettlementState: Sendable {
  private var failures = 0
  private var mayHaveSucceeded = false

  /// Notes an attempt that failed.
  ///
  /// - Parameters:
  ///   - error: The error.
  ///   - timeLeft: The time until the leases end.
  ///   - generator: The generator of the random part of the pause.
  /// - Returns: The pause before the next attempt; `nil` if another one cannot help.
  mutating func failed(
    _ error: StoreError, timeLeft: Duration, using generator: inout some RandomNumberGenerator
  ) -> Duration? {
    if error.outcome == .unknown { mayHaveSucceeded = true }
    guard error.isRetryable, timeLeft > .zero else { return nil }
    failures += 1
    return min(RetryPolicy.ofConsumers.delay(afterAttempt: failures, using: &generator), timeLeft)
  }

  /// Returns the receipts that are stale for another reason than an earlier attempt.
  ///
  /// If the outcome of an earlier attempt is unknown and the leases are still running, no other consumer can have ended
  /// them. So that attempt has succeeded.
  ///
  /// - Parameters:
  ///   - stale: The receipts that the queue called stale.
  ///   - timeLeft: The time until the leases end.
  func stale(_ stale: [DeliveryReceipt], timeLeft: Duration) -> [DeliveryReceipt] {
    mayHaveSucceeded && timeLeft > .zero ? [] : stale
  }
}
