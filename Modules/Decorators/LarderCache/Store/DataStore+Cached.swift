public import Larder

extension DataStore {
  /// Puts a ``CachedStore`` in front of the store.
  ///
  /// - Parameters:
  ///   - options: What is kept in memory, and for how long; 10,000 copies unless given.
  ///   - clock: What measures that time; a `ContinuousClock` unless given.
  public func cached(
    _ options: CachedStoreOptions<Value> = CachedStoreOptions(), clock: any Clock<Duration> = ContinuousClock()
  ) -> CachedStore<Self> {
    CachedStore(self, options: options, clock: clock)
  }
}
