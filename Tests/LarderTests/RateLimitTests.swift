import Larder
import LarderTesting
import Testing

/// The starts that a rate limit permits, whatever the clock does.
@Suite struct RateLimitTests {
  /// Starts, with the true times at which they were permitted, in nanoseconds.
  struct Starts {
    var all: [(time: Int64, count: Int)] = []

    /// Expects that every window has at most as many starts as the limit permits.
    func expect(within limit: RateLimit, _ place: SourceLocation = #_sourceLocation) {
      if let excess = excess(over: limit) { Issue.record("\(excess)", sourceLocation: place) }
    }

    /// Describes the first window with more starts than the limit permits; `nil` if all keep it.
    func excess(over limit: RateLimit) -> String? {
      let interval = Int128(limit.interval / .nanoseconds(1))
      for first in all.indices {
        var sum: Int128 = 0
        for last in first..<all.count {
          sum += Int128(all[last].count)
          let length = Int128(all[last].time - all[first].time)
          // At most burst + rate × t, without rounding.
          guard (sum - Int128(limit.burst)) * interval > length * Int128(limit.count) else { continue }
          return "\(sum) starts in \(length) ns with \(limit)"
        }
      }
      return nil
    }
  }

  @Test(arguments: [
    RateLimit(1, per: .seconds(1)), RateLimit(100, per: .seconds(60), burst: 10),
    RateLimit(7, per: .seconds(1), burst: 3), RateLimit(3, per: .nanoseconds(10), burst: 1000),
    RateLimit(999_999_937, per: .seconds(3600), burst: 17),
  ])
  func `every window has at most the burst and the rate`(_ limit: RateLimit) {
    var generator = SeededGenerator("\(#function) \(limit)")
    let pace = max(1, limit.interval / .nanoseconds(1) / Double(limit.count))
    for _ in 0..<100 {
      var (state, starts) = (RateLimitState(), Starts())
      // The difference between the clock, as it is read, and the true time.
      var (time, offset): (Int64, Int64) = (generator.time(0...1_000_000_000), 0)
      for _ in 0..<200 {
        time += Int64(pace * Double.random(in: 0...2.5, using: &generator))
        switch generator.integer(in: 0...20) {
        case 0: offset -= Int64(pace * Double.random(in: 0...3000, using: &generator))
        case 1: time += Int64(pace * 2000)
        default: break
        }
        // The true time lies somewhere between the earliest and the latest one, which can be several bursts apart.
        let most = Int64(pace) * Int64(generator.integer(in: 0...3) == 0 ? 3 * limit.burst : 1)
        let (early, late) = (generator.time(0...most), generator.time(0...most))
        let reading = ClockReading(
          origin: 1, nanoseconds: time + offset - early,
          uncertainty: generator.integer(in: 0...3) == 0 ? early + late : early)
        let count = generator.integer(in: 1...min(limit.burst, 5))
        if state.take(count, by: limit, at: reading) == .zero { starts.all.append((time, count)) }
      }
      #expect(!starts.all.isEmpty)
      starts.expect(within: limit)
    }
  }

  /// Five starts in a second, and readings that are uncertain by ten seconds in both directions.
  private static let slow = RateLimit(5, per: .seconds(1), burst: 5)
  private static let second: Int64 = 1_000_000_000

  private static func reading(_ time: Int64, uncertainty: Int64 = 0) -> ClockReading {
    ClockReading(origin: 0, nanoseconds: time - uncertainty, uncertainty: 2 * uncertainty)
  }

  @Test func `an uncertain reading refuses no start of a burst`() {
    for others in [[0], [0, 0], [10], [10, 0], [0, 10], [10, 10], [0, 0, 10], [10, 0, 0]] {
      var state = RateLimitState()
      for (time, other) in others.enumerated() {
        #expect(
          state.take(by: Self.slow, at: Self.reading(Int64(time), uncertainty: Int64(other) * Self.second)) == .zero)
      }
      let uncertain = Self.reading(9, uncertainty: 10 * Self.second)
      #expect(state.available(by: Self.slow, at: uncertain) == 5 - others.count)
      #expect(state.take(5 - others.count, by: Self.slow, at: uncertain) == .zero)
      #expect(state.available(by: Self.slow, at: uncertain) == 0)
      #expect(state.take(by: Self.slow, at: uncertain) > .zero)
    }
  }

  @Test func `a start with an uncertain time counts once`() {
    var state = RateLimitState()
    #expect(state.take(by: Self.slow, at: Self.reading(0, uncertainty: 10 * Self.second)) == .zero)
    for _ in 2...5 { #expect(state.take(by: Self.slow, at: Self.reading(1)) == .zero) }
    // It is certain now that the burst began at zero or later, and that one start becomes available in each fifth of a second.
    #expect(state.take(by: Self.slow, at: Self.reading(1)) == .milliseconds(200))
    #expect(state.take(5, by: Self.slow, at: Self.reading(1 + Self.second)) == .zero)
  }

  @Test func `uncertain readings refuse no start for ever`() {
    var (state, time, count): (RateLimitState, Int64, Int) = (RateLimitState(), 0, 0)
    while time < 100 * Self.second {
      let wait = state.take(by: Self.slow, at: Self.reading(time, uncertainty: 10 * Self.second)).wholeNanoseconds
      if wait == 0 { count += 1 } else { time += wait }
      #expect(wait <= 21 * Self.second)
    }
    // A burst for each time that is certain to have passed.
    #expect(count >= 25)
  }

  @Test func `starts are available after the wait`() {
    var generator = SeededGenerator()
    let limit = RateLimit(7, per: .seconds(1), burst: 4)
    var (state, time, waits): (RateLimitState, Int64, Int) = (RateLimitState(), 0, 0)
    for _ in 0..<1000 {
      time += generator.time(0...300_000_000)
      let count = generator.integer(in: 1...4)
      let wait = state.take(count, by: limit, at: ClockReading(origin: 0, nanoseconds: time)).wholeNanoseconds
      guard wait > 0 else { continue }
      waits += 1
      // One nanosecond earlier they are not.
      for (end, isAvailable) in [(time + wait - 1, false), (time + wait, true)] {
        var copy = state
        let rest = copy.take(count, by: limit, at: ClockReading(origin: 0, nanoseconds: end))
        #expect((rest == .zero) == isAvailable)
      }
    }
    #expect(waits > 100)
  }

  @Test func `a full rate is reached`() {
    let limit = RateLimit(100, per: .seconds(60), burst: 10)
    var (state, time, count): (RateLimitState, Int64, Int) = (RateLimitState(), 0, 0)
    while time <= 60_000_000_000 {
      let wait = state.take(by: limit, at: ClockReading(origin: 0, nanoseconds: time))
      if wait == .zero { count += 1 } else { time += wait.wholeNanoseconds }
    }
    #expect(count == 110)
  }

  @Test func `more than the burst is never available`() {
    var state = RateLimitState()
    let limit = RateLimit(1, per: .seconds(1), burst: 3)
    let waits = [4, 3].map { state.take($0, by: limit, at: ClockReading(origin: 0, nanoseconds: 0)) }
    #expect(waits == [.seconds(1), .zero])
  }

  @Test func `a stored time at the limits of the type is bounded`() {
    for fullAt in [Int64.min, .max] {
      for time in [Int64.min, 0, .max] {
        var state = RateLimitState(fullAt: fullAt)
        let wait = state.take(by: RateLimit(1, per: .seconds(1)), at: ClockReading(origin: 0, nanoseconds: time))
        #expect(wait <= .seconds(1))
      }
    }
  }

  @Test func `invalid limits are named`() {
    for limit in [
      RateLimit(0, per: .seconds(1)), RateLimit(1, per: .zero), RateLimit(1, per: .seconds(-1)),
      RateLimit(1, per: .seconds(1), burst: 0), RateLimit(1, per: .seconds(1), burst: 1_000_000_001),
      RateLimit(1, per: .seconds(86_400 * 366), burst: 31), RateLimit(1, per: .seconds(Int64.max), burst: 2),
    ] {
      #expect(limit.problem != nil, "\(limit)")
      // Its values are computed nevertheless.
      var state = RateLimitState()
      _ = state.take(by: limit, at: ClockReading(origin: 0, nanoseconds: 0))
    }
    #expect(RateLimit(1, per: .seconds(86_400 * 365), burst: 30).problem == nil)
    #expect(RateLimit(.max, per: .nanoseconds(1), burst: 1_000_000_000).problem == nil)
  }
}

extension SeededGenerator {
  /// Returns a random time in a range.
  mutating func time(_ range: ClosedRange<Int64>) -> Int64 { Int64.random(in: range, using: &self) }
}
