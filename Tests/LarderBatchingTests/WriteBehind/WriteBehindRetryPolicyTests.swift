import Testing

@testable import LarderBatching

@Suite struct WriteBehindRetryPolicyTests {
  @Test func `each delay doubles up to the maximum`() {
    let policy = WriteBehindRetryPolicy(firstDelay: .milliseconds(10), maximumDelay: .milliseconds(100))
    let delays = (0...6).map { policy.delay(before: $0) }
    #expect(delays == [10, 20, 40, 80, 100, 100, 100].map { .milliseconds($0) })
    #expect(WriteBehindRetryPolicy(firstDelay: .seconds(9), maximumDelay: .seconds(2)).delay(before: 0) == .seconds(2))
    let least = WriteBehindRetryPolicy(firstDelay: .seconds(-9), maximumDelay: .seconds(-2), readRetries: -1)
    #expect(least.delay(before: 3) == .milliseconds(1))
    #expect(least.readRetries == 0)
  }

  @Test(arguments: [0, 1, 7, 100, Int.max - 1]) func `doubling any delay does not overflow`(attempt: Int) {
    let longest = Duration.seconds(Int64.max) * 18
    for delay in [Duration.zero, .nanoseconds(1), .seconds(Int64.max), longest] {
      let found = WriteBehindRetryPolicy(firstDelay: delay, maximumDelay: longest).delay(before: attempt)
      #expect(found >= delay && found <= longest)
    }
  }
}
