#if HTTPCache
import HTTPTypes
import Larder
import LarderTesting
import TestSupport
import Testing

@testable import LarderHTTPCache

/// Invalidations that the store fails to carry out.
@Suite struct FailedInvalidationTests {
  private let origin = Origin(head(.ok, [.cacheControl: "max-age=86400"]))

  /// A cache with stored responses, and a store that fails to write.
  private func test(_ count: Int) async throws -> CacheUnderTest {
    let test = try await CacheUnderTest()
    for index in 0..<count { _ = try await test.get("/page/\(index)", from: origin) }
    try await waitUntil { test.cache.statistics().storedCount == count }
    try await waitUntil { test.cache.state.withLock { $0.settling.isEmpty } }
    for operation in [StoreOperation.update, .apply] {
      test.store.schedule(.error(.full), on: operation, probability: 1)
    }
    return test
  }

  private func pendingCount(_ test: CacheUnderTest) -> Int {
    test.cache.state.withLock { $0.pending.entries.count }
  }

  private func loggedCount(_ test: CacheUnderTest) async throws -> Int {
    try await Int(test.cache.storage.beginFetch().invalidations)
  }

  @Test func `a failed invalidation affects its URLs only`() async throws {
    let test = try await test(5)
    for _ in 0..<3 { _ = try await test.get("/page/0", method: .post, from: origin) }
    #expect(pendingCount(test) == 1, "the same one is repeated once")
    for index in 1..<5 { #expect(try await test.get("/page/\(index)", from: origin).status.isHit) }
    #expect(try await !test.get("/page/0", from: origin).status.isHit)
    test.store.clearFaults()
    // A request for any URL begins to repeat it.
    try await waitUntil {
      test.clock.advance(by: .seconds(1))
      _ = try await test.get("/page/1", from: origin)
      return pendingCount(test) == 0
    }
    _ = try await test.get("/page/0", from: origin)
    #expect(try await test.get("/page/0", from: origin).status.isHit)
  }

  @Test func `one worker repeats each invalidation once`() async throws {
    let test = try await test(20)
    for index in 0..<100 { _ = try await test.get("/form/\(index)", method: .post, from: origin) }
    #expect(pendingCount(test) == 100)
    test.store.clearFaults()
    test.clock.advance(by: .seconds(2))
    // The worker hangs. No request waits for it.
    test.store.schedule(.suspension(), on: .update, number: 1)
    let callers = (0..<20).map { index in Task { try await test.get("/page/\(index)", from: origin).status } }
    for caller in callers { #expect(try await caller.value.isHit) }
    try await test.store.waitForSuspended()
    #expect(test.store.suspendedCount() == 1)
    test.store.resume()
    try await waitUntil { pendingCount(test) == 0 }
    #expect(try await loggedCount(test) == 100)
  }

  @Test func `a store that fails is left alone for a second`() async throws {
    let test = try await test(1)
    _ = try await test.get("/form", method: .post, from: origin)
    _ = try await test.get("/page/0", from: origin)
    try await waitUntil { test.cache.statistics().storeFailureCount >= 2 }
    try await waitUntil { test.cache.state.withLock { $0.pending.entries.allSatisfy(\.hasFailed) } }
    let count = test.cache.statistics().storeFailureCount
    for _ in 0..<100 { _ = try await test.get("/page/0", from: origin) }
    #expect(test.cache.statistics().storeFailureCount == count)
    test.clock.advance(by: .seconds(1))
    _ = try await test.get("/page/0", from: origin)
    try await waitUntil { test.cache.statistics().storeFailureCount == count + 1 }
  }

  @Test func `a cancelled request leaves nothing pending`() async throws {
    let test = try await test(1)
    test.store.clearFaults()
    test.store.schedule(.suspension(), on: .update, number: 1)
    let caller = Task { try await test.get("/page/0", method: .post, from: origin).body }
    try await test.store.waitForSuspended()
    caller.cancel()
    await #expect(throws: CancellationError.self) { try await caller.value }
    #expect(pendingCount(test) == 1)
    test.store.resume()
    try await waitUntil { pendingCount(test) == 0 }
    #expect(try await loggedCount(test) == 1)
    #expect(test.cache.statistics().storeFailureCount == 0)
    #expect(try await !test.get("/page/0", from: origin).status.isHit)
  }

  @Test func `a cancelled call of invalidate changes nothing`() async throws {
    let test = try await test(1)
    test.store.clearFaults()
    let caller = Task {
      while !Task.isCancelled { await Task.yield() }
      try await test.cache.removeAll()
    }
    caller.cancel()
    await #expect(throws: CancellationError.self) { try await caller.value }
    #expect(try await test.get("/page/0", from: origin).status.isHit)
  }

  @Test func `a sweep does not depend on invalidations`() async throws {
    let test = try await test(1)
    _ = try await test.get("/page/0", method: .post, from: origin)
    let running = Task { await test.cache.run() }
    try await test.clock.waitForSleepers(1)
    test.store.schedule(.suspension(), on: .entries)
    test.clock.advance(by: .seconds(15))
    try await test.store.waitForSuspended()
    running.cancel()
    test.store.resume()
    await running.value
  }
}
#endif
