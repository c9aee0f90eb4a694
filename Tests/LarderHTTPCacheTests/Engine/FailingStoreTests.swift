#if HTTPCache
import Foundation
import HTTPTypes
import Larder
import LarderTesting
import TestSupport
import Testing

@testable import LarderHTTPCache

/// A failing store never fails a request.
@Suite struct FailingStoreTests {
  enum Scenario: CaseIterable, Sendable {
    case miss, hit, validation, range, largeMiss, largeHit, completion, unsafe
  }

  enum Fault: CaseIterable, Sendable {
    case error, errorAfterwards, full, closed, stall, stallAfterwards

    var fault: StoreFault {
      switch self {
      case .error: .error(.ioFailed)
      case .errorAfterwards: .error(.ioFailed, .after)
      case .full: .error(.full)
      case .closed: .error(.closed)
      case .stall: .suspension()
      case .stallAfterwards: .suspension(.after)
      }
    }
  }

  private static let small = Array("0123456789".utf8)
  private static let large = (0..<1_300_000).map { UInt8(truncatingIfNeeded: $0 &* 7 >> 4) }

  private func origin(_ body: [UInt8]) -> Origin {
    Origin { request, _ in
      let fields: HTTPFields = [.cacheControl: "max-age=1000000", .eTag: "\"a\""]
      if request.headerFields[.ifNoneMatch]?.contains("\"a\"") == true {
        return HTTPForwardedResponse(head: head(.notModified, fields))
      }
      for (text, range) in [("bytes=0-3", 0..<4), ("bytes=2-5", 2..<6), ("bytes=4-", 4..<body.count)]
      where request.headerFields[.range] == text {
        let part: HTTPFields = [
          .contentRange: "bytes \(range.lowerBound)-\(range.upperBound - 1)/\(body.count)",
          .contentLength: "\(range.count)",
        ]
        return HTTPForwardedResponse(head: head(.partialContent, fields + part), body: Array(body[range]))
      }
      let chunks = stride(from: 0, to: body.count, by: 100_000).map { Array(body[$0..<min(body.count, $0 + 100_000)]) }
      return HTTPForwardedResponse(
        head: head(.ok, fields + [.contentLength: "\(body.count)"]),
        body: ChunkedBody { $0 < chunks.count ? chunks[$0] : nil })
    }
  }

  private func prepare(_ scenario: Scenario) async throws -> (CacheUnderTest, Origin, [UInt8]) {
    let test = try await CacheUnderTest()
    let body = [.largeMiss, .largeHit].contains(scenario) ? Self.large : Self.small
    let origin = origin(body)
    switch scenario {
    case .miss, .largeMiss: break
    case .hit, .largeHit, .range, .unsafe: _ = try await test.get(from: origin)
    case .validation:
      _ = try await test.get(from: origin)
      test.clock.advance(by: .seconds(2_000_000))
    case .completion: _ = try await test.get("/", [.range: "bytes=0-3"], from: origin)
    }
    // A fault must not affect the storing of this response.
    let expected = [.miss, .largeMiss].contains(scenario) ? 0 : 1
    try await waitUntil { test.cache.statistics().storedCount >= expected }
    try await waitUntil { test.cache.state.withLock({ $0.settling.isEmpty }) }
    return (test, origin, body)
  }

  private func run(_ scenario: Scenario, _ test: CacheUnderTest, _ origin: Origin, _ body: [UInt8]) async throws {
    let fields: HTTPFields = scenario == .range ? [.range: "bytes=2-5"] : [:]
    let method: HTTPRequest.Method = scenario == .unsafe ? .post : .get
    let response = try await test.cache.response(to: request("/", fields, method: method)) { try await origin($0) }
    let received = try await response.body.bytes(upTo: 10_000_000)
    if scenario == .range {
      #expect(response.head.status == .partialContent)
      #expect(received == Array(body[2..<6]))
    } else {
      #expect(response.head.status == .ok)
      let isRight = Data(received) == Data(body)
      #expect(isRight)
    }
  }

  /// Runs a request while the time passes for operations that are stalled.
  private func withPassingTime(_ test: CacheUnderTest, _ work: @escaping @Sendable () async throws -> Void) async throws
  {
    let isDone = Locked(false)
    async let passing: Void = {
      while !isDone.withLock({ $0 }) {
        if test.store.suspendedCount() > 0, test.clock.sleeperCount > 0 { test.clock.advance(by: .seconds(1)) }
        await Task.yield()
      }
    }()
    do {
      try await work()
      isDone.withLock { $0 = true }
      await passing
    } catch {
      isDone.withLock { $0 = true }
      await passing
      throw error
    }
  }

  @Test(.timeLimit(.minutes(5)), arguments: Scenario.allCases)
  func `every operation may fail or stall`(scenario: Scenario) async throws {
    let (test, origin, body) = try await prepare(scenario)
    let before = test.store.operationCount
    try await run(scenario, test, origin, body)
    try await waitUntil { test.cache.state.withLock({ $0.settling.isEmpty }) }
    let operationCount = test.store.operationCount - before
    #expect(operationCount >= 1)
    for fault in Fault.allCases {
      for number in 1...operationCount {
        let (test, origin, body) = try await prepare(scenario)
        test.store.schedule(fault.fault, number: number)
        try await withPassingTime(test) {
          try await run(scenario, test, origin, body)
          // Later requests get the right response as well, from the store or not.
          if scenario == .unsafe {
            let count = origin.count
            try await run(.miss, test, origin, body)
            #expect(origin.count > count, "\(fault) \(number): the response was invalidated")
          }
          try await run(scenario == .unsafe ? .miss : scenario, test, origin, body)
        }
        test.store.resume()
      }
    }
  }

  @Test(arguments: [Scenario.miss, .hit, .validation, .range, .completion, .unsafe], Fault.allCases)
  func `a store that never works`(scenario: Scenario, fault: Fault) async throws {
    let (test, origin, body) = try await prepare(scenario)
    test.store.schedule(fault.fault, probability: 1)
    let count = origin.count
    try await withPassingTime(test) {
      for _ in 0..<2 { try await run(scenario, test, origin, body) }
    }
    #expect(origin.count == count + 2)
    #expect(test.cache.statistics().storeFailureCount > 0)
    test.store.clearFaults()
    test.store.resume()
  }

  @Test func `a store that stalls delays one request only`() async throws {
    let (test, origin, body) = try await prepare(.hit)
    test.store.schedule(.suspension(), on: .entries)
    try await withPassingTime(test) { try await run(.hit, test, origin, body) }
    let now = test.clock.now
    test.store.schedule(.suspension(), probability: 1)
    try await run(.hit, test, origin, body)
    #expect(test.clock.now == now)
    #expect(test.cache.statistics().storeTimeoutCount == 1)
    test.store.clearFaults()
    test.store.resume()
  }

  @Test func `a closed store`() async throws {
    let (test, origin, body) = try await prepare(.hit)
    try await test.store.close()
    for _ in 0..<2 { try await run(.hit, test, origin, body) }
    #expect(origin.count == 3)
  }

  @Test(arguments: [Scenario.hit, .largeHit, .validation, .range, .completion])
  func `every entry may be damaged`(scenario: Scenario) async throws {
    let (test, _, _) = try await prepare(scenario)
    let keys = try await test.store.keys(in: .all, limit: .max, order: .ascending)
    for key in keys {
      for damage in 0..<4 {
        let (test, origin, body) = try await prepare(scenario)
        // The keys of bodies are random, so take the one at the same place.
        let index = try #require(keys.firstIndex(of: key))
        let all = try await test.store.keys(in: .all, limit: .max, order: .ascending)
        try #require(all.count == keys.count)
        let value = try #require(try await test.store.value(forKey: all[index]))
        switch damage {
        case 0: try await test.store.removeValue(forKey: all[index])
        case 1: try await test.store.setValue([], forKey: all[index])
        case 2: try await test.store.setValue(Array(value.dropLast()), forKey: all[index])
        default: try await test.store.setValue(Array(repeating: 0xFF, count: value.count + 1), forKey: all[index])
        }
        // A large body may have been read in part when the damage is found. The next request finds it gone.
        if scenario == .largeHit {
          do { try await run(scenario, test, origin, body) } catch let error as HTTPCacheError {
            #expect(error.code == .unreadableBody)
          }
        }
        for _ in 0..<2 { try await run(scenario, test, origin, body) }
      }
    }
  }

  @Test func `errors contain nothing of the request`() async throws {
    let (test, _, _) = try await prepare(.hit)
    test.store.schedule(.error(.ioFailed), probability: 1)
    let error = await #expect(throws: StoreError.self) { try await test.cache.invalidate("https://example.com/secret") }
    #expect(error.map { "\($0)".contains("secret") } == false)
    for error in [
      HTTPCacheError.incompleteBody, .unreadableBody, HTTPCacheError(.userInformation), HTTPCacheError(.invalid),
    ] {
      #expect(!"\(error)".contains("example"))
    }
  }
}
#endif
