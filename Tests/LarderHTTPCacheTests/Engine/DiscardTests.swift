#if HTTPCache
import HTTPTypes
import Larder
import LarderTesting
import TestSupport
import Testing

@testable import LarderHTTPCache

/// Bodies that are read so that they are stored.
@Suite(.timeLimit(.minutes(5))) struct DiscardTests {
  private struct Broken: Error {}

  /// Discards the body of a response to a request.
  private func discard(
    _ test: CacheUnderTest, upTo limit: Int = 65_536, within time: Duration? = nil,
    _ next: @escaping @Sendable (_ index: Int) async throws -> [UInt8]?
  ) async throws {
    let response = try await test.cache.response(to: request()) { _ in
      HTTPForwardedResponse(head: head(.found, [.cacheControl: "max-age=60"]), body: ChunkedBody(next: next))
    }
    try await response.body.discard(upTo: limit, within: time)
  }

  private func isStored(_ test: CacheUnderTest) async throws -> Bool {
    try await waitUntil { test.cache.state.withLock { $0.settling.isEmpty && $0.flights.count == 0 } }
    return try await test.get(policy: .cacheOnly, from: Origin(head())).head.status == .found
  }

  @Test(arguments: [0, 1, 100, 65_536]) func `a small body is stored`(count: Int) async throws {
    let test = try await CacheUnderTest()
    try await discard(test) { $0 == 0 && count > 0 ? [UInt8](repeating: 1, count: count) : nil }
    #expect(try await isStored(test))
  }

  @Test func `a large or endless body is not`() async throws {
    let test = try await CacheUnderTest()
    try await discard(test) { _ in [UInt8](repeating: 1, count: 10_000) }
    #expect(try await !isStored(test))
    try await discard(test, upTo: 100) { $0 < 2 ? [UInt8](repeating: 1, count: 100) : nil }
    // Both chunks may have arrived before the reader left.
    _ = try await isStored(test)
  }

  @Test func `a body that fails is no error`() async throws {
    let test = try await CacheUnderTest()
    try await discard(test) { index in
      if index == 1 { throw Broken() }
      return [1]
    }
    #expect(try await !isStored(test))
  }

  @Test func `a body that hangs is given up`() async throws {
    let test = try await CacheUnderTest()
    let hang: @Sendable (Int) async throws -> [UInt8]? = { index in
      if index == 1 { try await Task.sleep(for: .seconds(3_600)) }
      return [1]
    }
    try await discard(test, within: .milliseconds(20), hang)
    #expect(try await !isStored(test))
    let task = Task { try await discard(test, hang) }
    try await Task.sleep(for: .milliseconds(20))
    task.cancel()
    await #expect(throws: CancellationError.self) { try await task.value }
    #expect(try await !isStored(test))
  }
}
#endif
