import Larder
import LarderTesting
import Testing

@testable import LarderCache

@Suite struct WrittenKeysTests {
  private static func written<Value: Sendable>(_ changes: ChangeBatch<Value>) -> (WrittenKeys, values: [Value?]) {
    let written = WrittenKeys(changes) { ValueBox($0) }
    return (written, written.values.map { ($0 as? ValueBox<Value>)?.value })
  }

  @Test func `later changes win`() {
    let batch: ChangeBatch<Int?> = [
      .set("a", 1), .set("b", 2), .removeAll("b"..<"c"), .set("c", nil), .remove("a"), .set("d", 4), .set("d", 5),
      .removeAll("z"..<"y"),
    ]
    let (written, values) = Self.written(batch)
    #expect(written.keys == ["a", "b", "c", "d"])
    #expect(values == [nil, nil, .some(nil), 5])
    #expect(written.ranges == ["b"..<"c"])
  }

  @Test func `the last of many ranges covers the others`() {
    let ranges = (0..<100).shuffled().map { KeyRange.only(StoreKey(integer: $0)) }
    let (written, _) = Self.written(ChangeBatch<Int>(ranges.map { .removeAll($0) }))
    #expect(written.ranges.count == WrittenKeys.highestRangeCount)
    #expect(Array(written.ranges.dropLast()) == Array(ranges.prefix(WrittenKeys.highestRangeCount - 1)))
    for number in 0..<100 {
      #expect(written.ranges.contains { $0.contains(StoreKey(integer: number)) })
    }
    let (open, _) = Self.written(
      ChangeBatch<Int>((ranges + [KeyRange(from: "z", upTo: nil), "a"..<"b"]).map { .removeAll($0) }))
    #expect(open.ranges.last?.upperBound == nil)
    #expect(open.ranges.last?.contains("a") == true)
  }

  /// The summary of a batch matches the effect of the batch on a store.
  @Test func `random batches are summarized correctly`() throws {
    var generator = SeededGenerator(seed: SeededGenerator.seedOfProcess, purpose: "written keys")
    let keys: [StoreKey] = ["a", "b", "c", "d"]
    for _ in 0..<500 {
      var batch = ChangeBatch<Int>()
      for number in 0..<Int.random(in: 0...6, using: &generator) {
        let key = keys.randomElement(using: &generator) ?? "a"
        switch Int.random(in: 0..<4, using: &generator) {
        case 0: batch.removeValue(forKey: key)
        case 1: batch.removeAll(in: key..<(keys.randomElement(using: &generator) ?? "a"))
        default: batch.setValue(number, forKey: key)
        }
      }
      let store = MemoryStore<Int>()
      try store.apply(ChangeBatch(keys.map { .set($0, -1) }))
      try store.apply(batch)
      let (written, values) = Self.written(batch)
      for key in keys {
        let value = try store.value(forKey: key)
        if let place = written.keys.firstIndex(of: key) {
          #expect(values[place] == value, "\(batch) LARDER_SEED=\(SeededGenerator.seedOfProcess)")
        } else {
          #expect((value == nil) == written.ranges.contains { $0.contains(key) })
        }
      }
    }
  }
}
