import ExampleSupport

/// Decides by chance, the same for the same seed, which requests fail and how.
struct FaultPlan: Sendable {
  // Silence costs the client a second, so it is the rarest.
  private static let faults: [Fault] = [
    .serverError, .serverError, .serverError, .serverError, .cutBefore, .cutBefore, .cutBehind, .cutBehind, .cutBehind,
    .silence,
  ]

  private let rate: Double
  private var generator: SplitMix64

  /// Makes a plan.
  ///
  /// - Parameters:
  ///   - rate: Which part of the requests fails.
  ///   - seed: What it is drawn from.
  init(rate: Double, seed: UInt64) {
    self.rate = rate
    generator = SplitMix64(seed: seed)
  }

  /// What happens to the next request; `nil` where it goes well.
  mutating func next() -> Fault? {
    guard Double.random(in: 0..<1, using: &generator) < rate else { return nil }
    return Self.faults.randomElement(using: &generator)
  }
}
