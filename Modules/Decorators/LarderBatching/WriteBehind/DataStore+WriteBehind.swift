public import Larder

extension DataStore {
  /// Returns from writes before they have reached this store: a crash loses what was accepted since the last flush; see
  /// ``WriteBehindStore``.
  ///
  /// - Parameters:
  ///   - bounds: The most that is accepted and not yet written; 10,000 changes unless given.
  ///   - maximumAge: How long changes wait before they are written; 100 milliseconds unless given.
  ///   - retries: How often what may succeed later is tried again.
  ///   - clock: What measures time; a `ContinuousClock` unless given.
  ///   - onFailure: Gets what was given up; nothing is done unless given.
  public func writeBehind(
    bounds: BatchBounds<Value> = BatchBounds(), maximumAge: Duration = .milliseconds(100),
    retries: RetryPolicy = RetryPolicy(), clock: any Clock<Duration> = ContinuousClock(),
    onFailure: @escaping @Sendable (WriteBehindFailure<Value>) -> Void = { _ in }
  ) -> WriteBehindStore<Self> {
    WriteBehindStore(
      self, bounds: bounds, maximumAge: maximumAge, retries: retries, clock: clock, onFailure: onFailure)
  }
}
