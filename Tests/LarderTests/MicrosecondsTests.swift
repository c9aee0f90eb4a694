import Larder
import Testing

@Suite struct MicrosecondsTests {
  @Test func aDurationIsRoundedUp() {
    #expect(Duration.seconds(1).microseconds == 1_000_000)
    #expect(Duration.nanoseconds(1).microseconds == 1)
    #expect(Duration.nanoseconds(1001).microseconds == 2)
    #expect(Duration.nanoseconds(-1001).microseconds == -1)
    #expect(Duration.zero.microseconds == 0)
  }

  @Test func aDurationBeyondTheRangeIsClamped() {
    for seconds in [Int64.max / 1_000_000 + 1, .max] {
      #expect(Duration.seconds(seconds).microseconds == .max)
      #expect(Duration.seconds(-seconds).microseconds == .min)
    }
    // The seconds of this duration do not fit in an `Int64`.
    #expect((Duration.seconds(Int64.max) * 10).microseconds == .max)
    #expect((Duration.seconds(Int64.max) * -10).microseconds == .min)
  }
}
