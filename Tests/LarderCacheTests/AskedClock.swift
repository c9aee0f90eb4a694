import LarderTesting

/// A clock that tells when it is asked for the time.
struct AskedClock: Clock {
  let clock: ManualClock

  /// Called by whoever asks.
  let onAsking: @Sendable () -> Void

  var now: ManualClock.Instant {
    onAsking()
    return clock.now
  }

  var minimumResolution: Duration { clock.minimumResolution }

  func sleep(until deadline: ManualClock.Instant, tolerance: Duration?) async throws {
    try await clock.sleep(until: deadline, tolerance: tolerance)
  }
}
