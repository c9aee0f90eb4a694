import Larder
import TestSupport
import Testing

@Suite struct AnyDataStoreTests {
  @Test func `forwards every operation once`() async throws {
    let probed = ProbedStore<Int>()
    let store = AnyDataStore(probed)
    try await store.apply([.set("a", 1), .set("b", 2), .set("c", 3)])
    #expect(try await store.value(forKey: "a") == 1)
    #expect(try await store.values(forKeys: ["c", "x", "a", "c"]) == [3, nil, 1, 3])
    #expect(
      try await store.entries(in: StoreKey("a")..., limit: 2, order: .descending) == [
        StoreEntry(key: "c", value: 3), StoreEntry(key: "b", value: 2),
      ])
    #expect(try await store.keys(in: "b"..<"c", limit: 5, order: .ascending) == ["b"])
    #expect(try await store.count(in: .prefix("b")) == 1)
    let sum = try await store.update(["a", "x"]) { slots in
      slots[1] = slots[0]
      slots[0] = nil
      return slots.count
    }
    #expect(sum == 2)
    #expect(try probed.base.keys(in: .all, limit: 9, order: .ascending) == ["b", "c", "x"])
    try await store.synchronize()
    try await store.close()
    #expect(
      probed.operations == [.apply, .value, .values, .entries, .keys, .count, .update, .synchronize, .close])
    #expect(store.information.name == "probed")
  }

  @Test func `errors pass through unchanged`() async throws {
    let store = AnyDataStore(MemoryStore<Int>(name: "inside"))
    await expectStoreError(.invalidKey) { try await store.value(forKey: "") }
    await #expect(throws: CancellationError.self) {
      try await store.update(["a"]) { _ in throw CancellationError() }
    }
    try await store.close()
    let error = await expectStoreError(.closed) { try await store.count(in: .all) }
    #expect(error?.store == "inside")
  }

  @Test func `a wrapped store works like any other`() async throws {
    func fill(_ store: some DataStore<Int>) async throws -> Int {
      for number in 0..<300 { try await store.setValue(number, forKey: StoreKey(integer: number)) }
      var count = 0
      for try await entry in store.entries() { count += entry.value == count ? 1 : 0 }
      return count
    }
    let twice = AnyDataStore(AnyDataStore(MemoryStore<Int>(name: "inside")))
    #expect(try await fill(twice) == 300)
    #expect(try await twice.pages(size: 100).pageCount == 3)
    // It is not wrapped twice, so its capabilities stay available.
    #expect(twice.description == "AnyDataStore[MemoryStore(inside)]")
    let existential: any DataStore<Int> = twice
    #expect(try await existential.value(forKey: StoreKey(integer: 7)) == 7)
    #expect(twice.base is MemoryStore<Int>)
  }
}
