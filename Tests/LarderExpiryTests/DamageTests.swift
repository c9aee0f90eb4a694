import Foundation
import Larder
import LarderExpiry
import LarderTesting
import TestSupport
import Testing

/// The effect of an undecodable entry on other entries.
@Suite struct DamageTests {
  private let clock = ManualClock()
  private let bytes = MemoryStore<[UInt8]>()

  /// A store with the numbers 0 to 9.
  ///
  /// The odd ones have expired, and some are damaged.
  private func store(
    damaged: Set<Int>
  ) async throws -> ExpiringStore<TypedView<MemoryStore<[UInt8]>, Expiring<Int>>, Int> {
    let clock = clock
    let store = bytes.typed(Expiring<Int>.self, codec: .json(Int.self).expiring()).expiring { clock.date }
    for number in 0..<10 {
      try await store.setValue(
        number, forKey: StoreKey(integer: number),
        timeToLive: number.isMultiple(of: 2) ? .never : .after(.seconds(1)))
    }
    for number in damaged { try bytes.apply([.set(StoreKey(integer: number), [0xFF])]) }
    clock.advance(by: .seconds(1))
    return store
  }

  @Test func `damage after a page does not affect it`() async throws {
    let store = try await store(damaged: [5])
    #expect(try await store.entries(in: .all, limit: 3).map(\.value) == [0, 2, 4])
    let behind = try await store.entries(in: .all, limit: 2, order: .descending)
    #expect(behind.map(\.value) == [8, 6])
    for order in ScanOrder.allCases {
      let error = await expectStoreError(.corrupted) { try await store.entries(in: .all, limit: 4, order: order) }
      #expect(error?.key == StoreKey(integer: 5))
      #expect(error?.operation == .entries)
    }
  }

  /// Only a read of more than the caller asked for is worth a second one.
  @Test func `damage in a page is met once`() async throws {
    let clock = clock
    _ = try await store(damaged: [2])
    let watched = WatchedStore(bytes.typed(Expiring<Int>.self, codec: .json(Int.self).expiring()))
    let store = watched.expiring { clock.date }
    await expectStoreError(.corrupted) { try await store.entries(in: .all, limit: 3) }
    #expect(watched.calls == [.init(.entries, 3)])
  }

  @Test func `counting and listing name the damaged key`() async throws {
    let store = try await store(damaged: [5])
    let error = await expectStoreError(.corrupted) { try await store.count() }
    #expect(error?.key == StoreKey(integer: 5))
    #expect(error?.operation == .count)
    #expect(await expectStoreError(.corrupted) { try await store.keys(in: .all, limit: .max) }?.operation == .keys)
    await expectStoreError(.corrupted) { try await store.value(forKey: StoreKey(integer: 5)) }
    await expectStoreError(.corrupted) { try await store.remainingTime(forKey: StoreKey(integer: 5)) }
    #expect(try await store.count(in: ..<StoreKey(integer: 5)) == 3)
  }

  @Test func `damage is never purged and protects nothing`() async throws {
    for damaged in [[5], [0], [9], [4, 5, 6], [0, 9], Set(0..<10)] as [Set<Int>] {
      let store = try await store(damaged: damaged)
      let expired = Set([1, 3, 5, 7, 9]).subtracting(damaged)
      #expect(try await store.purgeExpired() == expired.count)
      let left = Set(0..<10).subtracting(expired).sorted().map(Int64.init)
      #expect(try bytes.keys(in: .all, limit: .max, order: .ascending).compactMap(\.integer) == left)
      #expect(try await store.purgeExpired() == 0)
      try bytes.apply([.removeAll(.all)])
    }
  }

  /// A store that does not know the keys of one of its parts, like a compressed file with a damaged block.
  private struct GapStore<Value: Sendable>: PassingStore {
    struct Gap: UnreadableKeysError, CustomStringConvertible {
      let keys: KeyRange
      var description: String { "a gap" }
    }

    let base: MemoryStore<Value>
    let gap: KeyRange

    func entries(in range: KeyRange, limit: Int, order: ScanOrder) async throws -> [StoreEntry<Value>] {
      let entries = try base.entries(in: range, limit: limit, order: order)
      guard entries.contains(where: { gap.contains($0.key) }) else { return entries }
      throw StoreError(
        .corrupted, during: .entries, key: gap.lowerBound, message: "damaged", underlying: Gap(keys: gap))
    }
  }

  @Test(arguments: [10..<20, 0..<200, 100..<300, 290..<300])
  func `purges continue after unknown keys`(lost: Range<Int>) async throws {
    let clock = clock
    let memory = MemoryStore<Expiring<Int>>()
    let past = ExpiryDeadline(.distantPast)
    try memory.apply(ChangeBatch((0..<300).map { .set(StoreKey(integer: $0), Expiring($0, deadline: past)) }))
    let gap = StoreKey(integer: lost.lowerBound)..<StoreKey(integer: lost.upperBound)
    let store = GapStore(base: memory, gap: gap).expiring { clock.date }
    // The purges by writes start in the gap.
    for number in 300..<400 { try await store.setValue(number, forKey: StoreKey(integer: number)) }
    for _ in 0..<100 { try await store.setValue(0, forKey: StoreKey(integer: 400)) }
    #expect(store.statistics().failureCount == 0)
    #expect(try memory.count(in: .all) == 101 + lost.count)
    #expect(try await store.purgeExpired() == 0)
    for order in ScanOrder.allCases {
      let page = try? await store.entries(in: .all, limit: 3, order: order)
      #expect(page?.count == (order == .descending ? 3 : nil))
    }
  }

  /// The gap ends in the view, starts in it, or lies within it, and the keys of the view are shorter.
  @Test(arguments: ["s/0"..<"s/3", "r"..<"s/3", "s/3"..<"s/4", "s/7"..<"t", "s/7"..., "r"..<"t"] as [KeyRange])
  func `purges continue after unknown keys of a view`(gap: KeyRange) async throws {
    let clock = clock
    let view = GapStore(base: bytes, gap: gap).typed(
      Expiring<Int>.self, prefix: "s/", codec: .json(Int.self).expiring())
    let store = view.expiring(.after(.seconds(1)), purgesOnWrite: false) { clock.date }
    for number in 0..<10 {
      try await store.setValue(number, forKey: "\(number)")
      for prefix in ["r/", "t/"] { try bytes.apply([.set("\(prefix)\(number)", [0xFF])]) }
    }
    clock.advance(by: .seconds(1))
    let lost = (0..<10).filter { gap.contains("s/\($0)") }
    #expect(try await store.purgeExpired() == 10 - lost.count)
    #expect(try bytes.keys(in: .prefix("s/"), limit: 99, order: .ascending) == lost.map { "s/\($0)" })
    let error = await expectStoreError(.corrupted) { try await store.entries(in: .all, limit: 99, order: .ascending) }
    let keys = try #require((error?.underlying as? any UnreadableKeysError)?.keys)
    #expect((0..<10).filter { keys.contains("\($0)") } == lost)
    #expect(error?.description.contains("a gap") == true)
  }
}
