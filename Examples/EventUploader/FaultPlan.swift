import ExampleSupport

/// Random faults of requests, which are the same for the same seed.
struct FaultPlan: Sendable {
  // Silence costs the client a second, so it is the rarest fault.
  private static let faults: [Fault] = [
    .serverError, .serverError, .serverError, .serverError, .cutBefore, .cutBefore, .cutBehind, .cutBehind, .cutBehind,
    .silence,
  ]

  private let rate: Double
  private var generator: SplitMix64

  /// Creates a plan.
  ///
  /// - Parameters:
  ///   - rate: The share of the requests that fail.
  ///   - seed: The seed of the random numbers.
  init(rate: Double, seed: UInt64) {
    self.rate = rate
    generator = SplitMix64(seed: seed)
  }

  /// Returns the fault of the next request, or `nil` if it succeeds.
  mutating func next() -> Fault? {
    guard Double.random(in: 0..<1, using: &generator) < rate else { return nil }
    return Self.faults.randomElement(using: &generator)
  }
}
