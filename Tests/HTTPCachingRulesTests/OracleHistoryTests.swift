#if HTTPCache
import Foundation
import LarderTesting
import TestSupport
import Testing

@testable import HTTPCachingRules

/// Random histories of requests, answers and clock steps: the rules and the oracle must say the same at each step.
///
/// `LARDER_ROUNDS` multiplies the number of histories, each of which has 25 requests; `make soak` runs a million.
struct OracleHistoryTests {
  typealias Ask = Oracle.Ask
  typealias Reply = Oracle.Reply

  private static var count: Int {
    let rounds = ConformanceSuite.roundsOfProcess
    return rounds >= 1_000 ? 500_000 : (TestDepth.isShort ? 50 : 250) * max(1, rounds)
  }

  @Test(arguments: [HTTPCacheMode.private, .shared])
  func `The rules agree with the oracle on random histories`(mode: HTTPCacheMode) {
    let seed = SeededGenerator.seedOfProcess
    var hits = 0
    for number in 0..<Self.count {
      var random = SeededGenerator(seed: seed, purpose: "history \(mode) \(number)")
      do {
        hits += try Self.run(mode, &random)
      } catch {
        Issue.record("history \(number) of seed \(seed): \(error)")
        return
      }
    }
    #expect(hits > Self.count)
  }

  private static func run(_ mode: HTTPCacheMode, _ random: inout SeededGenerator) throws -> Int {
    var duel = Duel(mode)
    var now = 1_800_000_000
    var version = 1
    var trace: [String] = []
    for _ in 0..<25 {
      now += random.pick([1, 1, 5, 20, 50, 100, 1_000])
      if chance(4, &random) { version += 1 }
      let ask = ask(version, &random)
      if duel.oracle.isUndecided(ask) { break }
      let reply = chance(12, &random) ? nil : reply(version, &random)
      let confirms = !chance(4, &random)
      let delay = chance(5, &random) ? 2 : 0
      trace.append("at \(now): \(ask) -> \(reply.map { "\($0)" } ?? "nothing"), delay \(delay)")
      do {
        try duel.request(ask, at: now, delay: delay) { tags, date in
          guard var reply else { return nil }
          let isAsked = tags.contains(reply.version) || (tags.isEmpty && date)
          if isAsked, confirms, reply.status == 200 || reply.status == 304 {
            reply.status = 304
          } else if reply.status == 304 {
            reply.status = 200
          }
          return reply
        }
      } catch {
        throw Duel.Difference(description: "\(error)\n\(trace.suffix(8).joined(separator: "\n"))")
      }
      now += delay
    }
    return duel.hits
  }

  private static func chance(_ count: Int, _ random: inout SeededGenerator) -> Bool {
    Int.random(in: 0..<count, using: &random) == 0
  }

  private static func ask(_ version: Int, _ random: inout SeededGenerator) -> Ask {
    var ask = Ask()
    ask.url = Int.random(in: 0..<2, using: &random)
    if chance(8, &random) { ask.method = random.pick(["HEAD", "HEAD", "PUT"]) }
    if chance(6, &random) { ask.policy = random.pick(HTTPCachePolicy.allCases).rawValue }
    if chance(12, &random) { ask.noCache = true }
    if chance(20, &random) { ask.noStore = true }
    if chance(20, &random) { ask.onlyIfCached = true }
    if chance(20, &random) { ask.pragma = true }
    if chance(12, &random) { ask.maxAge = random.pick([0, 10, 100]) }
    if chance(20, &random) { ask.minFresh = random.pick([10, 100]) }
    if chance(10, &random) { ask.maxStale = random.pick([10, 100, Int.max]) }
    if chance(20, &random) { ask.staleIfError = 50 }
    if chance(10, &random) { ask.hasAuthorization = true }
    if chance(2, &random) { ask.language = Int.random(in: 0...3, using: &random) }
    if chance(8, &random) { ask.knownVersion = max(1, version - Int.random(in: 0...1, using: &random)) }
    return ask
  }

  private static func reply(_ version: Int, _ random: inout SeededGenerator) -> Reply {
    var reply = Reply(version: version)
    reply.status = random.pick([200, 200, 200, 200, 304, 404, 500, 503, 302])
    reply.tag = random.pick([.none, .strong, .strong, .weak])
    reply.hasModified = chance(2, &random)
    if !chance(3, &random) { reply.maxAge = random.pick([0, 5, 60, 600]) }
    if chance(10, &random) { reply.sharedMaxAge = random.pick([0, 5, 60]) }
    if chance(6, &random) { reply.expiresAfterDate = random.pick([-5, 30, 300]) }
    if chance(10, &random) { reply.noCache = true }
    if chance(16, &random) { reply.noStore = true }
    if chance(16, &random) { reply.isPrivate = true }
    if chance(8, &random) { reply.isPublic = true }
    if chance(8, &random) { reply.mustRevalidate = true }
    if chance(12, &random) { reply.proxyRevalidate = true }
    if chance(20, &random) { reply.mustUnderstand = true }
    if chance(10, &random) { reply.isImmutable = true }
    if chance(5, &random) { reply.staleWhileRevalidate = random.pick([5, 50]) }
    if chance(6, &random) { reply.staleIfError = random.pick([5, 50]) }
    if chance(6, &random) { reply.age = Int.random(in: 1...40, using: &random) }
    if chance(6, &random) { reply.dateBeforeReceipt = Int.random(in: -5...40, using: &random) }
    reply.varies = chance(3, &random)
    if chance(12, &random) { reply.hasCookie = true }
    if chance(2, &random) { reply.invalidates = Int.random(in: 0..<2, using: &random) }
    return reply
  }
}
#endif
