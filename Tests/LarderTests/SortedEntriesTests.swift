import Larder
import LarderTesting
import Testing

@Suite struct SortedEntriesTests {
  /// A map and its expected content.
  private struct Pair {
    var map = SortedEntries<Int>()
    var model: [StoreKey: Int] = [:]

    var sortedKeys: [StoreKey] { model.keys.sorted() }
  }

  private static func key(_ number: Int) -> StoreKey { StoreKey(integer: number) }

  private static func expectSame(_ pair: Pair, sourceLocation: SourceLocation = #_sourceLocation) {
    let sorted = pair.model.sorted { $0.key < $1.key }
    #expect(pair.map.count == sorted.count, sourceLocation: sourceLocation)
    let entries = pair.map.entries(in: .all, limit: .max, order: .ascending)
    #expect(entries.map(\.key) == sorted.map(\.key), sourceLocation: sourceLocation)
    #expect(entries.map(\.value) == sorted.map(\.value), sourceLocation: sourceLocation)
  }

  private static func range(_ random: inout SeededGenerator, below count: Int) -> KeyRange {
    let lower = random.integer(in: 0...count)
    let upper = min(count, lower + random.integer(in: -3...count / random.integer(in: 1...20)))
    switch random.integer(in: 0...9) {
    case 0: return .all
    case 1: return KeyRange(from: key(lower), upTo: nil)
    case 2: return KeyRange(from: "", upTo: key(upper))
    case 3: return .only(key(lower))
    case 4: return KeyRange(from: key(lower).successor, upTo: key(upper).successor)
    default: return KeyRange(from: key(lower), upTo: key(upper))
    }
  }

  @Test(arguments: [3, 130, 400, 3_000]) func agreesWithADictionary(_ keyCount: Int) {
    var random = SeededGenerator("agreesWithADictionary \(keyCount)")
    var pair = Pair()
    for step in 0..<6_000 {
      // The map grows, shrinks and grows again, so that chunks are split, emptied and joined.
      let isGrowing = step / 1_500 % 2 == 0
      let key = SortedEntriesTests.key(random.integer(in: 0...keyCount))
      switch random.integer(in: 0...99) {
      case 0..<(isGrowing ? 75 : 20):
        let displaced = pair.map.setValue(step, forKey: key)
        #expect(displaced == pair.model.updateValue(step, forKey: key))
      case 0..<97:
        let displaced = pair.map.removeValue(forKey: key)
        #expect(displaced == pair.model.removeValue(forKey: key))
      default:
        let range = SortedEntriesTests.range(&random, below: keyCount)
        let gone = pair.sortedKeys.filter { range.contains($0) }
        let displaced = pair.map.removeAll(in: range)
        #expect(displaced == gone.compactMap { pair.model.removeValue(forKey: $0) })
      }
      guard pair.map.count == pair.model.count, pair.map[key] == pair.model[key],
        pair.map.contains(key) == (pair.model[key] != nil)
      else {
        Issue.record("step \(step): the map no longer agrees")
        return
      }
      if step % 250 == 0 { SortedEntriesTests.expectSame(pair) }
    }
    SortedEntriesTests.expectSame(pair)
  }

  @Test(arguments: [1, 127, 128, 129, 256, 257, 1_000]) func scansAgreeWithASortedList(_ count: Int) {
    var random = SeededGenerator("scansAgreeWithASortedList \(count)")
    var pair = Pair()
    // Only every second number, so that bounds fall on keys and between them.
    for number in (0..<count).shuffled(using: &random) {
      _ = pair.map.setValue(number, forKey: SortedEntriesTests.key(number * 2))
      pair.model[SortedEntriesTests.key(number * 2)] = number
    }
    let sorted = pair.sortedKeys
    for _ in 0..<300 {
      let range = SortedEntriesTests.range(&random, below: count * 2 + 2)
      let inside = sorted.filter { range.contains($0) }
      let limit = random.element(of: [0, 1, 2, 127, 128, 129, inside.count, inside.count + 1, .max])
      #expect(pair.map.count(in: range) == inside.count)
      #expect(pair.map.keys(in: range, limit: limit, order: .ascending) == Array(inside.prefix(limit)))
      #expect(pair.map.keys(in: range, limit: limit, order: .descending) == Array(inside.reversed().prefix(limit)))
      let entries = pair.map.entries(in: range, limit: limit, order: .descending)
      #expect(entries.map(\.key) == Array(inside.reversed().prefix(limit)))
      #expect(entries.map(\.value) == entries.map { pair.model[$0.key] })
    }
  }

  @Test func `every range over some chunks can be removed`() {
    // 640 entries in chunks of 64 to 128. Removals have their bounds at or next to every edge.
    var random = SeededGenerator()
    let full = (0..<640).shuffled(using: &random).reduce(into: SortedEntries<Int>()) { map, number in
      _ = map.setValue(number, forKey: SortedEntriesTests.key(number))
    }
    for lower in stride(from: 0, through: 640, by: 13) {
      for upper in stride(from: lower, through: 640, by: 17) {
        var map = full
        let displaced = map.removeAll(
          in: KeyRange(from: SortedEntriesTests.key(lower), upTo: SortedEntriesTests.key(upper)))
        let left = Array(0..<lower) + Array(upper..<640)
        guard displaced == Array(lower..<upper), map.count == left.count,
          map.entries(in: .all, limit: .max, order: .ascending).map(\.value) == left,
          map.entries(in: .all, limit: .max, order: .descending).map(\.value) == left.reversed(),
          left.allSatisfy({ map[SortedEntriesTests.key($0)] == $0 }),
          map.count(in: .all) == left.count
        else {
          Issue.record("removing \(lower)..<\(upper) left other entries")
          return
        }
        // The remaining map can be changed.
        for number in Set([lower, upper - 1, upper, 0, 639]) where number >= 0 && number < 640 {
          #expect(map.setValue(-1, forKey: SortedEntriesTests.key(number)) == (left.contains(number) ? number : nil))
          #expect(map.removeValue(forKey: SortedEntriesTests.key(number)) == -1)
        }
      }
    }
  }

  @Test func `a copy stays unchanged`() {
    var random = SeededGenerator()
    var pair = Pair()
    var copies: [Pair] = []
    for step in 0..<2_000 {
      let key = SortedEntriesTests.key(random.integer(in: 0...600))
      if random.integer(in: 0...2) > 0 {
        _ = pair.map.setValue(step, forKey: key)
        pair.model[key] = step
      } else {
        _ = pair.map.removeValue(forKey: key)
        pair.model[key] = nil
      }
      if step % 199 == 0 {
        copies.append(pair)
        let range = KeyRange(from: key, upTo: SortedEntriesTests.key(600))
        _ = pair.map.removeAll(in: range)
        pair.model = pair.model.filter { !range.contains($0.key) }
      }
    }
    for copy in copies + [pair] {
      SortedEntriesTests.expectSame(copy)
    }
  }

  @Test(arguments: ["ascending", "descending", "shuffled"]) func holdsManyEntries(_ order: String) {
    var random = SeededGenerator("holdsManyEntries \(order)")
    var numbers = Array(0..<100_000)
    if order == "descending" { numbers.reverse() }
    if order == "shuffled" { numbers.shuffle(using: &random) }
    var map = SortedEntries<Int>()
    for number in numbers {
      _ = map.setValue(number, forKey: SortedEntriesTests.key(number))
    }
    #expect(map.count == 100_000)
    #expect(map.count(in: .all) == 100_000)
    var expected = 0
    map.forEach { key, value in
      if value == expected, key.integer == Int64(expected) { expected += 1 }
    }
    #expect(expected == 100_000)
    expected = 99_999
    map.forEach(order: .descending) { _, value in
      if value == expected { expected -= 1 }
    }
    #expect(expected == -1)
    let middle = KeyRange(from: SortedEntriesTests.key(10), upTo: SortedEntriesTests.key(99_990))
    #expect(map.count(in: middle) == 99_980)
    #expect(map.removeAll(in: middle) == Array(10..<99_990))
    #expect(
      map.keys(in: .all, limit: .max, order: .ascending).compactMap(\.integer) == Array(0..<10)
        + Array(99_990..<100_000))
    for number in Array(0..<10) + Array(99_990..<100_000) {
      #expect(map.removeValue(forKey: SortedEntriesTests.key(number)) == number)
    }
    #expect(map.count == 0)
    #expect(map.keys(in: .all, limit: 1, order: .descending).isEmpty)
  }

  @Test func `an empty map answers`() {
    var map = SortedEntries<Int>()
    #expect(map["a"] == nil)
    #expect(!map.contains("a"))
    #expect(map.count(in: .all) == 0)
    #expect(map.removeValue(forKey: "a") == nil)
    #expect(map.removeAll(in: .all) == [])
    for order in ScanOrder.allCases {
      #expect(map.entries(in: .all, limit: .max, order: order).isEmpty)
      #expect(map.keys(in: .prefix("a"), limit: .max, order: order).isEmpty)
    }
    #expect(map.setValue(1, forKey: "a") == nil)
    #expect(map.removeAll(in: .all) == [1])
    #expect(map.count == 0)
  }

  @Test func `bounds outside of all keys are valid`() {
    var map = SortedEntries<Int>()
    for number in 0..<300 {
      _ = map.setValue(number, forKey: StoreKey("k\(number)"))
    }
    #expect(map.count(in: ..<StoreKey("a")) == 0)
    #expect(map.count(in: StoreKey("z")...) == 0)
    #expect(map.removeAll(in: ..<StoreKey("a")) == [])
    #expect(map.removeAll(in: StoreKey("z")...) == [])
    #expect(map.removeAll(in: "z"..<"a") == [])
    #expect(map.count(in: "a"..<"z") == 300)
    #expect(map.keys(in: StoreKey("k99")..., limit: .max, order: .descending) == ["k99"])
  }

  @Test func `for each rethrows`() {
    var map = SortedEntries<Int>()
    for number in 0..<300 { _ = map.setValue(number, forKey: SortedEntriesTests.key(number)) }
    for order in ScanOrder.allCases {
      var seen = 0
      #expect(throws: CancellationError.self) {
        try map.forEach(order: order) { _, _ in
          seen += 1
          if seen == 200 { throw CancellationError() }
        }
      }
      #expect(seen == 200)
    }
  }

  @Test func `a batch returns every displaced entry`() {
    var map = SortedEntries<String>()
    var displaced: [String] = []
    let changes: [BatchChange<String>] = [
      .set("a", "1"), .set("b", "2"), .set("a", "3"), .remove("missing"), .remove("b"), .set("c", "4"), .set("d", "5"),
      .removeAll("a"..."c"), .removeAll("x"..<"y"), .set("a", "6"),
    ]
    for change in changes {
      map.apply(change, displacing: &displaced)
    }
    #expect(displaced == ["1", "2", "3", "4"])
    #expect(map.entries(in: .all, limit: .max, order: .ascending).map(\.value) == ["6", "5"])
  }
}
