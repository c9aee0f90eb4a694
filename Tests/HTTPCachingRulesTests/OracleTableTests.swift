#if HTTPCache
import Foundation
import LarderTesting
import TestSupport
import Testing

@testable import HTTPCachingRules

/// Every combination of a stored response, its age, its validator, a request, the kind of the cache and the origin's
/// answer: the rules and the oracle must say the same.
///
/// A short run checks every eleventh line, from one that the seed chooses; `make soak` checks them all.
struct OracleTableTests {
  typealias Ask = Oracle.Ask
  typealias Reply = Oracle.Reply

  static let directives: [@Sendable (inout Reply) -> Void] = [
    { _ in }, { $0.maxAge = 60 }, { $0.maxAge = 0 }, { $0.sharedMaxAge = 60 },
    { ($0.maxAge, $0.sharedMaxAge) = (60, 10) }, { ($0.maxAge, $0.mustRevalidate) = (60, true) },
    { ($0.maxAge, $0.proxyRevalidate) = (60, true) }, { ($0.maxAge, $0.noCache) = (60, true) },
    { ($0.maxAge, $0.noStore) = (60, true) }, { ($0.maxAge, $0.isPrivate) = (60, true) },
    { ($0.maxAge, $0.isPublic) = (60, true) }, { ($0.maxAge, $0.isImmutable) = (60, true) },
    { ($0.maxAge, $0.staleWhileRevalidate) = (60, 30) }, { ($0.maxAge, $0.staleIfError) = (60, 30) },
    { ($0.maxAge, $0.mustRevalidate, $0.staleIfError) = (60, true, 30) },
    { ($0.maxAge, $0.noStore, $0.mustUnderstand) = (60, true, true) },
    { ($0.status, $0.maxAge, $0.noStore, $0.mustUnderstand) = (599, 60, true, true) },
    { $0.expiresAfterDate = 60 }, { $0.expiresAfterDate = -60 }, { ($0.status, $0.maxAge) = (404, 60) },
    { $0.status = 302 }, { ($0.status, $0.isPublic) = (302, true) }, { ($0.hasCookie) = true },
    { ($0.maxAge, $0.hasCookie) = (60, true) },
  ]

  static let validators: [@Sendable (inout Reply) -> Void] = [
    { _ in }, { $0.tag = .strong }, { $0.tag = .weak }, { $0.hasModified = true },
    { ($0.tag, $0.hasModified) = (.strong, true) },
  ]

  /// The seconds after the response was received, and how old it was by then.
  static let ages = [(0, 0), (45, 0), (61, 0), (85, 0), (10, 45), (120, 0)]

  static let requests: [@Sendable (inout Ask) -> Void] = [
    { _ in }, { $0.noCache = true }, { $0.noStore = true }, { $0.maxAge = 0 }, { $0.maxAge = 50 }, { $0.minFresh = 30 },
    { $0.maxStale = Int.max }, { $0.maxStale = 10 }, { $0.onlyIfCached = true }, { $0.pragma = true },
    { $0.staleIfError = 100 }, { $0.hasAuthorization = true }, { $0.knownVersion = 1 }, { $0.method = "HEAD" },
  ]

  static let answers: [Reply?] = [
    nil, Reply(status: 200, version: 2, maxAge: 60), Reply(status: 200, version: 2, noStore: true), Reply(status: 304),
    Reply(status: 304, version: 1, tag: .strong, maxAge: 60), Reply(status: 503, version: 3),
  ]

  static var lineCount: Int {
    2 * directives.count * validators.count * ages.count * requests.count * answers.count
  }

  /// The distance of two lines that are checked.
  ///
  /// It has no factor in common with the numbers of validators, ages, requests and answers, so every one of them meets
  /// all others.
  private static let stride = TestDepth.isShort ? 11 : 1

  @Test func `The table has at least 100,000 lines`() {
    #expect(Self.lineCount >= 100_000)
  }

  @Test(arguments: [HTTPCacheMode.private, .shared], Array(directives.indices))
  func `The rules agree with the oracle on every line`(mode: HTTPCacheMode, directive: Int) throws {
    var hits = 0
    let stride = Self.stride
    var line = TestDepth.start(distance: stride, of: "oracle table \(mode) \(directive)")
    for validator in Self.validators.indices {
      for (seconds, age) in Self.ages {
        for request in Self.requests.indices {
          for answer in Self.answers.indices {
            line += 1
            guard line.isMultiple(of: stride) else { continue }
            var reply = Reply(age: age)
            Self.directives[directive](&reply)
            Self.validators[validator](&reply)
            var ask = Ask()
            Self.requests[request](&ask)
            do {
              hits += try Self.run(mode, reply, after: seconds, ask, Self.answers[answer])
            } catch {
              Issue.record(
                "\(mode), \(reply), after \(seconds) s, \(ask), \(String(describing: Self.answers[answer])): \(error)")
              return
            }
          }
        }
      }
    }
    // A table in which nothing is reused would prove little.
    #expect(hits > 0 || Self.isNeverReused(directive, mode))
  }

  /// Stores a response, makes the request, and then a plain one, which shows the state that the first one left.
  private static func run(
    _ mode: HTTPCacheMode, _ reply: Reply, after seconds: Int, _ ask: Ask, _ answer: Reply?
  ) throws -> Int {
    let start = 1_800_000_000
    var duel = Duel(mode)
    try duel.request(Ask(), at: start) { _, _ in reply }
    try duel.request(ask, at: start + seconds) { tags, date in
      // An origin that isn't asked a question doesn't answer 304.
      guard let answer, answer.status == 304, tags.isEmpty, !date else { return answer }
      return Reply(status: 200, version: 4)
    }
    try duel.request(Ask(), at: start + seconds + 1) { _, _ in Reply(status: 200, version: 5) }
    return duel.hits
  }

  private static func isNeverReused(_ directive: Int, _ mode: HTTPCacheMode) -> Bool {
    var reply = Reply()
    directives[directive](&reply)
    return reply.noStore || (reply.isPrivate && mode == .shared)
  }
}
#endif
