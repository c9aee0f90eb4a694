import Larder
import LarderTesting
import Testing

/// Writes that depend on the value of their key.
@Suite struct ConditionalTests {
  private let store = MemoryStore<Int>()

  @Test func `an insertion replaces nothing`() async throws {
    #expect(try await store.insertValue(1, forKey: "a"))
    #expect(try await !store.insertValue(2, forKey: "a"))
    #expect(try store.value(forKey: "a") == 1)
  }

  @Test func `a replacement expects a value`() async throws {
    #expect(try await !store.replaceValue(2, forKey: "a", expecting: 1))
    #expect(try await store.replaceValue(1, forKey: "a", expecting: nil))
    #expect(try await !store.replaceValue(2, forKey: "a", expecting: nil))
    #expect(try await store.replaceValue(2, forKey: "a", expecting: 1))
    #expect(try store.value(forKey: "a") == 2)
    #expect(try await !store.replaceValue(nil, forKey: "a", expecting: 1))
    #expect(try await store.replaceValue(nil, forKey: "a", expecting: 2))
    #expect(try store.value(forKey: "a") == nil)
  }

  @Test func `a value is taken once`() async throws {
    try store.apply([.set("a", 7)])
    let taken = try await withThrowingTaskGroup(of: Int?.self) { group in
      for _ in 0..<8 { group.addTask { [store] in try await store.takeValue(forKey: "a") } }
      return try await group.reduce(into: []) { $0.append($1) }
    }
    #expect(taken.compactMap(\.self) == [7])
    #expect(try store.value(forKey: "a") == nil)
  }

  @Test func `a missing value is inserted`() async throws {
    struct Failure: Error {}
    @Sendable func fail() throws -> Int { throw Failure() }
    await #expect(throws: Failure.self) { try await store.value(forKey: "a", orInsert: try fail()) }
    #expect(try store.value(forKey: "a") == nil)
    #expect(try await store.value(forKey: "a", orInsert: 3) == 3)
    #expect(try await store.value(forKey: "a", orInsert: try fail()) == 3)
    #expect(try store.value(forKey: "a") == 3)
  }

  /// A store that is known only at run time.
  @Test func `an erased store has the methods`() async throws {
    let erased: any DataStore<Int> = store
    #expect(try await erased.insertValue(1, forKey: "a"))
    #expect(try await erased.replaceValue(2, forKey: "a", expecting: 1))
    #expect(try await erased.takeValue(forKey: "a") == 2)
  }
}
