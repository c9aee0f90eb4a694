import Larder
import LarderTesting
import TestSupport
import Testing

@testable import LarderCache

/// After a reload no reader gets an older value, even if several reloads overlap.
extension CachedStoreRaceTests {
  /// Starts a reload of two keys, which the base can resume separately from a reload of one key.
  private func beginReloadOfTwo(_ moment: StoreFault.Moment) async throws -> Task<[Int?], any Error> {
    base.schedule(.suspension(moment), on: .values)
    let reload = Task { [store] in try await store.values(forKeys: ["a", "b"], policy: .reload) }
    try await base.waitForSuspended(1, of: .values)
    return reload
  }

  @Test(arguments: [false, true]) func `a reload overtaken by another removes older entries`(
    _ fails: Bool
  ) async throws {
    try await store.setValue(1, forKey: "a")
    try memory.apply([.set("a", 2)])
    let first = try await beginRead(.after, policy: .reload)
    if fails { base.schedule(.error(.ioFailed, .after), on: .values) }
    let second = try await beginReloadOfTwo(.before)
    base.resume(.value)
    #expect(try await first.value == 2)
    #expect(try await store.value(forKey: "a") == 2)
    base.resume(.values)
    if fails {
      await expectStoreError(.ioFailed) { try await second.value }
    } else {
      #expect(try await second.value == [2, nil])
    }
    #expect(try await store.value(forKey: "a") == 2)
    #expect(store.cache.isIdle)
  }

  @Test func `a reload does not replace the entry of a later read`() async throws {
    try memory.apply([.set("a", 1)])
    let late = try await beginRead(.before, policy: .reload)
    // It reads the base before the other reload does, and ends after it.
    let early = try await beginReloadOfTwo(.after)
    try memory.apply([.set("a", 2)])
    base.resume(.value)
    #expect(try await late.value == 2)
    base.resume(.values)
    #expect(try await early.value == [1, nil])
    #expect(try await store.value(forKey: "a") == 2)
    #expect(store.cache.isIdle)
  }

  @Test func `a reload of several keys removes older entries`() async throws {
    try await store.apply([.set("a", 1), .set("b", 1)])
    try memory.apply([.set("a", 2), .set("b", 2)])
    let both = try await beginReloadOfTwo(.after)
    let one = try await beginRead(.before, policy: .reload)
    base.resume(.values)
    #expect(try await both.value == [2, 2])
    #expect(try await store.values(forKeys: ["a", "b"]) == [2, 2])
    base.resume(.value)
    #expect(try await one.value == 2)
    #expect(store.cache.isIdle)
  }

  @Test func `a reload during a write leaves no older entry`() async throws {
    try await store.setValue(1, forKey: "a")
    let write = try await beginWrite(2, .after)
    try memory.apply([.set("a", 3)])
    // It starts while the key is busy, and ends after the writer has cached its value.
    let reload = try await beginRead(.after, policy: .reload)
    base.resume(.apply)
    try await write.value
    base.resume(.value)
    #expect(try await reload.value == 3)
    #expect(try await store.value(forKey: "a") == 3)
  }
}
