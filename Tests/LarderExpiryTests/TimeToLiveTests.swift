import Foundation
import Larder
import Testing
import TestSupport

@testable import LarderExpiry

@Suite struct TimeToLiveTests {
  private let now = WallTime(microseconds: 1_767_225_600_000_000)
  private let information = StoreInformation(name: "s", durability: .volatile, sharing: .exclusive)

  private func timeToLive(of timeToLive: TimeToLive) -> Int64? {
    timeToLive.deadline(from: now).map { now.microseconds(until: $0.time) }
  }

  @Test func `the deadline is the time to live from now`() {
    #expect(timeToLive(of: .never) == nil)
    #expect(timeToLive(of: .after(.milliseconds(500))) == 500_000)
    #expect(TimeToLive.after(.milliseconds(500)).deadline(from: now)?.windowMicroseconds == nil)
    #expect(timeToLive(of: .sliding(.seconds(2))) == 2_000_000)
    #expect(TimeToLive.sliding(.seconds(2)).deadline(from: now)?.windowMicroseconds == 2_000_000)
    #expect(TimeToLive.until(now.date).deadline(from: now)?.time == now)
  }

  @Test func `a time to live is never cut short`() {
    #expect(timeToLive(of: .after(.nanoseconds(1))) == 1)
    #expect(timeToLive(of: .after(.nanoseconds(1001))) == 2)
    #expect(timeToLive(of: .sliding(Duration(secondsComponent: 0, attosecondsComponent: 1))) == 1)
  }

  @Test func `an unrepresentable deadline means no deadline`() {
    let century = Duration.seconds(100 * 365 * 86_400)
    #expect(timeToLive(of: .after(century)) == 3_153_600_000_000_000)
    for duration in [century * 100_000, .seconds(Int64.max), .seconds(Int64.max) * 10] {
      #expect(timeToLive(of: .after(duration)) == nil)
      #expect(timeToLive(of: .sliding(duration)) == nil)
    }
    #expect(TimeToLive.until(Date(timeIntervalSince1970: .infinity)).deadline(from: now)?.time.microseconds == .max)
    #expect(timeToLive(of: .until(.distantFuture)) != nil)
  }

  @Test func `invalid arguments are refused`() throws {
    let senseless: [TimeToLive] = [
      .after(.zero), .after(.seconds(-1)), .sliding(.zero), .sliding(.nanoseconds(-1)),
      .until(Date(timeIntervalSince1970: .nan)),
    ]
    for timeToLive in senseless {
      let error = expectStoreError(.invalidArgument) { try timeToLive.check(for: .apply, of: information) }
      #expect(error?.operation == .apply)
      #expect(error?.store == "s")
    }
    for timeToLive in [.never, .after(.nanoseconds(1)), .sliding(.seconds(1)), .until(.distantPast)]
      as [TimeToLive]
    {
      try timeToLive.check(for: .apply, of: information)
    }
  }
}
