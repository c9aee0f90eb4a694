#if LMDB
import Larder
import LarderTesting
import TestSupport
import Testing

@testable import LarderLMDB

@Suite struct EncodedChangesTests {
  private func encoded(_ changes: ChangeBatch<[UInt8]>) throws -> EncodedChanges {
    try EncodedChanges(changes, check: { _ in }, encode: { value, _, bytes in bytes += value })
  }

  private func keys(_ step: EncodedChanges.Step) -> [StoreKey]? {
    guard case .items(let items) = step else { return nil }
    return items.map(\.key)
  }

  @Test func `changes are sorted between removals of ranges`() throws {
    let steps = try encoded([
      .set("c", [1]), .set("a", [2]), .removeAll(.all), .remove("z"), .set("b", [3]), .removeAll("a"..<"b"),
    ]).steps
    #expect(steps.map { keys($0) } == [["a", "c"], nil, ["b", "z"], nil])
  }

  @Test func `the last of several changes to a key counts`() throws {
    let steps = try encoded([.set("b", [1]), .set("a", [2, 2]), .set("b", []), .remove("a"), .set("b", [3, 3, 3])])
      .steps
    #expect(steps.count == 1)
    guard case .items(let items) = steps[0] else { return }
    #expect(items.map(\.key) == ["a", "b"])
    #expect(items[0].value == nil)
    #expect(items[1].value?.range.count == 3)
  }

  @Test func `changes in order stay unchanged`() throws {
    let items = (0..<100).map { EncodedChanges.Item(key: StoreKey(integer: $0), value: nil) }
    #expect(EncodedChanges.sorted(items).map(\.key) == items.map(\.key))
    #expect(EncodedChanges.sorted([]).isEmpty)
    // A repeated key is out of order.
    #expect(EncodedChanges.sorted(items + [items[99]]).count == 100)
  }

  @Test func `keys of all lengths are sorted`() {
    var random = SeededGenerator(test: #function)
    // Few distinct bytes, so that many keys share eight bytes, differ in trailing zeros only, or are equal.
    let items = (0..<2000).map { number in
      let bytes = (0..<Int.random(in: 1...11, using: &random)).map { _ in UInt8.random(in: 0...1, using: &random) }
      return EncodedChanges.Item(
        key: StoreKey(bytes: bytes), value: EncodedChanges.Location(part: 0, range: number..<number))
    }
    let last = Dictionary(items.map { ($0.key, $0.value) }) { $1 }
    let sorted = EncodedChanges.sorted(items)
    #expect(sorted.map(\.key) == last.keys.sorted())
    #expect(sorted.allSatisfy { $0.value == last[$0.key] })
  }

  @Test(arguments: [1, 2, 64, 1000]) func `keys of all bytes are sorted`(count: Int) {
    var random = SeededGenerator(test: #function)
    let keys = (0..<count).map { _ in
      StoreKey(
        bytes: (0..<Int.random(in: 0...20, using: &random)).map { _ in UInt8.random(in: 0...255, using: &random) })
    }
    let items = keys.map { EncodedChanges.Item(key: $0, value: nil) }
    #expect(EncodedChanges.sorted(items).map(\.key) == Set(keys).sorted())
  }

  @Test func `encoding on several threads gives the same result`() async throws {
    var random = SeededGenerator(test: #function)
    let batch = ChangeBatch<[UInt8]>(
      (0..<20_000).map { _ in
        switch Int.random(in: 0..<1000, using: &random) {
        case 0..<700: .set(random.key(), random.value())
        case 700..<998: .remove(random.key())
        default: .removeAll(random.range())
        }
      })
    let inSequence = try encoded(batch)
    let together = try await EncodedChanges(
      concurrently: batch, check: { _ in }, encode: { value, _, bytes in bytes += value })
    func contents(_ changes: EncodedChanges) -> [[[UInt8]?]] {
      changes.steps.map { step in
        guard case .items(let items) = step else { return [nil] }
        return items.map { item in
          var bytes: [UInt8] = item.key.bytes + [item.value == nil ? 0 : 1]
          if let value = item.value { bytes += changes.bytes[value.part][value.range] }
          return bytes
        }
      }
    }
    #expect(together.steps.count > 1)
    #expect(contents(together) == contents(inSequence))
  }

  @Test func `the first failure of a large batch is reported`() async throws {
    struct Refused: Error, Equatable { let key: StoreKey }
    let batch = ChangeBatch<[UInt8]>((0..<20_000).map { .set(StoreKey(integer: $0), []) })
    let refused: Set<StoreKey> = [StoreKey(integer: 7), StoreKey(integer: 19_999)]
    let error = await #expect(throws: Refused.self) {
      _ = try await EncodedChanges(
        concurrently: batch, check: { if refused.contains($0) { throw Refused(key: $0) } }, encode: { _, _, _ in })
    }
    #expect(error == Refused(key: StoreKey(integer: 7)))
  }

  @Test func `no memory is reserved for later values`() async throws {
    await #expect(processExitsWith: .success) {
      try AddressSpaceLimit.set(toFurther: 1 << 30)
      // If the other values were as large as the first one, they would take 6 GB.
      let batch = ChangeBatch<[UInt8]>(
        (0..<100_000).map { .set(StoreKey(integer: $0), [UInt8](repeating: 7, count: $0 < 64 ? 65_536 : 8)) })
      let encoded = try EncodedChanges(batch, check: { _ in }, encode: { value, _, bytes in bytes += value })
      #expect(encoded.steps.count == 1)
    }
  }

  @Test func `any batch has the same effect as its changes in sequence`() async throws {
    var random = SeededGenerator(test: #function)
    let location = try ConformanceLocation()
    let store = try await LMDBStore<[UInt8]>(path: location.path("environment"), codec: .raw, durability: .buffered)
    let model = MemoryStore<[UInt8]>()
    for _ in 0..<60 {
      let batch = ChangeBatch<[UInt8]>(
        (0..<Int.random(in: 1...80, using: &random)).map { _ in
          switch Int.random(in: 0..<12, using: &random) {
          case 0..<7: .set(random.key(), random.value())
          case 7..<11: .remove(random.key())
          default: .removeAll(random.range())
          }
        })
      try await store.apply(batch)
      try model.apply(batch)
      let entries = try await store.entries(in: .all, limit: .max, order: .ascending)
      let expected = try model.entries(in: .all, limit: .max, order: .ascending)
      try #require(entries.map(\.key) == expected.map(\.key))
      try #require(entries.map(\.value) == expected.map(\.value))
    }
    try await store.close()
    try location.remove()
  }
}
#endif
