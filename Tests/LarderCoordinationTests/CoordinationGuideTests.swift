import Larder
import LarderCoordination
import LarderTesting
import TestSupport
import Testing

/// The code of the guide, and of the landing page.
@Suite struct CoordinationGuideTests {
  private struct Receipt: Codable, Sendable, Equatable {
    var amount: Int
  }

  private let bytes = MemoryStore<[UInt8]>()

  private var counts: TypedView<MemoryStore<[UInt8]>, Int> {
    bytes.typed(Int.self, prefix: "counts/", codec: .json())
  }

  @Test func `a lock`() async throws {
    func download() async throws -> [UInt8] { [1] }
    let rows = [1, 2, 3]
    let counts = counts

    // snippet.take-a-lock-2
    let locks = try StoreLock(bytes, prefix: "locks/")

    try await locks.withLock("import") { token in
      let report = try await download()
      try await locks.update(["report"], requiring: token) { slots in slots[0] = report }
    }
    // snippet.end

    // snippet.take-a-lock
    try await locks.withLock("import") { token in
      try await bytes.transaction { tx in
        try await tx.require(token)
        try await tx.setValue(rows.count, forKey: "rows", in: counts)
        return .commit(())
      }
    }
    // snippet.end

    #expect(try bytes.value(forKey: "report") == [1])
    #expect(try await counts.value(forKey: "rows") == 3)
  }

  @Test func `a leader`() async throws {
    let locks = try StoreLock(bytes, prefix: "locks/")
    let minutes = AsyncStream<[UInt8]> { stream in
      for minute: UInt8 in 1...3 { stream.yield([minute]) }
      stream.finish()
    }

    // snippet.elect-a-leader
    let election = LeaderElection(locks, name: "scheduler")

    try await election.run { token in
      for try await minute in minutes {
        try await locks.update(["planned"], requiring: token) { slots in slots[0] = minute }
      }
    }
    // snippet.end

    #expect(try bytes.value(forKey: "planned") == [3])
  }

  @Test func `a rate`() async throws {
    // snippet.limit-a-rate
    let limiter = try RateLimiter(bytes, prefix: "limits/", limit: RateLimit(100, per: .seconds(60), burst: 20))

    func handle(_ client: String) async throws -> (status: Int, fields: [(name: String, value: String)]) {
      let decision = try await limiter.take(forKey: StoreKey(client))
      return (decision.isGranted ? 200 : 429, limiter.fields(of: decision))
    }
    // snippet.end

    let answer = try await handle("192.0.2.1")
    #expect(answer.status == 200)
    #expect(answer.fields.map(\.name) == ["RateLimit-Policy", "RateLimit"])
    #expect(answer.fields.first?.value == "\"default\";q=20;w=12")
  }

  @Test func `a request`() async throws {
    let counts = counts

    // snippet.perform-a-request-once
    let requests = try IdempotencyKeys(bytes, prefix: "requests/", codec: .json(Receipt.self))

    func pay(_ amount: Int, key: String) async throws -> Receipt {
      try await bytes.transaction { tx in
        let receipt = try await tx.perform(StoreKey(key), fingerprint: "\(amount)".utf8, with: requests) {
          try await tx.update("total", in: counts) { $0 = ($0 ?? 0) + amount }
          return Receipt(amount: amount)
        }
        return .commit(receipt)
      }
    }
    // snippet.end

    for _ in 0..<2 { #expect(try await pay(5, key: "7f3a") == Receipt(amount: 5)) }
    await expectStoreError(.otherRequest) { try await pay(6, key: "7f3a") }
    #expect(try await counts.value(forKey: "total") == 5)
  }
}
