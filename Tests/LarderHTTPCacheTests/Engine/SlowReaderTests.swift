#if HTTPCache
import Foundation
import HTTPTypes
import Larder
import LarderTesting
import TestSupport
import Testing

@testable import LarderHTTPCache

/// Readers that are slow, or absent, need bounded memory and delay no other reader.
@Suite struct SlowReaderTests {
  private static let chunk = 65_536
  private static let chunkCount = 160
  private static let body = (0..<chunkCount).reduce(into: Data()) {
    $0.append(Data(repeating: UInt8(truncatingIfNeeded: $1), count: chunk))
  }

  /// An origin of 10 MiB that counts the chunks that were pulled.
  private func origin(_ pulled: Atomics, cacheControl: String) -> Origin {
    Origin { _, _ in
      HTTPForwardedResponse(
        head: head(.ok, [.cacheControl: cacheControl]),
        body: ChunkedBody { index in
          guard index < Self.chunkCount else { return nil }
          pulled.set(index + 1)
          return Array(repeating: UInt8(truncatingIfNeeded: index), count: Self.chunk)
        })
    }
  }

  private func expectBody(_ body: HTTPCacheBody) async throws {
    var position = 0
    for try await chunk in body {
      let isRight =
        position + chunk.count <= Self.body.count && Self.body[position..<position + chunk.count] == Data(chunk)
      guard isRight else {
        Issue.record("wrong bytes from \(position) on")
        return
      }
      position += chunk.count
    }
    #expect(position == Self.body.count)
  }

  private func configuration() -> HTTPCacheConfiguration {
    var configuration = HTTPCacheConfiguration.private
    configuration.capacity = 1_000_000_000
    return configuration
  }

  @Test func `eight chunks are read together`() async throws {
    let store = CountingStore(base: MemoryStore())
    let cache = try await HTTPCache(store, configuration: configuration())
    let origin = origin(Atomics(), cacheControl: "max-age=60")
    try await expectBody(try await cache.response(to: request()) { try await origin($0) }.body)
    let before = store.chunkReads.value
    let response = try await cache.response(to: request()) { try await origin($0) }
    var iterator = response.body.makeAsyncIterator()
    var counts: [Int] = []
    for _ in 0..<10 {
      _ = try await iterator.next()
      counts.append(store.chunkReads.value - before)
    }
    // The first one is read before the head is returned.
    #expect(counts == [1, 9, 9, 9, 9, 9, 9, 9, 9, 17])
    #expect(origin.count == 1)
  }

  @Test func `the origin waits for the reader of a body that is not stored`() async throws {
    let test = try await CacheUnderTest(configuration())
    let pulled = Atomics()
    let origin = origin(pulled, cacheControl: "no-store")
    let response = try await test.cache.response(to: request()) { try await origin($0) }
    for _ in 0..<20 { try await Task.sleep(for: .milliseconds(1)) }
    #expect(pulled.value <= (2 << 20) / Self.chunk + 1)
    try await expectBody(response.body)
  }

  @Test func `a reader that does not read holds nobody up`() async throws {
    let test = try await CacheUnderTest(configuration())
    let pulled = Atomics()
    let origin = origin(pulled, cacheControl: "max-age=60")
    let absent = try await test.cache.response(to: request()) { try await origin($0) }
    let fast = try await test.cache.response(to: request()) { try await origin($0) }
    try await expectBody(fast.body)
    #expect(pulled.value == Self.chunkCount)
    try await waitUntil { test.cache.statistics().storedCount >= 1 }
    #expect(absent.cacheStatus.isStored)
    try await expectBody(absent.body)
    #expect(origin.count == 1)
  }

  @Test func `a body that is too large is passed on`() async throws {
    var configuration = configuration()
    configuration.largestBody = 4 << 20
    let test = try await CacheUnderTest(configuration)
    let origin = origin(Atomics(), cacheControl: "max-age=60")
    for _ in 0..<2 {
      let response = try await test.cache.response(to: request()) { try await origin($0) }
      // This reader begins when the storing has stopped, and reads what the store has first.
      for _ in 0..<20 { try await Task.sleep(for: .milliseconds(1)) }
      try await expectBody(response.body)
    }
    #expect(origin.count == 2)
    #expect(test.cache.statistics().storedCount == 0)
    #expect(test.cache.statistics().notStoredCounts == ["tooLarge": 2])
    while try await test.cache.storage.usage().bytes > 2_000 { try await test.cache.storage.sweepAll(test.clock) }
  }

  @Test func `a body that is announced as too large is not begun`() async throws {
    var configuration = configuration()
    configuration.largestBody = 3
    let test = try await CacheUnderTest(configuration)
    let origin = Origin(head(.ok, [.cacheControl: "max-age=60", .contentLength: "4"]))
    let before = test.store.operationCount
    let response = try await test.get(from: origin)
    #expect(response.status.detail == "not-stored-tooLarge")
    #expect(test.store.operationCount - before == 2, "one look into the store, and the counter of invalidations")
  }

  @Test func `a store that is too slow is given up`() async throws {
    let test = try await CacheUnderTest(configuration())
    let origin = origin(Atomics(), cacheControl: "max-age=60")
    test.store.schedule(.suspension(), on: .update)
    let response = try await test.cache.response(to: request()) { try await origin($0) }
    try await test.store.waitForSuspended()
    let reading = Task { try await expectBody(response.body) }
    // The call of the store and the fetch have a time limit each.
    try await test.clock.waitForSleepers(2)
    test.clock.advance(by: .seconds(1))
    try await reading.value
    #expect(test.cache.statistics().storedCount == 0)
    test.store.resume()
  }

  /// A way in which a body stops being stored while several callers read it.
  enum End: CaseIterable { case tooLarge, noRoom, failedStore, slowStore }

  @Test(arguments: End.allCases) func `a paused reader of a body that is no longer stored`(end: End) async throws {
    var configuration = configuration()
    switch end {
    case .tooLarge: configuration.largestBody = 4 << 20
    case .noRoom: (configuration.capacity, configuration.largestBody) = (3 << 20, 100 << 20)
    case .failedStore, .slowStore: break
    }
    let test = try await CacheUnderTest(configuration)
    let gate = Gate()
    let origin = Origin { _, number in
      HTTPForwardedResponse(
        head: head(.ok, [.cacheControl: "max-age=60"]),
        body: ChunkedBody { index in
          if number == 1, index == 0 { try await gate.wait() }
          return index < Self.chunkCount
            ? Array(repeating: UInt8(truncatingIfNeeded: index), count: Self.chunk) : nil
        })
    }
    let paused = try await test.cache.response(to: request()) { try await origin($0) }
    let fast = try await test.cache.response(to: request()) { try await origin($0) }
    #expect(fast.cacheStatus.isCollapsed)
    switch end {
    case .tooLarge, .noRoom: break
    case .failedStore: test.store.schedule(.error(.ioFailed), on: .update, probability: 1)
    case .slowStore: test.store.schedule(.suspension(), on: .update, probability: 1)
    }
    let isDone = Locked(false)
    let reading = Task {
      defer { isDone.withLock { $0 = true } }
      try await expectBody(fast.body)
    }
    gate.open()
    // Storing ends by itself, and not because a chunk takes too long.
    if end == .tooLarge { try await waitUntil { test.cache.statistics().notStoredCounts["tooLarge"] == 1 } }
    try await advance(test.clock, by: .milliseconds(100)) { isDone.withLock { $0 } }
    try await reading.value
    let error = await #expect(throws: HTTPCacheError.self) { try await paused.body.bytes(upTo: 100 << 20) }
    #expect(error?.code == .readerTooSlow)
    #expect(origin.count == 1)
    test.store.clearFaults()
    test.store.resume()
    // Each later caller has a fetch of its own for a while.
    guard end == .tooLarge else { return }
    var callers: [HTTPCacheResponse] = []
    for _ in 0..<2 { callers.append(try await test.cache.response(to: request()) { try await origin($0) }) }
    #expect(callers.allSatisfy { !$0.cacheStatus.isCollapsed })
    for caller in callers { try await expectBody(caller.body) }
  }

  @Test func `a paused reader alone is not hurried`() async throws {
    let test = try await CacheUnderTest(configuration())
    let origin = origin(Atomics(), cacheControl: "no-store")
    let response = try await test.cache.response(to: request()) { try await origin($0) }
    for _ in 0..<20 {
      test.clock.advance(by: .seconds(100))
      try await Task.sleep(for: .milliseconds(1))
    }
    try await expectBody(response.body)
  }

  @Test func `a body is read by one task`() async throws {
    let test = try await CacheUnderTest(configuration())
    let gate = Gate()
    let origin = Origin { _, _ in
      HTTPForwardedResponse(
        head: head(),
        body: ChunkedBody { index in
          try await gate.wait()
          return index == 0 ? [1] : nil
        })
    }
    let response = try await test.cache.response(to: request()) { try await origin($0) }
    let readers = (0..<2).map { _ in Task { try await response.body.bytes(upTo: 10) } }
    // One of them gets the error while the other one waits for the origin.
    var results = AsyncStream { continuation in
      for reader in readers { Task { continuation.yield(await reader.result) } }
    }.makeAsyncIterator()
    let refused = await results.next()
    let error = #expect(throws: HTTPCacheError.self) { try refused?.get() }
    #expect(error?.code == .bodyInUse)
    gate.open()
    #expect(try await results.next()?.get() == [1])
    await #expect(throws: HTTPCacheError.self) {
      let response = try await test.cache.response(to: request()) { try await origin($0) }
      _ = try await response.body.bytes(upTo: 0)
    }
  }
}

/// A store that counts the reads of whole chunks.
private struct CountingStore: PassingStore {
  typealias Value = [UInt8]

  let base: MemoryStore<[UInt8]>
  let chunkReads = Atomics()

  func value(forKey key: StoreKey) async throws -> [UInt8]? {
    let value = try base.value(forKey: key)
    if value?.count == StorageLayout.chunkLength { chunkReads.set(chunkReads.value + 1) }
    return value
  }
}

/// A number that several tasks set and read.
final class Atomics: Sendable {
  private let number = Locked(0)
  var value: Int { number.withLock { $0 } }
  func set(_ value: Int) { number.withLock { $0 = value } }
}

extension ResponseStorage {
  /// Sweeps after the retention of retired bodies.
  fileprivate func sweepAll(_ clock: ManualClock) async throws {
    clock.advance(by: .seconds(61))
    try await sweep()
  }
}
#endif
