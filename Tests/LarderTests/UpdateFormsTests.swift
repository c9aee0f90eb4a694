import Larder
import Testing

/// The forms of `update`, whose bodies commit or decide.
@Suite struct UpdateFormsTests {
  private struct Refusal: Error, Equatable {
    let number: Int
  }

  private let store: MemoryStore<Int>

  init() throws {
    store = MemoryStore()
    try store.apply([.set("a", 1), .set("b", 2)])
  }

  private var entries: [StoreKey: Int] {
    get throws {
      Dictionary(
        uniqueKeysWithValues: try store.entries(in: .all, limit: .max, order: .ascending).map { ($0.key, $0.value) })
    }
  }

  // MARK: Slots

  @Test func `slots know whether they were assigned`() {
    var slots = UpdateSlots(stored: [1, nil, 3, nil, 5])
    #expect(slots.count == 5 && slots.assignedIndices.isEmpty)
    #expect(Array(slots) == [1, nil, 3, nil, 5], "reading assigns nothing")
    slots[1] = 2
    slots[2] = nil
    slots[4]? += 1
    #expect(slots.assignedIndices == [1, 2, 4])
    #expect(slots.isAssigned(1) && !slots.isAssigned(0))
    #expect(Array(slots) == [1, 2, nil, nil, 6])
    #expect(slots.changes(of: ["a", "b", "c", "d", "e"]) == [.set("b", 2), .remove("c"), .set("e", 6)])
    slots.swapAt(0, 3)
    #expect(slots.assignedIndices == [0, 1, 2, 3, 4])
    slots.assign([nil, nil, nil, nil, 7])
    #expect(Array(slots) == [nil, nil, nil, nil, 7])
  }

  @Test func `a part of a missing value assigns nothing`() {
    var slots = UpdateSlots<Int>(stored: [nil, nil, nil])
    slots[0]? += 1
    slots[1] = nil
    slots[2] = 1
    #expect(slots.assignedIndices == [1, 2])
  }

  @Test func `a value is changed in place`() {
    var slots = UpdateSlots(stored: [[1, 2, 3]])
    let address = slots[0]?.withUnsafeBufferPointer { $0.baseAddress }
    slots[0]?[1] = 9
    #expect(slots[0] == [1, 9, 3])
    #expect(slots[0]?.withUnsafeBufferPointer { $0.baseAddress } == address, "the array was not copied")
  }

  // MARK: Forms

  @Test func `a discarded update changes nothing`() async throws {
    let seen = try await store.update(deciding: ["a", "c"]) { slots in
      slots.assign([7, 8])
      return .discard(slots.count)
    }
    let one = try await store.update(deciding: "a") { value in
      value = nil
      return .discard("kept")
    }
    #expect(seen == 2 && one == "kept")
    #expect(try entries == ["a": 1, "b": 2])
  }

  @Test func `the form of the guide`() async throws {
    let seats = MemoryStore<String>()
    try seats.apply([.set("7A", "Ada")])
    func move() async throws -> Bool {
      // snippet.updates-that-decide
      let isMoved = try await seats.update(deciding: ["7A", "7B"]) { owners in
        guard owners[1] == nil else { return .discard(false) }
        owners[1] = owners[0]
        owners[0] = nil
        return .commit(true)
      }
      // snippet.end
      return isMoved
    }
    #expect(try await move())
    #expect(try seats.values(forKeys: ["7A", "7B"]) == [nil, "Ada"])
    #expect(try await !move())
  }

  @Test func `errors of a body pass unchanged and change nothing`() async throws {
    await #expect(throws: Refusal(number: 1)) {
      try await store.update(["a"]) { slots in
        slots[0] = 7
        throw Refusal(number: 1)
      }
    }
    await #expect(throws: Refusal(number: 2)) {
      try await store.update(deciding: ["a"]) { slots -> UpdateDecision<Int> in
        slots[0] = 7
        if slots.count == 1 { throw Refusal(number: 2) }
        return .commit(1)
      }
    }
    await #expect(throws: Refusal(number: 3)) {
      try await store.update(deciding: "a") { value -> UpdateDecision<Int> in
        value = 7
        throw Refusal(number: 3)
      }
    }
    #expect(try entries == ["a": 1, "b": 2])
  }

  /// A decision must be obeyed, however the closure reaches the store and however the type of the store is known.
  @Test func `no decision is taken for a result`() async throws {
    let body: @Sendable (inout UpdateSlots<Int>) -> UpdateDecision<Int> = { slots in
      slots[0] = 7
      return .discard(5)
    }
    func generic<Result: Sendable>(
      _ store: some DataStore<Int>,
      _ body: @escaping @Sendable (inout UpdateSlots<Int>) throws -> UpdateDecision<Result>
    ) async throws -> Result {
      try await store.update(deciding: ["a"], body)
    }
    let existential: any DataStore<Int> = store
    #expect(try await store.update(deciding: ["a"], body) == 5)
    #expect(try await existential.update(deciding: ["a"], body) == 5)
    #expect(try await AnyDataStore(store).update(deciding: ["a"], body) == 5)
    #expect(try await generic(store, body) == 5)
    let inferred: Int = try await existential.update(deciding: ["a"]) { slots in
      slots[0] = nil
      return .discard(6)
    }
    #expect(inferred == 6)
    #expect(try await existential.update(deciding: "a") { $0 == nil ? .commit(1) : .discard(2) } == 2)
    #expect(try entries == ["a": 1, "b": 2])
  }

  @Test func `a decision can have another result`() {
    #expect(UpdateDecision.commit(1).map { $0 + 1 }.result == 2)
    #expect(!UpdateDecision.discard(1).map { "\($0)" }.isCommit)
    let carried = UpdateDecision<Result<Int, any Error>>(catching: { throw Refusal(number: 4) })
    #expect(!carried.isCommit)
    #expect(throws: Refusal(number: 4)) { try carried.result.get() }
  }
}
