#if HTTPCache
import Foundation
import HTTPTypes
import Larder
import LarderTesting
import TestSupport
import Testing

@testable import LarderHTTPCache

@Suite(.timeLimit(.minutes(5))) struct CollapsingTests {
  private static let callers = 1_000

  private func start(
    _ test: CacheUnderTest, _ origin: Origin, _ fields: @escaping @Sendable (Int) -> HTTPFields = { _ in [:] }
  ) -> [Task<String, any Error>] {
    (0..<Self.callers).map { index in
      Task { try await test.get("/", fields(index), from: origin).body }
    }
  }

  /// An origin that answers the first request when one gate opens, and the others when another one does.
  private func slowOrigin(
    _ first: Gate, _ others: Gate = Gate(), _ answer: @escaping @Sendable (HTTPRequest) -> HTTPForwardedResponse
  ) -> Origin {
    Origin { request, number in
      try await (number == 1 ? first : others).wait()
      return answer(request)
    }
  }

  /// Waits until all callers but the leader wait.
  private func waitForWaiters(_ test: CacheUnderTest, _ origin: Origin, _ count: Int = callers - 1) async throws {
    try await waitUntil { origin.count >= 1 && test.clock.sleeperCount >= count }
  }

  @Test func `one request reaches the origin for a cacheable response`() async throws {
    let test = try await CacheUnderTest()
    let gate = Gate()
    let origin = slowOrigin(gate) { _ in
      HTTPForwardedResponse(head: head(.ok, [.cacheControl: "max-age=60"]), body: Array("body".utf8))
    }
    let callers = start(test, origin)
    try await waitForWaiters(test, origin)
    gate.open()
    for caller in callers { #expect(try await caller.value == "body") }
    #expect(origin.count == 1)
    #expect(test.cache.statistics().collapsedCount == Self.callers - 1)
  }

  @Test func `one validation serves all`() async throws {
    let test = try await CacheUnderTest()
    let fields: HTTPFields = [.cacheControl: "max-age=60", .eTag: "\"a\""]
    _ = try await test.get(from: Origin(head(.ok, fields)))
    test.clock.advance(by: .seconds(100))
    let gate = Gate()
    let origin = slowOrigin(gate) { request in
      #expect(request.headerFields[.ifNoneMatch] == "\"a\"")
      return HTTPForwardedResponse(head: head(.notModified, fields))
    }
    let callers = start(test, origin)
    // A request beside a stale response has a time limit, too.
    try await waitForWaiters(test, origin, Self.callers)
    gate.open()
    for caller in callers { #expect(try await caller.value == "body") }
    #expect(origin.count == 1)
  }

  enum Unshareable: CaseIterable {
    case noStore, privateInShared, vary

    var configuration: HTTPCacheConfiguration { self == .privateInShared ? .shared : .private }

    var fields: HTTPFields {
      switch self {
      case .noStore: [.cacheControl: "no-store"]
      case .privateInShared: [.cacheControl: "private, max-age=60"]
      case .vary: [.cacheControl: "max-age=60", .vary: "User-Agent"]
      }
    }
  }

  @Test(arguments: Unshareable.allCases)
  func `every caller gets its own response in two rounds`(kind: Unshareable) async throws {
    let test = try await CacheUnderTest(kind.configuration)
    let (first, others) = (Gate(), Gate())
    let origin = slowOrigin(first, others) { request in
      HTTPForwardedResponse(head: head(.ok, kind.fields), body: Array((request.headerFields[.userAgent] ?? "").utf8))
    }
    let callers = start(test, origin) { [.userAgent: "\($0)"] }
    try await waitForWaiters(test, origin)
    first.open()
    // All others are forwarded before one of them is answered.
    try await waitUntil { origin.count >= Self.callers }
    others.open()
    for (index, caller) in callers.enumerated() { #expect(try await caller.value == "\(index)") }
    #expect(origin.count == Self.callers)
    #expect(test.cache.statistics().collapsedCount == 0)
  }

  @Test func `nobody waits for a URL whose response could not be shared`() async throws {
    let test = try await CacheUnderTest()
    let gate = Gate()
    let origin = Origin { _, _ in
      try await gate.wait()
      return HTTPForwardedResponse(head: head(.ok, [.cacheControl: "no-store"]))
    }
    func two(reaching count: Int) async throws {
      let callers = (0..<2).map { _ in Task { try await test.get(from: origin).body } }
      // The other caller waits with a limit.
      try await waitUntil { origin.count >= count && test.clock.sleeperCount >= 1 }
      gate.open()
      for caller in callers { _ = try await caller.value }
    }
    try await two(reaching: 1)
    #expect(origin.count == 2)
    let second = Gate()
    origin.set { _, _ in
      try await second.wait()
      return HTTPForwardedResponse(head: head(.ok, [.cacheControl: "no-store"]))
    }
    let callers = (0..<5).map { _ in Task { try await test.get(from: origin).body } }
    try await waitUntil { origin.count >= 7 }
    second.open()
    for caller in callers { _ = try await caller.value }
  }

  @Test func `a waiter has a time limit`() async throws {
    let test = try await CacheUnderTest()
    let origin = Origin { _, number in
      if number == 1 { try await Task.sleep(for: .seconds(3_600)) }
      return HTTPForwardedResponse(head: head(.ok, [.cacheControl: "max-age=60"]), body: Array("\(number)".utf8))
    }
    let leader = Task { try await test.get(from: origin).body }
    try await waitUntil { origin.count >= 1 }
    let waiter = Task { try await test.get(from: origin).body }
    try await waitUntil { test.clock.sleeperCount >= 1 }
    try await advance(test.clock, by: .seconds(10)) { origin.count >= 2 }
    #expect(try await waiter.value == "2")
    leader.cancel()
    await #expect(throws: CancellationError.self) { try await leader.value }
  }

  // MARK: Leaders that leave

  @Test func `a cancelled leader holds nobody up`() async throws {
    let test = try await CacheUnderTest()
    let gate = Gate()
    let origin = Origin { _, _ in
      try await gate.wait()
      return HTTPForwardedResponse(head: head(.ok, [.cacheControl: "max-age=60"]), body: Array("body".utf8))
    }
    let leader = Task { try await test.get(from: origin).body }
    try await waitUntil { origin.count >= 1 }
    let others = (0..<10).map { _ in Task { try await test.get(from: origin).body } }
    try await waitUntil { test.clock.sleeperCount >= 10 }
    leader.cancel()
    await #expect(throws: CancellationError.self) { try await leader.value }
    gate.open()
    for other in others { #expect(try await other.value == "body") }
    #expect(origin.count == 1)
  }

  @Test func `the request is cancelled with its last caller`() async throws {
    let test = try await CacheUnderTest()
    let cancelled = Gate()
    let origin = Origin { _, number in
      if number == 1 {
        try await cancelled.openWhenCancelled()
      }
      return HTTPForwardedResponse(head: head(.ok), body: Array("\(number)".utf8))
    }
    let callers = (0..<3).map { _ in Task { try await test.get(from: origin).body } }
    try await waitUntil { origin.count >= 1 && test.clock.sleeperCount >= 2 }
    for caller in callers { caller.cancel() }
    for caller in callers { await #expect(throws: CancellationError.self) { try await caller.value } }
    try await cancelled.wait()
    #expect(try await test.get(from: origin).body == "2")
  }

  @Test func `a failure is shared`() async throws {
    struct Unreachable: Error {}
    let test = try await CacheUnderTest()
    let gate = Gate()
    let origin = Origin { _, _ in
      try await gate.wait()
      throw Unreachable()
    }
    let callers = (0..<20).map { _ in Task { try await test.get(from: origin).body } }
    try await waitUntil { origin.count >= 1 && test.clock.sleeperCount >= 19 }
    gate.open()
    for caller in callers { await #expect(throws: Unreachable.self) { try await caller.value } }
    #expect(origin.count == 1)
  }

  @Test func `an error of the origin is shared if a stale response answers`() async throws {
    let test = try await CacheUnderTest()
    _ = try await test.get(from: Origin(head(.ok, [.cacheControl: "max-age=10, stale-if-error=1000"])))
    test.clock.advance(by: .seconds(20))
    let gate = Gate()
    let origin = Origin { _, _ in
      try await gate.wait()
      return HTTPForwardedResponse(head: head(.badGateway))
    }
    let callers = (0..<20).map { _ in Task { try await test.get(from: origin).body } }
    try await waitUntil { origin.count >= 1 && test.clock.sleeperCount >= 20 }
    gate.open()
    for caller in callers { #expect(try await caller.value == "body") }
    #expect(origin.count == 1)
  }

  enum Cut: CaseIterable { case error, shortBody, shortAfterManyBytes }

  @Test(arguments: Cut.allCases) func `a body that is cut short is nobodys response`(cut: Cut) async throws {
    struct Broken: Error {}
    var configuration = HTTPCacheConfiguration.private
    configuration.capacity = 1_000_000_000
    let test = try await CacheUnderTest(configuration)
    let gate = Gate()
    let chunkCount = cut == .shortAfterManyBytes ? 80 : 2
    let origin = Origin { _, number in
      let fields: HTTPFields = [.cacheControl: "max-age=60", .contentLength: "\(100_000 * (chunkCount + 1))"]
      let body = ChunkedBody { index in
        if index == 1 { try await gate.wait() }
        if index < chunkCount || (number > 1 && index == chunkCount) { return Array(repeating: 7, count: 100_000) }
        if cut == .error, number == 1 { throw Broken() }
        return nil
      }
      return HTTPForwardedResponse(head: head(.ok, fields), body: body)
    }
    let callers = (0..<10).map { _ in Task { try await test.get(from: origin).body.utf8.count } }
    try await waitUntil { test.cache.statistics().collapsedCount == 9 }
    gate.open()
    for caller in callers {
      switch cut {
      case .error: await #expect(throws: Broken.self) { try await caller.value }
      case .shortBody, .shortAfterManyBytes:
        let error = await #expect(throws: HTTPCacheError.self) { try await caller.value }
        #expect(error?.code == .incompleteBody)
      }
    }
    #expect(origin.count == 1)
    let next = try await test.get(from: origin)
    #expect(!next.status.isHit)
    #expect(next.body.utf8.count == 100_000 * (chunkCount + 1))
  }

  @Test func `a leader that stops reading holds nobody up`() async throws {
    let test = try await CacheUnderTest()
    let gate = Gate()
    let origin = Origin { _, _ in
      HTTPForwardedResponse(
        head: head(.ok, [.cacheControl: "max-age=60"]),
        body: ChunkedBody { index in
          if index == 1 { try await gate.wait() }
          return index < 50 ? Array(repeating: UInt8(index), count: 100_000) : nil
        })
    }
    do {
      let leader = try await test.cache.response(to: request()) { try await origin($0) }
      let other = try await test.cache.response(to: request()) { try await origin($0) }
      var iterator = leader.body.makeAsyncIterator()
      _ = try await iterator.next()
      gate.open()
      #expect(try await other.body.bytes(upTo: 10_000_000).count == 5_000_000)
    }
    #expect(origin.count == 1)
    #expect(try await test.get(from: origin).status.isHit)
  }

  @Test func `a fetch without readers is cancelled and not stored`() async throws {
    let test = try await CacheUnderTest()
    let cancelled = Gate()
    let origin = Origin { _, _ in
      HTTPForwardedResponse(
        head: head(.ok, [.cacheControl: "max-age=60"]),
        body: ChunkedBody { index in
          guard index > 0 else { return [1] }
          try await cancelled.openWhenCancelled()
          return nil
        })
    }
    do {
      let response = try await test.cache.response(to: request()) { try await origin($0) }
      var iterator = response.body.makeAsyncIterator()
      _ = try await iterator.next()
    }
    try await cancelled.wait()
    origin.set { _, _ in HTTPForwardedResponse(head: head(), body: [65]) }
    #expect(try await test.get(from: origin).body == "A")
  }

  @Test func `nobody joins a fetch that is older than an invalidation`() async throws {
    let test = try await CacheUnderTest()
    let gate = Gate()
    let origin = Origin { _, number in
      if number == 1 { try await gate.wait() }
      return HTTPForwardedResponse(head: head(.ok, [.cacheControl: "max-age=60"]), body: Array("\(number)".utf8))
    }
    let first = Task { try await test.get(from: origin).body }
    try await waitUntil { origin.count >= 1 }
    try await test.cache.invalidate("https://example.com/")
    #expect(try await test.get(from: origin).body == "2")
    gate.open()
    #expect(try await first.value == "1")
    #expect(try await test.get(from: origin).body == "2", "the older response must not replace the newer one")
  }
}
#endif
