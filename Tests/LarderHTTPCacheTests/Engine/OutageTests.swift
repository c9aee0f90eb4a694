#if HTTPCache
import HTTPTypes
import Larder
import LarderTesting
import TestSupport
import Testing

@testable import LarderHTTPCache

/// An origin that refuses, hangs or gives errors, beside stale responses that may be used.
@Suite(.timeLimit(.minutes(5))) struct OutageTests {
  private struct Unreachable: Error {}
  private static let usable: HTTPFields = [.cacheControl: "max-age=10, stale-if-error=86400"]

  /// A cache with a stale response for each path.
  private func test(
    _ fields: HTTPFields = usable, paths: [String] = ["/"],
    configuration: HTTPCacheConfiguration = .private
  ) async throws -> (test: CacheUnderTest, origin: Origin) {
    let test = try await CacheUnderTest(configuration)
    let first = Origin(head(.ok, fields), "old")
    for path in paths { _ = try await test.get(path, from: first) }
    try await settle(test)
    test.clock.advance(by: .seconds(20))
    return (test, Origin { _, _ in throw Unreachable() })
  }

  /// Waits until no request is under way.
  private func settle(_ test: CacheUnderTest) async throws {
    try await waitUntil { test.cache.state.withLock { $0.flights.count == 0 && $0.settling.isEmpty } }
  }

  private func working() -> HTTPForwardedResponse {
    HTTPForwardedResponse(head: head(.ok, Self.usable), body: Array("new".utf8))
  }

  /// An origin that answers when a gate is open.
  private func working(behind gate: Gate) -> Origin {
    Origin { [self] _, _ in
      try await gate.wait()
      return working()
    }
  }

  @Test func `an origin that refuses is probed`() async throws {
    let (test, origin) = try await test()
    for index in 0..<600 {
      let response = try await test.get(from: origin)
      #expect(response.body == "old")
      #expect(response.status.isStale)
      if index == 0 {
        #expect(response.status.detail == "disconnected")
      } else {
        #expect(response.status.isHit && response.status.detail == "origin-failed")
      }
      try await settle(test)
      test.clock.advance(by: .seconds(1))
    }
    #expect(origin.count <= 40)
    #expect(origin.count >= 20)
    #expect(test.cache.statistics().refreshCount == origin.count - 1)
    // It works again: the next probe finds out. It waits, so that the answer is not that of the probe already.
    let gate = Gate()
    origin.set { [self] _, _ in
      try await gate.wait()
      return working()
    }
    let refreshCount = test.cache.statistics().refreshCount
    // In steps, because a failure that no probe has confirmed for long is forgotten, and the pauses are random.
    while test.cache.statistics().refreshCount == refreshCount {
      test.clock.advance(by: .seconds(1))
      #expect(try await test.get(from: origin).body == "old")
    }
    gate.open()
    try await settle(test)
    let next = try await test.get(from: origin)
    #expect(next.body == "new")
    #expect(next.status.isHit && !next.status.isStale)
  }

  @Test func `a request that was cancelled is no failure of the origin`() async throws {
    let (test, origin) = try await test()
    origin.set { _, _ in
      // Some clients throw an error of their own when they are cancelled.
      do { try await Task.sleep(for: .seconds(3_600)) } catch { throw Unreachable() }
      throw Unreachable()
    }
    let caller = Task { try await test.get(from: origin).body }
    try await waitUntil { origin.count == 1 }
    caller.cancel()
    _ = await caller.result
    try await settle(test)
    #expect(test.cache.state.withLock { $0.failures.isEmpty })
  }

  /// Gets the stale response for a caller that waits for some time, after which the request to the origin fails.
  private func fail(_ test: CacheUnderTest, _ origin: Origin, waiting limit: Duration, for time: Duration) async throws
  {
    let clock = test.clock
    origin.set { _, _ in
      clock.advance(by: time)
      throw Unreachable()
    }
    let response = try await test.cache.response(to: request(), waitLimit: limit) { try await origin($0) }
    #expect(try await response.body.bytes(upTo: 10) == Array("old".utf8))
    try await settle(test)
  }

  @Test func `the short deadline of one caller is no failure of the origin`() async throws {
    let (test, origin) = try await test()
    func isFailing() -> Bool { !test.cache.state.withLock { $0.failures.isEmpty } }
    try await fail(test, origin, waiting: .milliseconds(100), for: .milliseconds(100))
    #expect(!isFailing())
    // An error that comes earlier is that of the origin, and so is a long silence.
    try await fail(test, origin, waiting: .milliseconds(100), for: .milliseconds(50))
    #expect(isFailing())
    test.clock.advance(by: .seconds(1))
    // A probe of a caller in a hurry says nothing, so that the next request probes again.
    let count = origin.count
    for _ in 0..<3 { try await fail(test, origin, waiting: .milliseconds(100), for: .milliseconds(100)) }
    #expect(origin.count == count + 3)
    for _ in 0..<3 { try await fail(test, origin, waiting: .milliseconds(100), for: .zero) }
    #expect(origin.count == count + 4)
  }

  @Test func `a long silence is a failure whatever the caller wanted`() async throws {
    let (test, origin) = try await test()
    try await fail(test, origin, waiting: .seconds(1), for: .seconds(1))
    #expect(!test.cache.state.withLock { $0.failures.isEmpty })
  }

  @Test func `an origin that hangs delays the first requests only`() async throws {
    let (test, origin) = try await test()
    let clock = test.clock
    origin.set { _, _ in
      try await clock.sleep(for: .seconds(30))
      throw Unreachable()
    }
    var callers: [Task<String, any Error>] = []
    for index in 0..<50 {
      callers.append(Task { try await test.get(from: origin).body })
      // The request to the origin sleeps as well.
      try await clock.waitForSleepers(index + 2)
      clock.advance(by: .milliseconds(100))
    }
    #expect(origin.count == 1)
    // Those who came later wait no longer than the first one.
    clock.advance(by: .seconds(5))
    for caller in callers { #expect(try await caller.value == "old") }
    var joinCount = 0
    for _ in 0..<1_180 {
      let response = try await test.get(from: origin)
      #expect(response.body == "old")
      // A request joins a probe whose time is over, but whose task has not run since, and gets the stored response from it.
      if !response.status.isHit { joinCount += 1 }
      // A probe sleeps, with its limit, or has ended.
      await yieldUntil { clock.sleeperCount >= 2 || test.cache.state.withLock { $0.flights.count } == 0 }
      clock.advance(by: .milliseconds(500))
    }
    #expect(origin.count <= 30)
    #expect(origin.count >= 3)
    #expect(joinCount <= origin.count)
  }

  @Test func `a probe that hangs is cancelled`() async throws {
    let (test, origin) = try await test()
    let cancelled = Gate()
    _ = try await test.get(from: origin)
    // Its caller has the answer before the request has ended.
    try await settle(test)
    origin.set { _, _ in
      try await cancelled.openWhenCancelled()
      throw Unreachable()
    }
    test.clock.advance(by: .seconds(1))
    #expect(try await test.get(from: origin).body == "old")
    try await waitUntil { origin.count == 2 }
    // The limit of the probe.
    try await test.clock.waitForSleepers(1)
    test.clock.advance(by: .seconds(59))
    #expect(try await test.get(from: origin).body == "old")
    #expect(origin.count == 2)
    try await advance(test.clock, by: .seconds(1)) { test.clock.sleeperCount == 0 }
    try await cancelled.wait()
    try await settle(test)
    #expect(
      test.cache.state.withLock { $0.failures.kind(of: "https://example.com/", at: test.cache.elapsed) }
        == .disconnected)
  }

  @Test func `a probe whose body hangs is cancelled`() async throws {
    let (test, origin) = try await test()
    let cancelled = Gate()
    let clock = test.clock
    _ = try await test.get(from: origin)
    // Its caller has the answer before the request has ended.
    try await settle(test)
    origin.set { _, _ in
      let body = ChunkedBody { index in
        // A slow body is not a hanging one.
        if index < 4 {
          if index > 0 { try await clock.sleep(for: .seconds(50)) }
          return [UInt8(index)]
        }
        try await cancelled.openWhenCancelled()
        return nil
      }
      return HTTPForwardedResponse(head: head(.ok, Self.usable), body: body)
    }
    clock.advance(by: .seconds(1))
    #expect(try await test.get(from: origin).body == "old")
    try await waitUntil { origin.count == 2 }
    for _ in 1..<4 {
      // The body and the limit sleep.
      try await clock.waitForSleepers(2)
      clock.advance(by: .seconds(50))
      try await Task.sleep(for: .milliseconds(20))
    }
    #expect(test.cache.state.withLock { $0.flights.count } == 1)
    try await advance(clock, by: .seconds(60)) { test.cache.state.withLock { $0.flights.count } == 0 }
    try await cancelled.wait()
    try await settle(test)
  }

  /// A request that waits for another one, whose caller leaves, does not begin again when its limits have passed.
  @Test func `the last caller keeps its request`() async throws {
    var configuration = HTTPCacheConfiguration.private
    (configuration.originTimeLimit, configuration.waitLimit) = (.seconds(2), .seconds(4))
    let (test, _) = try await test(
      [.cacheControl: "max-age=10, must-revalidate", .eTag: "\"a\""], configuration: configuration)
    let gate = Gate()
    let origin = working(behind: gate)
    let leader = Task { try await test.get(from: origin).body }
    try await test.clock.waitForSleepers(1)
    let follower = Task { try await test.get(from: origin).body }
    try await test.clock.waitForSleepers(2)
    leader.cancel()
    _ = await leader.result
    for _ in 0..<3 {
      test.clock.advance(by: .seconds(2))
      try await Task.sleep(for: .milliseconds(20))
    }
    gate.open()
    #expect(try await follower.value == "new")
    #expect(origin.count == 1)
  }

  @Test func `an error without stale if error reaches the origin each time`() async throws {
    let (test, origin) = try await test([.cacheControl: "max-age=10"])
    origin.set { _, _ in HTTPForwardedResponse(head: head(.serviceUnavailable), body: Array("down".utf8)) }
    for number in 1...5 {
      #expect(try await test.get(from: origin).body == "down")
      #expect(origin.count == number)
    }
  }

  @Test func `an error with stale if error is remembered`() async throws {
    let (test, origin) = try await test()
    origin.set { _, _ in HTTPForwardedResponse(head: head(.serviceUnavailable), body: Array("down".utf8)) }
    #expect(try await test.get(from: origin).status.forwardStatus == 503)
    for _ in 0..<5 {
      let response = try await test.get(from: origin)
      #expect(response.body == "old" && response.status.isHit)
    }
    // The client has the stored response.
    #expect(
      try await test.get("/", [.ifModifiedSince: "Fri, 31 Dec 9999 23:59:59 GMT"], from: origin).head.status.code == 304
    )
    #expect(origin.count == 1)
    // A client that wants more than a stale response reaches the origin.
    #expect(try await test.get("/", [.cacheControl: "no-cache"], from: origin).body == "down")
    #expect(try await test.get(policy: .reload, from: origin).body == "down")
    #expect(origin.count == 3)
  }

  @Test(arguments: [
    "max-age=10, must-revalidate", "max-age=10, no-cache", "max-age=10, must-revalidate, stale-if-error=9999",
  ])
  func `a response that forbids it is never stale`(cacheControl: String) async throws {
    let (test, origin) = try await test([.cacheControl: cacheControl, .eTag: "\"a\""])
    for number in 1...3 {
      let response = try await test.get(from: origin)
      #expect(response.head.status == .gatewayTimeout)
      #expect(origin.count == number)
    }
  }

  @Test func `one probe for all URLs of an origin`() async throws {
    let paths = (0..<50).map { "/\($0)" }
    let (test, origin) = try await test(paths: paths)
    _ = try await test.get("/0", from: origin)
    test.clock.advance(by: .seconds(1))
    _ = try await test.get("/1", from: origin)
    #expect(origin.count == 2)
    for _ in 0..<10 {
      for path in paths { #expect(try await test.get(path, from: origin).status.isHit) }
      try await settle(test)
      test.clock.advance(by: .seconds(10))
    }
    #expect(origin.count <= 2 + 10)
    // One response shows that it works again, and the other URLs are no longer stale.
    origin.set { [self] _, _ in working() }
    test.clock.advance(by: .seconds(30))
    _ = try await test.get("/2", from: origin)
    try await settle(test)
    #expect(try await test.get("/3", from: origin).body == "new")
  }

  @Test func `a probe whose body is cut has failed`() async throws {
    let (test, origin) = try await test()
    _ = try await test.get(from: origin)
    origin.set { _, _ in
      HTTPForwardedResponse(
        head: head(.ok, Self.usable + [.contentLength: "10"]), body: ChunkedBody { $0 == 0 ? [1, 2] : nil })
    }
    for second in [1, 2, 4, 8] {
      test.clock.advance(by: .seconds(second))
      let count = origin.count
      for _ in 0..<3 {
        #expect(try await test.get(from: origin).body == "old")
        try await settle(test)
      }
      #expect(origin.count == count + 1)
    }
  }

  @Test func `a caller that leaves says nothing about the origin`() async throws {
    let (test, origin) = try await test()
    origin.set { _, _ in
      try await Task.sleep(for: .seconds(3_600))
      throw Unreachable()
    }
    let caller = Task { try await test.get(from: origin).body }
    try await waitUntil { origin.count == 1 }
    caller.cancel()
    await #expect(throws: CancellationError.self) { try await caller.value }
    try await settle(test)
    #expect(test.cache.state.withLock { $0.failures.isEmpty })
  }

  @Test func `a refresh in the background is a probe`() async throws {
    let (test, origin) = try await test([.cacheControl: "max-age=10, stale-while-revalidate=86400"])
    for _ in 0..<20 {
      #expect(try await test.get(from: origin).body == "old")
      try await settle(test)
    }
    #expect(origin.count == 1, "the failure of the first refresh is remembered")
    test.clock.advance(by: .seconds(1))
    for _ in 0..<20 {
      #expect(try await test.get(from: origin).body == "old")
      try await settle(test)
    }
    #expect(origin.count == 2)
  }

  /// A short limit for waiting for others does not limit the origin: a stale response must be validated.
  @Test func `a request that waits for no other waits for the origin`() async throws {
    var configuration = HTTPCacheConfiguration.private
    configuration.waitLimit = .zero
    let (test, _) = try await test(configuration: configuration)
    let gate = Gate()
    let origin = working(behind: gate)
    let callers = (0..<3).map { _ in Task { try await test.get(from: origin).body } }
    try await waitUntil { origin.count >= 2 }
    gate.open()
    for caller in callers { #expect(try await caller.value == "new") }
  }

  /// A caller in a hurry is forwarded alone, and ends neither the flight of the others nor their wait.
  @Test func `a caller in a hurry`() async throws {
    let test = try await CacheUnderTest()
    let gate = Gate()
    let origin = Origin { _, number in
      if number == 1 { try await gate.wait() }
      return HTTPForwardedResponse(head: head(.ok, [.cacheControl: "no-cache"]), body: Array("\(number)".utf8))
    }
    let leader = Task { try await test.get(from: origin).body }
    try await waitUntil { origin.count == 1 }
    let patient = Task { try await test.get(from: origin).body }
    try await test.clock.waitForSleepers(1)
    let hasty = Task {
      let response = try await test.cache.response(to: request(), waitLimit: .seconds(1)) { try await origin($0) }
      return String(decoding: try await response.body.bytes(upTo: 10), as: UTF8.self)
    }
    try await test.clock.waitForSleepers(2)
    test.clock.advance(by: .seconds(1))
    #expect(try await hasty.value == "2")
    #expect(origin.count == 2)
    #expect(test.cache.state.withLock { $0.flights.count == 1 && $0.flights.coolDownCount == 0 })
    gate.open()
    #expect(try await leader.value == "1")
    _ = try await patient.value
  }

  /// Without a stale response, waiters don't form a herd when their time is over: one leads the next flight.
  ///
  /// In schedules, where time passes only while nothing else can happen, so all of them have joined it when it is answered.
  @Test(.enabled(if: ScheduledTrial.isAvailable))
  func `waiters without a stale response share the next request`() async throws {
    try await runSchedules("waiters of a request that hangs", share: 0.2, switchesAtLocks: false) { context in
      let clock = context.clock
      let test = try await CacheUnderTest(clock: clock)
      let origin = Origin { _, number in
        try await clock.sleep(for: .seconds(number == 1 ? 3_600 : 1))
        return HTTPForwardedResponse(head: head(.ok, [.cacheControl: "max-age=60"]), body: Array("\(number)".utf8))
      }
      let leader = Task { try await test.get(from: origin).body }
      try await clock.sleep(for: .milliseconds(1))
      let bodies = try await withThrowingTaskGroup(of: String.self) { group in
        for _ in 0..<50 { group.addTask { try await test.get(from: origin).body } }
        return try await group.reduce(into: Set<String>()) { $0.insert($1) }
      }
      try check(bodies == ["2"] && origin.count == 2, "\(bodies) of \(origin.count) requests")
      leader.cancel()
      _ = await leader.result
    }
  }
}
#endif
