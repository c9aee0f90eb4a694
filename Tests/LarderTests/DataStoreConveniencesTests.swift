import Larder
import TestSupport
import Testing

@Suite struct DataStoreConveniencesTests {
  @Test func `set read and remove`() async throws {
    let store = ProbedStore<Int>()
    try await store.setValue(1, forKey: "a")
    #expect(try await store["a"] == 1)
    try await store.setValue(2, forKey: "a")
    #expect(try await store["a"] == 2)
    try await store.removeValue(forKey: "a")
    #expect(try await store["a"] == nil)
    try await store.removeValue(forKey: "a")
    #expect(try await store.count() == 0)
  }

  @Test func `removes ranges`() async throws {
    let store = ProbedStore<Int>()
    try store.fill(0..<10)
    try await store.removeAll(in: StoreKey(integer: 2)..<StoreKey(integer: 5))
    #expect(try await store.count() == 7)
    try await store.removeAll()
    try await store.removeAll()
    #expect(try await store.count() == 0)
  }

  @Test func `a stored nil is not missing`() async throws {
    let store = ProbedStore<Int?>()
    try await store.setValue(nil, forKey: "a")
    #expect(try await store.contains("a"))
    #expect(try await !store.contains("b"))
    #expect(try await store.value(forKey: "a") == .some(nil))
    #expect(try await store.value(forKey: "b") == .none)
    #expect(try await store.values(forKeys: ["a", "b"]) == [.some(nil), .none])
    #expect(try await store.entries(in: .all, limit: 5) == [StoreEntry(key: "a", value: nil)])
    // A stored nil that is left alone stays. Setting the slot to nil removes the entry.
    try await store.update("a") { slot in slot = .some(nil) }
    #expect(try await store.contains("a"))
    try await store.update("a") { slot in slot = .none }
    #expect(try await !store.contains("a"))
  }

  @Test func `contains reads no value`() async throws {
    let store = ProbedStore<Int>()
    try store.fill(0..<3)
    #expect(try await store.contains(StoreKey(integer: 1)))
    #expect(try await !store.contains(StoreKey(bytes: StoreKey(integer: 1).bytes + [0])))
    #expect(store.operations.allSatisfy { $0 == .keys })
  }

  @Test(arguments: [0, 512]) func `refuses invalid keys`(_ count: Int) async throws {
    let store = ProbedStore<Int>()
    let key = StoreKey(bytes: [UInt8](repeating: 0x61, count: count))
    await expectStoreError(.invalidKey) { try await store.contains(key) }
    await expectStoreError(.invalidKey) { try await store[key] }
    await expectStoreError(.invalidKey) { try await store.setValue(1, forKey: key) }
    await expectStoreError(.invalidKey) { try await store.removeValue(forKey: key) }
    await expectStoreError(.invalidKey) { try await store.update(key) { _ in } }
  }

  @Test func `updates one key`() async throws {
    let store = ProbedStore<Int>()
    for expected in 1...3 {
      let count = try await store.update("visits") { count in
        count = (count ?? 0) + 1
        return count
      }
      #expect(count == expected)
    }
    await #expect(throws: CancellationError.self) {
      try await store.update("visits") { count in
        count = 99
        throw CancellationError()
      }
    }
    #expect(try await store["visits"] == 3)
    try await store.update("visits") { count in count = nil }
    #expect(try await !store.contains("visits"))
  }

  @Test func `scans are ascending by default`() async throws {
    let store = ProbedStore<Int>()
    try store.fill(0..<5)
    #expect(try await store.entries(in: .all, limit: 2).map(\.value) == [0, 1])
    #expect(try await store.keys(in: .all, limit: 2).compactMap(\.integer) == [0, 1])
    #expect(try await store.keys(in: .all, limit: 0).isEmpty)
    await expectStoreError(.invalidArgument) { try await store.keys(in: .all, limit: -1) }
  }
}
