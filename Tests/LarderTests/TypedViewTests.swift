import Larder
import LarderTesting
import TestSupport
import Testing

@Suite struct TypedViewTests {
  /// Returns all byte strings of up to `count` bytes, made of extreme bytes and one in between.
  private static func texts(upTo count: Int) -> [[UInt8]] {
    (0..<count).reduce(into: [[]]) { texts, length in
      texts += texts.filter { $0.count == length }.flatMap { text in [0, 0x61, 0xFF].map { text + [$0] } }
    }
  }

  private static func filledStore() throws -> MemoryStore<[UInt8]> {
    let store = MemoryStore<[UInt8]>()
    try store.apply(ChangeBatch(texts(upTo: 4).filter { !$0.isEmpty }.map { .set(StoreKey(bytes: $0), $0) }))
    return store
  }

  /// Returns the expected keys of a view in a range, according to the definition of a view.
  private static func keys(behind prefix: [UInt8], in range: KeyRange) -> [StoreKey] {
    texts(upTo: 4).filter { $0.count > prefix.count && $0.starts(with: prefix) }
      .map { StoreKey(bytes: $0.dropFirst(prefix.count)) }.filter(range.contains).sorted()
  }

  private static let ranges: [KeyRange] = texts(upTo: 2).flatMap { lower in
    [KeyRange(from: StoreKey(bytes: lower), upTo: nil)]
      + texts(upTo: 2).map { KeyRange(from: StoreKey(bytes: lower), upTo: StoreKey(bytes: $0)) }
  }

  @Test(arguments: texts(upTo: 2)) func `scans return the keys with the prefix`(_ prefix: [UInt8]) async throws {
    let view = try Self.filledStore().typed([UInt8].self, prefix: StoreKey(bytes: prefix), codec: .raw)
    for range in Self.ranges {
      let expected = Self.keys(behind: prefix, in: range)
      #expect(try await view.keys(in: range, limit: .max, order: .ascending) == expected, "\(range)")
      #expect(
        try await view.keys(in: range, limit: 2, order: .descending) == Array(expected.reversed().prefix(2)), "\(range)"
      )
      #expect(try await view.count(in: range) == expected.count, "\(range)")
      let entries = try await view.entries(in: range, limit: .max, order: .ascending)
      #expect(entries.map(\.key) == expected)
      #expect(entries.allSatisfy { $0.value == prefix + Array($0.key.bytes) })
    }
  }

  @Test(arguments: texts(upTo: 2)) func `removals stay within the prefix`(_ prefix: [UInt8]) async throws {
    for range in [.all, "a"..., ..<"a", StoreKey(bytes: [0xFF])...] as [KeyRange] {
      let store = try Self.filledStore()
      let all = try store.keys(in: .all, limit: .max, order: .ascending)
      try await store.typed([UInt8].self, prefix: StoreKey(bytes: prefix), codec: .raw).removeAll(in: range)
      let removed = Set(Self.keys(behind: prefix, in: range).map { StoreKey(bytes: prefix + Array($0.bytes)) })
      #expect(try store.keys(in: .all, limit: .max, order: .ascending) == all.filter { !removed.contains($0) })
    }
  }

  @Test func `keys are shorter by the prefix`() async throws {
    let store = MemoryStore<[UInt8]>()
    for count in [0, 1, 509, 510] {
      let view = store.typed([UInt8].self, prefix: StoreKey(bytes: Array(repeating: 0xFF, count: count)), codec: .raw)
      #expect(view.information.maximumKeyLength == 511 - count)
      let longest = StoreKey(bytes: Array(repeating: 0xFF, count: 511 - count))
      try await view.setValue([1], forKey: longest)
      #expect(try await view.value(forKey: longest) == [1])
      #expect(try await view.keys(in: longest..., limit: 2, order: .ascending) == [longest])
      try await expectInvalid(StoreKey(bytes: Array(longest.bytes) + [0]), in: view)
      try await expectInvalid("", in: view)
    }
    // All views share one key of the store.
    #expect(try store.count(in: .all) == 1)
  }

  @Test func `a prefix without room for a key refuses every key`() async throws {
    for count in [511, 512, 2000] {
      let store = MemoryStore<[UInt8]>()
      let view = store.typed([UInt8].self, prefix: StoreKey(bytes: Array(repeating: 0xFF, count: count)), codec: .raw)
      #expect(view.information.maximumKeyLength == 0)
      try await expectInvalid("a", in: view)
      try await expectInvalid("", in: view)
      #expect(try await view.keys(in: .all, limit: .max, order: .ascending) == [])
      try await view.removeAll()
    }
  }

  @Test func `errors have the keys of the view`() throws {
    struct Gap: UnreadableKeysError, CustomStringConvertible {
      let keys: KeyRange
      var description: String { "a gap" }
    }
    func translated(key: StoreKey?, gap: KeyRange) throws -> (key: StoreKey?, gap: KeyRange) {
      let error = StoreError(
        .corrupted, during: .keys, store: "base", key: key, message: "damaged", underlying: Gap(keys: gap),
        isRetryable: true, outcome: .nothingChanged
      ).translated(by: KeyPrefix("v/"), during: .update, store: "view")
      #expect(error.code == .corrupted && error.operation == .update && error.store == "view")
      #expect(error.message == "damaged" && error.isRetryable && error.outcome == .nothingChanged)
      return (error.key, try #require(error.underlying as? any UnreadableKeysError).keys)
    }
    let inside = try translated(key: "v/b", gap: KeyRange(from: "v/a", upTo: "v/c"))
    #expect(inside.key == "b" && inside.gap == KeyRange(from: "a", upTo: "c"))
    let overlapping = try translated(key: nil, gap: KeyRange(from: "u", upTo: "v/c"))
    #expect(overlapping.key == nil && overlapping.gap == KeyRange(from: "", upTo: "c"))
    let outside = try translated(key: "x", gap: KeyRange(from: "x", upTo: "z"))
    #expect(outside.key == nil && outside.gap.isEmpty)
  }

  @Test func `a view of a view has both prefixes`() async throws {
    struct Failure: Error {}
    let store = MemoryStore<[UInt8]>()
    let outer = store.typed([UInt8].self, prefix: "a/", codec: .raw)
    let inner = outer.typed(Int.self, prefix: "b/", codec: .json())
    try await inner.setValue(7, forKey: "k")
    #expect(try store.keys(in: .all, limit: .max, order: .ascending) == ["a/b/k"])
    #expect(inner.information.maximumKeyLength == 507)
    #expect(inner.information.name == "memory")
    #expect(inner.description == "TypedView[TypedView[MemoryStore(memory)]]")
    try await expectInvalid(StoreKey(bytes: Array(repeating: 0x61, count: 508)), in: inner)
    // The body's error passes through both views.
    await #expect(throws: Failure.self) { try await inner.update("k") { _ in throw Failure() } }
    // Damage is reported with the key as the innermost view sees it.
    try await outer.setValue([0], forKey: "b/k")
    for operation in [{ _ = try await inner.value(forKey: "k") }, { try await inner.update("k") { $0 = 1 } }]
      as [() async throws -> Void]
    {
      let error = await #expect(throws: StoreError.self) { try await operation() }
      #expect(error?.code == .corrupted)
      #expect(error?.key == "k")
    }
    #expect(try await outer.value(forKey: "b/k") == [0])
  }

  /// Expects that every operation that takes a key refuses an invalid one, reports it as the view sees it, and changes
  /// nothing.
  private func expectInvalid<Value: Sendable>(
    _ key: StoreKey, in view: some DataStore<Value>, sourceLocation: SourceLocation = #_sourceLocation
  ) async throws {
    let countBefore = try await view.count(in: .all)
    let operations: [() async throws -> Void] = [
      { _ = try await view.value(forKey: key) },
      { _ = try await view.values(forKeys: [key]) },
      { try await view.apply([.removeAll(.all), .remove(key)]) },
      { try await view.update([key]) { _ in } },
    ]
    for operation in operations {
      let error = await #expect(throws: StoreError.self, sourceLocation: sourceLocation) { try await operation() }
      #expect(error?.code == .invalidKey, sourceLocation: sourceLocation)
      #expect(error?.store == view.information.name, sourceLocation: sourceLocation)
    }
    #expect(try await view.count(in: .all) == countBefore, sourceLocation: sourceLocation)
  }
}
