public import Larder

extension DataStore {
  /// Puts a ``FaultyStore`` in front of the store.
  ///
  /// - Parameters:
  ///   - plan: What goes wrong; nothing at first unless given.
  ///   - clock: What measures delays; a `ContinuousClock` unless given.
  public func faulty(
    plan: FaultPlan = FaultPlan(), clock: any Clock<Duration> = ContinuousClock()
  ) -> FaultyStore<Self> {
    FaultyStore(self, plan: plan, clock: clock)
  }
}
