import Larder
import TestSupport
import Testing

/// The code of the article "Limits".
@Suite struct LimitsGuideTests {
  private enum Answer { case ok, tooManyRequests }

  private let bytes = MemoryStore<[UInt8]>()

  private func send(_ message: String) async throws {}

  private func respond() async throws -> Answer { .ok }

  private func answer(_ limiter: StoreLimiter) async throws -> Answer {
    // snippet.limits
    guard let permit = try await limiter.tryAcquire() else { return .tooManyRequests }
    return try await permit.holding { try await respond() }
    // snippet.end
  }

  @Test func `the code of the article works`() async throws {
    let message = "Hello"
    // snippet.limits-2
    let limiter = try StoreLimiter(
      bytes, key: "limits/mail",
      configuration: LimiterConfiguration(concurrency: 5, rate: RateLimit(100, per: .seconds(60), burst: 10)))

    try await limiter.withPermit {
      try await send(message)
    }
    // snippet.end

    var count = 1
    while try await answer(limiter) == .ok { count += 1 }
    #expect(count >= 10)
  }
}
