import Larder
import TestSupport
import Testing

@Suite struct MemoryStoreTests {
  /// A value that calls the store in its deinitializer.
  private final class Caller: Sendable {
    let store: MemoryStore<Caller>
    let calls: Counter

    init(_ store: MemoryStore<Caller>, _ calls: Counter) {
      self.store = store
      self.calls = calls
    }

    deinit {
      do {
        _ = try store.count(in: .all)
      } catch StoreError.Code.closed {
      } catch {
        Issue.record(error)
      }
      calls.increase()
    }
  }

  private final class Counter: Sendable {
    private let value = Locked(0)
    var count: Int { value.withLock { $0 } }
    func increase() { value.withLock { $0 += 1 } }
  }

  // MARK: Synchronous operations

  @Test func `its operations are synchronous`() throws {
    let store = MemoryStore<Int>(name: "numbers")
    try store.apply([.set("b", 2), .set("a", 1), .set("c", 3), .remove("c"), .remove("missing")])
    #expect(try store.value(forKey: "a") == 1)
    #expect(try store.value(forKey: "c") == nil)
    #expect(try store.values(forKeys: ["b", "c", "b"]) == [2, nil, 2])
    #expect(try store.values(forKeys: []) == [])
    #expect(try store.keys(in: .all, limit: .max, order: .descending) == ["b", "a"])
    #expect(try store.entries(in: "a"..."a", limit: 9, order: .ascending) == [StoreEntry(key: "a", value: 1)])
    #expect(try store.count(in: .all) == 2)
    #expect(
      try store.update(deciding: ["a", "b"]) { slots in
        slots.swapAt(0, 1)
        return .commit("swapped")
      } == "swapped")
    #expect(try store.values(forKeys: ["a", "b"]) == [2, 1])
    try store.synchronize()
    store.close()
    #expect(store.description == "MemoryStore(numbers)")
    #expect(MemoryStore<Int>().information.name == "memory")
  }

  // MARK: Batches and updates

  @Test func `a batch takes effect in sequence`() throws {
    let store = MemoryStore<Int>()
    try store.apply([
      .set("a", 1), .set("a", 2), .remove("a"), .set("b", 1), .removeAll(.all), .set("c", 3), .set("c", 4),
    ])
    #expect(try store.entries(in: .all, limit: .max, order: .ascending) == [StoreEntry(key: "c", value: 4)])
    try store.apply([])
    #expect(try store.count(in: .all) == 1)
  }

  @Test(arguments: [0, 512]) func `a batch with an invalid key changes nothing`(_ count: Int) async throws {
    let store = MemoryStore<Int>()
    let key = StoreKey(bytes: [UInt8](repeating: 0x61, count: count))
    try store.apply([.set("a", 1)])
    expectStoreError(.invalidKey) { try store.apply([.set("a", 2), .removeAll(.all), .set(key, 3)]) }
    expectStoreError(.invalidKey) { try store.apply([.set("a", 2), .remove(key)]) }
    await expectStoreError(.invalidKey) { try await store.update(["a", key]) { slots in slots[0] = 2 } }
    expectStoreError(.invalidKey) { try store.values(forKeys: ["a", key]) }
    #expect(try store.value(forKey: "a") == 1)
  }

  @Test func `an update that fails changes nothing`() async throws {
    let store = MemoryStore<Int>()
    try store.apply([.set("a", 1)])
    await #expect(throws: CancellationError.self) {
      try await store.update(["a", "b"]) { slots in
        slots.assign([7, 8])
        throw CancellationError()
      }
    }
    let discarded = try await store.update(deciding: ["a", "b"]) { slots in
      slots.assign([7, 8])
      return .discard(slots[0])
    }
    #expect(discarded == 7)
    await expectStoreError(.invalidArgument) { try await store.update(["a", "a"]) { slots in slots.assign([7, 8]) } }
    #expect(try store.entries(in: .all, limit: .max, order: .ascending) == [StoreEntry(key: "a", value: 1)])
    #expect(try await store.update([]) { slots in slots.count } == 0)
  }

  @Test func `concurrent updates lose nothing`() async throws {
    let store = MemoryStore<Int>()
    try await withThrowingTaskGroup { group in
      for _ in 0..<8 {
        group.addTask {
          for _ in 0..<500 {
            try await store.update(["a", "b"]) { slots in
              slots[0] = (slots[0] ?? 0) + 1
              slots[1] = (slots[1] ?? 0) - 1
            }
          }
        }
      }
      try await group.waitForAll()
    }
    #expect(try store.values(forKeys: ["a", "b"]) == [4_000, -4_000])
  }

  @Test func `readers see all of a batch or nothing`() async throws {
    let store = MemoryStore<Int>()
    let keys = (0..<400).map { StoreKey(integer: $0) }
    try store.apply(ChangeBatch(keys.map { .set($0, 0) }))
    try await withThrowingTaskGroup { group in
      group.addTask {
        for round in 1...100 {
          try store.apply(ChangeBatch([.removeAll(.all)] + keys.map { .set($0, round) }))
        }
      }
      for _ in 0..<3 {
        group.addTask {
          for _ in 0..<100 {
            let values = try store.entries(in: .all, limit: .max, order: .ascending).map(\.value)
            let picked = try store.values(forKeys: [keys[0], keys[200], keys[399]])
            #expect(values.count == 400)
            #expect(Set(values).count == 1)
            #expect(Set(picked).count == 1)
            #expect(try store.count(in: .all) == 400)
          }
        }
      }
      try await group.waitForAll()
    }
  }

  @Test func `returned entries are a copy`() throws {
    let store = MemoryStore<[Int]>()
    var value = [1, 2]
    try store.apply([.set("a", value)])
    value.append(3)
    #expect(try store.value(forKey: "a") == [1, 2])
    var read = try #require(try store.value(forKey: "a"))
    read.append(4)
    #expect(try store.value(forKey: "a") == [1, 2])
  }

  // MARK: Values that call the store

  @Test(.timeLimit(.minutes(60))) func `a value may call the store in its deinitializer`() async throws {
    let store = MemoryStore<Caller>()
    let calls = Counter()
    func batch(_ keys: StoreKey...) -> ChangeBatch<Caller> {
      ChangeBatch(keys.map { .set($0, Caller(store, calls)) })
    }
    try store.apply(batch("a", "b", "c", "d", "e", "f"))
    #expect(calls.count == 0)
    try store.apply(batch("a", "a"))
    #expect(calls.count == 2)
    try store.apply([.remove("a")])
    #expect(calls.count == 3)
    try store.apply([.removeAll("b"..."c")])
    #expect(calls.count == 5)
    try await store.update(["d"]) { slots in slots[0] = nil }
    #expect(calls.count == 6)
    try await store.update(["e"]) { slots in slots[0] = Caller(store, calls) }
    #expect(calls.count == 7)
    await #expect(throws: CancellationError.self) {
      try await store.update(["e", "f"]) { slots in
        slots.assign([nil, Caller(store, calls)])
        throw CancellationError()
      }
    }
    #expect(calls.count == 8)
    try await store.update(deciding: ["e", "f"]) { slots in
      slots[0] = Caller(store, calls)
      return .discard(())
    }
    #expect(calls.count == 9)
    expectStoreError(.invalidKey) { try store.apply(batch("x", "")) }
    #expect(calls.count == 11)
    // A batch that is larger than a chunk.
    try store.apply(ChangeBatch((0..<1_000).map { .set(StoreKey(integer: $0), Caller(store, calls)) }))
    try store.apply([.removeAll(.prefix(StoreKey(bytes: [0x80])))])
    #expect(calls.count == 1_011)
    store.close()
    #expect(calls.count == 1_013)
    expectStoreError(.closed) { try store.apply(batch("g")) }
    #expect(calls.count == 1_014)
  }

  // MARK: Lifecycle and cancellation

  @Test func `a closed store refuses everything`() async throws {
    let store = MemoryStore<Int>(name: "numbers")
    try store.apply([.set("a", 1)])
    store.close()
    store.close()
    let errors = [
      expectStoreError(.closed) { try store.value(forKey: "a") },
      expectStoreError(.closed) { try store.values(forKeys: []) },
      expectStoreError(.closed) { try store.entries(in: .all, limit: 0, order: .ascending) },
      expectStoreError(.closed) { try store.keys(in: .all, limit: 0, order: .ascending) },
      expectStoreError(.closed) { try store.count(in: "b"..<"a") },
      expectStoreError(.closed) { try store.apply([]) },
      await expectStoreError(.closed) { try await store.update([]) { _ in Issue.record("the body ran") } },
      expectStoreError(.closed) { try store.synchronize() },
    ]
    #expect(errors.map(\.?.operation) == [.value, .values, .entries, .keys, .count, .apply, .update, .synchronize])
    #expect(errors.allSatisfy { $0?.store == "numbers" })
  }

  @Test func `a negative limit is refused`() {
    let store = MemoryStore<Int>()
    expectStoreError(.invalidArgument) { try store.entries(in: .all, limit: -1, order: .ascending) }
    expectStoreError(.invalidArgument) { try store.keys(in: .all, limit: .min, order: .descending) }
  }

  @Test func `a cancelled task writes nothing`() async throws {
    let store = MemoryStore<Int>()
    try store.apply([.set("a", 1)])
    await Task {
      withUnsafeCurrentTask { $0?.cancel() }
      #expect(throws: CancellationError.self) { try store.apply([.set("a", 2)]) }
      await #expect(throws: CancellationError.self) {
        try await store.update(["a"]) { _ in Issue.record("the body ran") }
      }
      #expect(throws: Never.self) { try store.synchronize() }
      store.close()
      expectStoreError(.closed) { try store.value(forKey: "a") }
    }.value
  }

  @Test func `a cancelled task leaves the entries`() async throws {
    let store = MemoryStore<Int>()
    try store.apply([.set("a", 1)])
    await Task {
      withUnsafeCurrentTask { $0?.cancel() }
      #expect(throws: CancellationError.self) { try store.apply([.removeAll(.all)]) }
    }.value
    #expect(try store.value(forKey: "a") == 1)
  }
}
