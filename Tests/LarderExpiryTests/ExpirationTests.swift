import Foundation
import Larder
import Testing
import TestSupport

@testable import LarderExpiry

@Suite struct ExpirationTests {
  private let now = WallTime(microseconds: 1_767_225_600_000_000)
  private let information = StoreInformation(name: "s", acknowledgement: .volatile, sharing: .exclusive)

  private func lifetime(of expiration: Expiration) -> Int64? {
    expiration.deadline(from: now).map { now.microseconds(until: $0.time) }
  }

  @Test func theDeadlineIsSoFarOffAsWasSaid() {
    #expect(lifetime(of: .never) == nil)
    #expect(lifetime(of: .after(.milliseconds(500))) == 500_000)
    #expect(Expiration.after(.milliseconds(500)).deadline(from: now)?.windowMicroseconds == nil)
    #expect(lifetime(of: .sliding(.seconds(2))) == 2_000_000)
    #expect(Expiration.sliding(.seconds(2)).deadline(from: now)?.windowMicroseconds == 2_000_000)
    #expect(Expiration.at(now.date).deadline(from: now)?.time == now)
  }

  @Test func aLifetimeIsNeverCutShort() {
    #expect(lifetime(of: .after(.nanoseconds(1))) == 1)
    #expect(lifetime(of: .after(.nanoseconds(1001))) == 2)
    #expect(lifetime(of: .sliding(Duration(secondsComponent: 0, attosecondsComponent: 1))) == 1)
  }

  @Test func aLifetimeWhoseEndCannotBeCountedIsAsGoodAsNone() {
    let century = Duration.seconds(100 * 365 * 86_400)
    #expect(lifetime(of: .after(century)) == 3_153_600_000_000_000)
    for duration in [century * 100_000, .seconds(Int64.max), .seconds(Int64.max) * 10] {
      #expect(lifetime(of: .after(duration)) == nil)
      #expect(lifetime(of: .sliding(duration)) == nil)
    }
    #expect(Expiration.at(Date(timeIntervalSince1970: .infinity)).deadline(from: now)?.time.microseconds == .max)
    #expect(lifetime(of: .at(.distantFuture)) != nil)
  }

  @Test func whatMakesNoSenseIsRefused() throws {
    let senseless: [Expiration] = [
      .after(.zero), .after(.seconds(-1)), .sliding(.zero), .sliding(.nanoseconds(-1)),
      .at(Date(timeIntervalSince1970: .nan)),
    ]
    for expiration in senseless {
      let error = expectStoreError(.invalidArgument) { try expiration.check(for: .apply, of: information) }
      #expect(error?.operation == .apply)
      #expect(error?.store == "s")
    }
    for expiration in [.never, .after(.nanoseconds(1)), .sliding(.seconds(1)), .at(.distantPast)] as [Expiration] {
      try expiration.check(for: .apply, of: information)
    }
  }
}
