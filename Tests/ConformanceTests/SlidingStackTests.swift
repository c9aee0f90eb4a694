#if Compression && Crypto && LMDB && Metrics && SQLite
import Foundation
import Larder
import LarderBatching
import LarderCBOR
import LarderCache
import LarderExpiry
import LarderLMDB
import LarderTesting
import TestSupport
import Testing

/// Sliding deadlines over the stack that the README recommends.
@Suite(.limitedParallelism) struct SlidingStackTests {
  /// A store that counts the calls that reach the bottom of the stack.
  private final class CountingStore<Base: DataStore>: PassingStore {
    typealias Value = Base.Value

    let base: Base
    private let updates = Locked(0)

    init(_ base: Base) {
      self.base = base
    }

    var updateCount: Int { updates.withLock { $0 } }

    func update<Result: Sendable>(
      deciding keys: [StoreKey], _ body: @escaping @Sendable (inout UpdateSlots<Value>) -> UpdateDecision<Result>
    ) async throws -> Result {
      updates.withLock { $0 += 1 }
      return try await base.update(deciding: keys, body)
    }
  }

  private func read(_ keys: [StoreKey], from store: some DataStore<Int>) async throws {
    try await withThrowingTaskGroup(of: Int?.self) { group in
      for key in keys { group.addTask { try await store.value(forKey: key) } }
      for try await value in group { #expect(value == 1) }
    }
  }

  @Test func `many sessions share few commits and a hot one is renewed once`() async throws {
    let location = try ConformanceLocation()
    let clock = ManualClock()
    let base = CountingStore(
      try await LMDBStore(
        path: location.path("sessions"), codec: .cbor(Int.self).expiring(), durability: .buffered))
    let store = base.batched().cached().expiring(.sliding(.seconds(1800))) { clock.date }
    let keys = (0..<1000).map { StoreKey("session/\($0)") }
    try await store.apply(ChangeBatch(keys.map { .set($0, 1) }))
    clock.advance(by: .seconds(200))
    try await read(keys, from: store)
    try await store.synchronize()
    #expect(base.updateCount <= 20)
    #expect(store.statistics().writtenRenewalCount == 1000)
    #expect(try await base.value(forKey: keys[7])?.deadline?.date == clock.date + 1800)

    clock.advance(by: .seconds(200))
    let before = base.updateCount
    try await read(Array(repeating: keys[7], count: 2000), from: store)
    try await store.synchronize()
    #expect(base.updateCount - before <= 2)
    #expect(store.statistics().writtenRenewalCount == 1001)
    #expect(store.statistics().failureCount == 0)
    try await store.close()
    try location.remove()
  }
}
#endif
