import Larder
import Testing

@Suite struct MicrosecondsTests {
  @Test func `a duration is rounded up`() {
    #expect(Duration.seconds(1).wholeMicroseconds == 1_000_000)
    #expect(Duration.nanoseconds(1).wholeMicroseconds == 1)
    #expect(Duration.nanoseconds(1001).wholeMicroseconds == 2)
    #expect(Duration.nanoseconds(-1001).wholeMicroseconds == -1)
    #expect(Duration.zero.wholeMicroseconds == 0)
  }

  @Test func `a duration beyond the range is clamped`() {
    for seconds in [Int64.max / 1_000_000 + 1, .max] {
      #expect(Duration.seconds(seconds).wholeMicroseconds == .max)
      #expect(Duration.seconds(-seconds).wholeMicroseconds == .min)
    }
    // The seconds of this duration do not fit in an `Int64`.
    #expect((Duration.seconds(Int64.max) * 10).wholeMicroseconds == .max)
    #expect((Duration.seconds(Int64.max) * -10).wholeMicroseconds == .min)
  }
}
