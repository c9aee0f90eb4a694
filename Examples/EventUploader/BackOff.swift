import ExampleSupport

/// How long to wait before the next attempt: twice as long each time, up to a limit, and a part of that by chance, so that
/// many clients do not come back at once.
struct BackOff {
  private static let shortest = Duration.milliseconds(20)
  private static let longest = Duration.seconds(2)

  private var generator: SplitMix64
  private var next = shortest

  init(seed: UInt64) {
    generator = SplitMix64(seed: seed)
  }

  /// The pause after one more failure.
  mutating func pause() -> Duration {
    defer { next = min(next * 2, Self.longest) }
    return next * Double.random(in: 0.5...1, using: &generator)
  }

  /// Begins anew, after a success.
  mutating func reset() {
    next = Self.shortest
  }
}
