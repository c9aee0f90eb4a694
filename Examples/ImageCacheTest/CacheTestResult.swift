/// The result of testing a store.
struct CacheTestResult: Sendable {
  /// The name of the store.
  var store: String

  /// The durations of the steps.
  var durations: [Step: Duration] = [:]

  /// The number of images at the end.
  var storedCount = 0

  /// The number of images that were left when only those that had been touched should be live.
  var liveCount = 0

  /// Creates a result without times.
  init(store: String) {
    self.store = store
  }

  /// Measures a step.
  mutating func measure<Result>(_ step: Step, _ body: () async throws -> Result) async rethrows -> Result {
    let start = ContinuousClock.now
    let result = try await body()
    durations[step] = start.duration(to: .now)
    return result
  }
}

extension CacheTestResult: Encodable {
  private enum CodingKeys: String, CodingKey {
    case store, storedCount, liveCount, nanoseconds
  }

  /// Encodes times as whole nanoseconds.
  func encode(to encoder: any Encoder) throws {
    var container = encoder.container(keyedBy: CodingKeys.self)
    try container.encode(store, forKey: .store)
    try container.encode(storedCount, forKey: .storedCount)
    try container.encode(liveCount, forKey: .liveCount)
    try container.encode(durations.mapValues { Int64($0 / .nanoseconds(1)) }, forKey: .nanoseconds)
  }
}
