#if HTTPCache
import HTTPCachingRules
import Larder
import LarderTesting
import TestSupport
import Testing

@testable import LarderHTTPCache

/// The verification of a cache that another program changes at the worst moment.
///
/// The tests of the tool have the findings in a cache at rest.
@Suite struct VerificationTests {
  private let clock = ManualClock()
  private let store = DisturbedStore()

  private func open() async throws -> ResponseStorage<DisturbedStore> {
    var options = smallOptions(clock, capacity: 4_000_000)
    options.retention = .seconds(60)
    return try await ResponseStorage(store, options: options)
  }

  private func verify() async throws -> HTTPCacheInspector.Verification {
    try await HTTPCacheInspector(store, configuration: .shared).verify()
  }

  @Test func `a response that is stored after the walk is no damage`() async throws {
    let storage = try await open()
    try await storage.fetch("https://a.example/1", version: 1, length: 10)
    store.disturb(.count) { try await storage.fetch("https://a.example/2", version: 2, length: 10) }
    let verification = try await verify()
    #expect(verification.report.findings == [] && verification.isComplete)
    // Two responses with their places and chunks: the second walk saw both.
    #expect(verification.report.entryCount == 6)
  }

  @Test func `a chunk for a chunk is a disturbance`() async throws {
    let storage = try await open()
    let retired = try await storage.fetch(version: 1, length: 3 * StorageLayout.chunkLength)
    try await storage.remove([retired])
    clock.advance(by: .seconds(61))
    // With the length, another chunk reserves nothing.
    let writer = try storage.makeWriter(expectedLength: Int64(17 * StorageLayout.chunkLength))
    // The first batch, after which each chunk is stored by itself.
    try await writer.append(TestBody.bytes(2, length: 16 * StorageLayout.chunkLength))
    let chunk = [UInt8](repeating: 0, count: StorageLayout.chunkLength)
    let totals = try await storage.totals(for: .verify)
    // The walk sees a chunk more than the totals have, before and after.
    store.disturb(.scan(storage.layout.bodies)) {
      try await writer.append(chunk)
    } after: {
      let entry = try #require(
        try await store.entries(in: storage.layout.retired, limit: 1, order: .ascending).first)
      let body = try #require(storage.layout.retired(entry.key)?.body)
      let footprint = try #require(storage.layout.footprint(ofRetired: entry.value))
      let removed = try await store.keys(in: storage.layout.chunks(of: body), limit: 1, order: .ascending)
      _ = try await storage.committing { commit in
        commit.free(removed, of: entry.key, entry.value, footprint: footprint, isRest: false)
      }
    }
    let verification = try await verify()
    #expect(try await storage.totals(for: .verify) == totals)
    #expect(verification.report.findings == [] && verification.isComplete)
    try await writer.abandon()
  }
}

/// A store in memory that another program changes before and after one call.
private final class DisturbedStore: PassingStore {
  typealias Value = [UInt8]
  typealias Step = @Sendable () async throws -> Void

  /// A call that is disturbed.
  enum Call: Equatable {
    case count
    case scan(KeyRange)
  }

  let base = MemoryStore<[UInt8]>()
  private let disturbance = Locked<(call: Call, before: Step, after: Step)?>(nil)

  /// Sets what happens before and after the next call of a kind.
  func disturb(_ call: Call, before: @escaping Step, after: @escaping Step = {}) {
    disturbance.withLock { $0 = (call, before, after) }
  }

  private func disturbing<Result>(_ call: Call, _ body: () throws -> Result) async throws -> Result {
    let steps = disturbance.withLock { disturbance -> (before: Step, after: Step)? in
      guard let (expected, before, after) = disturbance, expected == call else { return nil }
      disturbance = nil
      return (before, after)
    }
    try await steps?.before()
    let result = try body()
    try await steps?.after()
    return result
  }

  func count(in range: KeyRange) async throws -> Int {
    try await disturbing(.count) { try base.count(in: range) }
  }

  func entries(in range: KeyRange, limit: Int, order: ScanOrder) async throws -> [StoreEntry<[UInt8]>] {
    try await disturbing(.scan(range)) { try base.entries(in: range, limit: limit, order: order) }
  }
}
#endif
