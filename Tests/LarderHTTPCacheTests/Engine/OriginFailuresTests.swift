#if HTTPCache
import HTTPCachingRules
import LarderTesting
import Testing

@testable import LarderHTTPCache

/// The memory of failures, in simulated time.
@Suite struct OriginFailuresTests {
  private let url = "https://a.example/1"
  private var failures: OriginFailures { OriginFailures(jitter: { 1 }) }

  private func time(_ milliseconds: Int) -> Duration { .milliseconds(milliseconds) }

  @Test func `nothing is remembered at first`() {
    var failures = failures
    #expect(failures.isEmpty)
    #expect(failures.kind(of: url) == nil)
    do { let isProbe = failures.beginProbe(of: url, at: .zero); #expect(!isProbe) }
  }

  @Test func `the delay doubles`() {
    var failures = failures
    failures.noteFailure(.disconnected, of: url, wasProbe: false, at: .zero)
    var (now, delays) = (0, [Int]())
    for _ in 0..<8 {
      var last = now
      while !failures.beginProbe(of: url, at: .seconds(now)) { now += 1 }
      swap(&last, &now)
      delays.append(last - now)
      now = last
      do { let isProbe = failures.beginProbe(of: url, at: .seconds(now)); #expect(!isProbe, "one at a time") }
      failures.noteFailure(.disconnected, of: url, wasProbe: true, at: .seconds(now))
    }
    #expect(delays == [1, 2, 4, 8, 16, 30, 30, 30])
  }

  @Test func `other requests do not postpone the probe`() {
    var failures = failures
    failures.noteFailure(.disconnected, of: url, wasProbe: false, at: .zero)
    for step in 1...9 { failures.noteFailure(.errorResponse, of: url, wasProbe: false, at: time(step * 100)) }
    #expect(failures.kind(of: url) == .errorResponse)
    do { let isProbe = failures.beginProbe(of: url, at: .seconds(1)); #expect(isProbe) }
  }

  @Test func `a probe that never reports is replaced`() {
    var failures = failures
    failures.noteFailure(.disconnected, of: url, wasProbe: false, at: .zero)
    do { let isProbe = failures.beginProbe(of: url, at: .seconds(1)); #expect(isProbe) }
    do { let isProbe = failures.beginProbe(of: url, at: .seconds(60)); #expect(!isProbe) }
    do { let isProbe = failures.beginProbe(of: url, at: .seconds(61)); #expect(isProbe) }
    failures.cancelProbe(of: url)
    do { let isProbe = failures.beginProbe(of: url, at: .seconds(61)); #expect(isProbe, "a claim was given back") }
  }

  @Test func `a late request is the probe unless there is one`() {
    var failures = failures
    do { let isProbe = failures.noteLate(url, at: .seconds(10)); #expect(isProbe) }
    do { let isProbe = failures.noteLate(url, at: .seconds(10)); #expect(!isProbe) }
    #expect(failures.kind(of: url) == .disconnected)
    do { let isProbe = failures.beginProbe(of: url, at: .seconds(30)); #expect(!isProbe) }
    failures.noteFailure(.disconnected, of: url, wasProbe: true, at: .seconds(40))
    do { let isProbe = failures.beginProbe(of: url, at: .seconds(41)); #expect(!isProbe) }
    do { let isProbe = failures.beginProbe(of: url, at: .seconds(42)); #expect(isProbe, "it was the second failure") }
  }

  @Test func `a failure that no request confirms is outdated`() {
    var failures = failures
    failures.noteFailure(.disconnected, of: url, wasProbe: false, at: .zero)
    #expect(failures.kind(of: url, at: .seconds(30)) == .disconnected)
    #expect(failures.kind(of: url, at: .seconds(31)) == nil)
    // The silence of an hour in which nothing was asked is no outage of the origin.
    failures.noteFailure(.disconnected, of: "https://a.example/2", wasProbe: false, at: .seconds(3600))
    #expect(failures.kind(of: url, at: .seconds(3600)) == nil)
    #expect(failures.kind(of: "https://a.example/2", at: .seconds(3600)) == .disconnected)
    // A probe that is under way counts.
    do { let isProbe = failures.beginProbe(of: "https://a.example/2", at: .seconds(3601)); #expect(isProbe) }
    #expect(failures.kind(of: "https://a.example/2", at: .seconds(3650)) == .disconnected)
  }

  @Test func `a success ends the failure of its URL`() {
    var failures = failures
    failures.noteFailure(.errorResponse, of: url, wasProbe: false, at: .zero)
    failures.noteSuccess(of: "https://a.example/2")
    #expect(failures.kind(of: url) == .errorResponse)
    failures.noteSuccess(of: url)
    #expect(failures.isEmpty)
  }

  @Test func `two URLs without a response are a failure of their origin`() {
    var failures = failures
    func note(_ path: String, _ milliseconds: Int, wasProbe: Bool = false) {
      failures.noteFailure(.disconnected, of: "https://a.example/" + path, wasProbe: wasProbe, at: time(milliseconds))
    }
    note("1", 0)
    note("1", 5_000)
    #expect(failures.kind(of: "https://a.example/3") == nil, "one URL can hang by itself")
    failures.noteResponse(from: "https://a.example/9")
    note("2", 5_500)
    #expect(failures.kind(of: "https://a.example/3") == nil, "the origin has answered")
    note("1", 6_000)
    #expect(failures.kind(of: "https://a.example/3") == nil, "too soon")
    note("1", 6_500)
    #expect(failures.kind(of: "https://a.example/3") == .disconnected)
    #expect(failures.kind(of: "https://a.example:8443/3") == nil)
    #expect(failures.kind(of: "http://a.example/3") == nil)
    // One probe for all URLs.
    do { let isProbe = failures.beginProbe(of: "https://a.example/3", at: .seconds(8)); #expect(isProbe) }
    do { let isProbe = failures.beginProbe(of: "https://a.example/4", at: .seconds(8)); #expect(!isProbe) }
    note("3", 8_500, wasProbe: true)
    do { let isProbe = failures.beginProbe(of: "https://a.example/4", at: .seconds(10)); #expect(!isProbe) }
    do { let isProbe = failures.beginProbe(of: "https://a.example/4", at: .seconds(11)); #expect(isProbe) }
    failures.noteSuccess(of: "https://a.example/4")
    #expect(failures.kind(of: "https://a.example/3") == nil)
    #expect(failures.kind(of: "https://a.example/1") == .disconnected, "this URL is probed by itself")
  }

  @Test func `the memory is bounded`() {
    var failures = failures
    for index in 0..<5_000 {
      failures.noteFailure(.errorResponse, of: "https://a.example/\(index)", wasProbe: false, at: time(index))
      failures.noteFailure(.disconnected, of: "https://\(index).example/", wasProbe: false, at: time(index))
    }
    #expect(failures.counts.urls == OriginFailures.highestCount)
    #expect(failures.counts.origins == OriginFailures.highestCount)
    #expect(failures.kind(of: "https://4999.example/") == .disconnected)
    #expect(failures.kind(of: "https://0.example/") == nil)
  }

  // MARK: Ten minutes

  /// A cache with stale responses for some URLs, ten requests a second, and an origin without an answer.
  private struct Outage {
    var failures: OriginFailures
    let urls: [String]
    /// The time after which a request fails; 0 for an origin that refuses.
    let timeout: Int
    var requestCount = 0
    var atOnce = 0
    var highestAtOnce = 0
    /// The ends of requests in milliseconds.
    var ends: [(time: Int, url: String, isProbe: Bool)] = []
    var staleCount = 0

    mutating func send(_ url: String, at now: Int, isProbe: Bool) {
      requestCount += 1
      ends.append((now + timeout, url, isProbe))
      highestAtOnce = max(highestAtOnce, ends.count)
    }

    /// - Parameter cancels: A Boolean value that indicates whether half of the probes are given back without an
    ///   outcome.
    mutating func run(seconds: Range<Int>, cancels: Bool = false, _ random: inout SeededGenerator) {
      for tick in seconds.lowerBound * 10..<seconds.upperBound * 10 {
        let now = tick * 100
        let ended = ends.filter { $0.time <= now }
        ends.removeAll { $0.time <= now }
        for end in ended {
          if cancels, end.isProbe, Bool.random(using: &random) {
            failures.cancelProbe(of: end.url)
          } else {
            failures.noteFailure(.disconnected, of: end.url, wasProbe: end.isProbe, at: .milliseconds(now))
          }
        }
        let url = urls.randomElement(using: &random) ?? ""
        if failures.kind(of: url) == nil {
          // A request for a URL waits for another one, which is late after ten seconds.
          if let index = ends.firstIndex(where: { $0.url == url }) {
            let isLate = now - (ends[index].time - timeout) >= 10_000
            if isLate, failures.noteLate(url, at: .milliseconds(now)) { ends[index].isProbe = true }
          } else {
            send(url, at: now, isProbe: false)
          }
        } else {
          staleCount += 1
          if failures.beginProbe(of: url, at: .milliseconds(now)) { send(url, at: now, isProbe: true) }
        }
      }
    }
  }

  @Test(arguments: [0, 30_000, 3_600_000], [1, 50]) func `ten minutes`(timeout: Int, urlCount: Int) {
    let seed = SeededGenerator.seedOfProcess
    var random = SeededGenerator(seed: seed)
    var outage = Outage(
      failures: OriginFailures(jitter: { 0.75 }), urls: (0..<urlCount).map { "https://a.example/\($0)" },
      timeout: timeout)
    outage.run(seconds: 0..<600, &random)
    // Until it is known that the origin and not only a URL fails, each URL is tried.
    let first = urlCount == 1 ? 1 : min(urlCount, timeout == 0 ? 12 : urlCount)
    #expect(outage.requestCount <= first + 40, "seed \(seed)")
    #expect(outage.staleCount >= 5_800, "seed \(seed)")
    // It works again.
    outage.failures.noteSuccess(of: outage.urls[0])
    #expect(outage.failures.kind(of: outage.urls[0]) == nil)
  }

  @Test func `probes that are cancelled do not end the probing`() {
    var random = SeededGenerator(seed: SeededGenerator.seedOfProcess)
    var outage = Outage(failures: failures, urls: [url], timeout: 5_000)
    outage.run(seconds: 0..<600, cancels: true, &random)
    #expect(outage.requestCount >= 15)
    #expect(outage.requestCount <= 150)
    #expect(outage.highestAtOnce == 1)
  }
}

extension OriginFailures {
  /// Returns the kind of failure at a time when none is outdated.
  fileprivate func kind(of url: String) -> OriginFailure? { kind(of: url, at: .zero) }
}
#endif
