#if HTTPCache
import Foundation
import HTTPTypes
import Testing

@testable import HTTPCachingRules

/// Clocks that were wrong when a response was received, and are right now, or the other way around.
struct ClockTests {
  private static let day = 86_400.0

  /// Returns whether a response that was received with the clock ahead is reused without the origin.
  private func isHit(
    _ control: String, ahead seconds: Double, _ request: HTTPFields = [:], policy: HTTPCachePolicy = .standard
  ) throws -> Bool {
    var session = Session()
    try session.store([.cacheControl: control, .eTag: "\"a\""], at: seconds)
    return try session.request(.get, "/", request, policy: policy, at: 0).isHit
  }

  @Test("A response from the future is stale, whatever its lifetime")
  func future() throws {
    #expect(try isHit("max-age=60", ahead: 0))
    #expect(try isHit("max-age=60", ahead: 60))
    #expect(try !isHit("max-age=60", ahead: 61))
    for control in [
      "max-age=60", "max-age=31536000, immutable", "max-age=99999999999999", "max-age=1, stale-while-revalidate=9999",
    ] {
      for days in [1, 365, 36_500] as [Double] { #expect(try !isHit(control, ahead: days * Self.day), "\(control)") }
    }
  }

  @Test func `A response from the future is reused only if its age doesn't matter`() throws {
    let year = 365 * Self.day
    #expect(try !isHit("max-age=60", ahead: year, [.cacheControl: "max-stale=99999"]))
    #expect(try isHit("max-age=60", ahead: year, [.cacheControl: "max-stale"]))
    #expect(try isHit("max-age=60", ahead: year, policy: .preferCache))
    #expect(try !isHit("max-age=60, must-revalidate", ahead: year, policy: .preferCache))
    var session = Session()
    try session.store([.cacheControl: "max-age=60"], at: year)
    let answer = try session.request(at: 0) { _ in nil }
    #expect(answer.status == 200)
    #expect(answer.cache.isStale)
    #expect(answer.fields[.age] == "2147483648")
  }

  @Test("A response from the future is validated once, then fresh by the clock that is right")
  func validation() throws {
    let fields: HTTPFields = [.cacheControl: "max-age=60", .eTag: "\"a\""]
    var session = Session()
    try session.store(fields, at: 365 * Self.day)
    let validated = try session.request(at: 0) { _ in .init(status: 304, fields: fields) }
    #expect(validated.forwarded.map { $0.headerFields[.ifNoneMatch] } == ["\"a\""])
    #expect(validated.cache.isValidated)
    #expect(try session.request(at: 59).isHit)
    #expect(try !session.request(at: 60).isHit)
  }

  @Test("A response that was received with the clock behind is stale")
  func past() throws {
    #expect(try !isHit("max-age=60", ahead: -365 * Self.day))
  }
}
#endif
