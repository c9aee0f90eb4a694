import Foundation
import LarderTesting
import Testing

@testable import LarderExpiry

@Suite struct WallTimeTests {
  @Test func `a date is converted to microseconds`() {
    #expect(WallTime(Date(timeIntervalSince1970: 0)).microseconds == 0)
    #expect(WallTime(Date(timeIntervalSince1970: 1_767_225_600.1)).microseconds == 1_767_225_600_100_000)
    #expect(WallTime(Date(timeIntervalSince1970: 1_767_225_600.499_999)).microseconds == 1_767_225_600_499_999)
    #expect(WallTime(Date(timeIntervalSince1970: -1.5)).microseconds == -1_500_000)
    for microseconds in [0, 1, 999_999, 1_767_225_600_123_457, -3] as [Int64] {
      #expect(WallTime(WallTime(microseconds: microseconds).date).microseconds == microseconds)
    }
  }

  @Test func `unrepresentable dates are clamped`() {
    #expect(WallTime(Date(timeIntervalSince1970: .infinity)).microseconds == .max)
    #expect(WallTime(Date(timeIntervalSince1970: -.infinity)).microseconds == .min)
    #expect(WallTime(Date(timeIntervalSince1970: 1e300)).microseconds == .max)
    #expect(WallTime(Date(timeIntervalSince1970: .nan)).microseconds == .min)
    #expect(WallTime(microseconds: .max).advanced(byMicroseconds: 1) == nil)
    #expect(WallTime(microseconds: .min).microseconds(until: WallTime(microseconds: .max)) == .max)
    #expect(WallTime(microseconds: .max).microseconds(until: WallTime(microseconds: .min)) == .min)
  }

  @Test func `a manual clock tells the time`() {
    let clock = ManualClock()
    let start = WallTime(clock.date)
    clock.advance(by: .microseconds(499_999))
    #expect(start.microseconds(until: WallTime(clock.date)) == 499_999)
    clock.advance(by: .microseconds(-500_000))
    #expect(start.microseconds(until: WallTime(clock.date)) == -1)
  }
}
