import Larder
import LarderTesting
import Testing

@testable import FileCatalog

@Suite("The difference of two sorted sequences")
struct SortedDifferenceTests {
  @Test func `New, changed, removed and unchanged entries are reported in key order`() async throws {
    let differences = try await difference(
      from: ["b": 1, "c": 1, "d": 1, "f": 1], to: ["a": 1, "b": 1, "d": 2, "g": 1])
    #expect(
      differences == [
        .added(StoreEntry(key: "a", value: 1)), .unchanged("b"), .removed("c"),
        .changed(StoreEntry(key: "d", value: 2)), .removed("f"), .added(StoreEntry(key: "g", value: 1)),
      ])
  }

  @Test func `If one side is empty, all entries are new or removed`() async throws {
    #expect(try await difference(from: [:], to: [:]) == [])
    #expect(try await difference(from: [:], to: ["a": 1]) == [.added(StoreEntry(key: "a", value: 1))])
    #expect(try await difference(from: ["a": 1], to: [:]) == [.removed("a")])
  }

  @Test func `Applying the differences to the old entries gives the new ones`() async throws {
    let seed = Seed.value
    var generator = SeededGenerator(seed: seed)
    for _ in 0..<50 {
      let old = randomEntries(using: &generator)
      let new = randomEntries(using: &generator)
      var result = old
      for difference in try await difference(from: old, to: new) {
        switch difference {
        case .added(let entry), .changed(let entry): result[entry.key] = entry.value
        case .removed(let key): result[key] = nil
        case .unchanged: break
        }
      }
      #expect(result == new, "seed \(seed)")
    }
  }

  private func randomEntries(using generator: inout SeededGenerator) -> [StoreKey: Int] {
    var entries: [StoreKey: Int] = [:]
    for _ in 0..<Int.random(in: 0..<40, using: &generator) {
      entries[StoreKey(integer: Int.random(in: 0..<40, using: &generator))] = Int.random(in: 0..<2, using: &generator)
    }
    return entries
  }

  private func difference(from old: [StoreKey: Int], to new: [StoreKey: Int]) async throws -> [Difference<Int>] {
    let store = MemoryStore<Int>()
    try store.apply(ChangeBatch(old.map { .set($0.key, $0.value) }))
    let entries = new.sorted { $0.key < $1.key }.map { StoreEntry(key: $0.key, value: $0.value) }
    var differences: [Difference<Int>] = []
    for try await difference in SortedDifference(from: store.entries(), to: entries) {
      differences.append(difference)
    }
    return differences
  }
}
