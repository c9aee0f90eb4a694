public import Larder

extension DataStore {
  /// Lets many callers share a commit; see ``BatchingStore``.
  ///
  /// - Parameters:
  ///   - bounds: The most that goes into one commit; 10,000 changes unless given.
  ///   - delay: How long each commit waits for more to come, up to the bounds. With nothing, the default, there is no
  ///     waiting; any other delay is added to the time of every write.
  ///   - clock: What measures the delay, and how long commits take; a `ContinuousClock` unless given.
  @inlinable
  public func batched(
    bounds: BatchBounds<Value> = BatchBounds(), delay: Duration = .zero, clock: any Clock<Duration> = ContinuousClock()
  ) -> BatchingStore<Self> {
    BatchingStore(self, bounds: bounds, delay: delay, clock: clock)
  }
}
