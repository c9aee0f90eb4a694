extension StoreOperation {
  /// ``StoreLimiter/acquire(starts:)`` and ``StoreLimiter/tryAcquire(starts:)``.
  public static let acquire = StoreOperation(rawValue: "acquire")
  /// Reading a ``SharedClock``.
  public static let clock = StoreOperation(rawValue: "clock")
}
