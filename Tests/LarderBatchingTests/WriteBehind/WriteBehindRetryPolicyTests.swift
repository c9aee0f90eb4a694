import Testing

@testable import LarderBatching

@Suite struct WriteBehindRetryPolicyTests {
  @Test func eachDelayDoublesUpToTheMaximum() {
    let policy = WriteBehindRetryPolicy(attempts: 6, firstDelay: .milliseconds(10), maximumDelay: .milliseconds(100))
    let delays = (0...6).map { policy.delay(before: $0) }
    #expect(delays == [10, 20, 40, 80, 100, 100].map { .milliseconds($0) } + [nil])
    #expect(WriteBehindRetryPolicy(attempts: -1).delay(before: 0) == nil)
    #expect(WriteBehindRetryPolicy(firstDelay: .seconds(9), maximumDelay: .seconds(2)).delay(before: 0) == .seconds(2))
    #expect(WriteBehindRetryPolicy(firstDelay: .seconds(-9), maximumDelay: .seconds(-2)).delay(before: 3) == .zero)
  }

  @Test(arguments: [0, 1, 7, 100, Int.max - 1]) func doublingAnyDelayDoesNotOverflow(attempt: Int) {
    let longest = Duration.seconds(Int64.max) * 18
    for delay in [Duration.zero, .nanoseconds(1), .seconds(Int64.max), longest] {
      let found = WriteBehindRetryPolicy(attempts: .max, firstDelay: delay, maximumDelay: longest).delay(
        before: attempt)
      #expect(found.map { $0 >= delay && $0 <= longest } == true)
    }
  }
}
