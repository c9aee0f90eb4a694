import Larder
import LarderTesting
import Testing

@Suite struct KeyRangeTests {
  @Test func `operators make ranges`() {
    let halfOpen: KeyRange = "b"..<"d"
    #expect(halfOpen == KeyRange(from: "b", upTo: "d"))
    let closed: KeyRange = "b"..."d"
    #expect(closed == KeyRange(from: "b", upTo: "d\0"))
    let from: KeyRange = StoreKey("b")...
    #expect(from == KeyRange(from: "b", upTo: nil))
    let upTo: KeyRange = ..<StoreKey("d")
    #expect(upTo == KeyRange(from: "", upTo: "d"))
    let through: KeyRange = ...StoreKey("d")
    #expect(through == KeyRange(from: "", upTo: "d\0"))
    #expect(KeyRange.all == KeyRange(from: "", upTo: nil))
  }

  @Test(
    arguments: [
      ("a", [false, true, true, false, false]),
      ("b", [true, true, true, true, false]),
      ("c", [true, true, true, true, true]),
      ("d", [false, true, false, true, true]),
      ("d\0", [false, false, false, false, true]),
      ("e", [false, false, false, false, true]),
    ] as [(StoreKey, [Bool])])
  func `bounds may be included or excluded`(_ key: StoreKey, _ expected: [Bool]) {
    // Half-open, up to and including, up to, closed, from c on, and exactly b, with the result for a, b, c, d, …
    let ranges: [KeyRange] = ["b"..<"d", ...StoreKey("d"), ..<StoreKey("d"), "b"..."d", StoreKey("c")...]
    #expect(ranges.map { $0.contains(key) } == expected)
  }

  @Test func `bounds in the wrong order are empty`() {
    for range: KeyRange in ["d"..<"b", "d"..."b", "b"..<"b", KeyRange(from: "a", upTo: ""), ..<StoreKey("")] {
      #expect(range.isEmpty)
      for key: StoreKey in ["", "a", "b", "c", "d", "e"] {
        #expect(!range.contains(key))
      }
    }
    let one: KeyRange = "b"..."b"
    #expect(!one.isEmpty)
    #expect(!KeyRange.all.isEmpty)
  }

  @Test func `a range of one key contains only that key`() {
    let range = KeyRange.only("b")
    #expect(range.contains("b"))
    #expect(!range.contains("a"))
    #expect(!range.contains("b\0"))
    #expect(!range.contains("ba"))
    #expect(!range.contains("a\u{7F}"))
    let longest = StoreKey(bytes: [UInt8](repeating: 0xFF, count: 511))
    #expect(KeyRange.only(longest).contains(longest))
    #expect(!KeyRange.only(longest).isEmpty)
    #expect(range.onlyKey == "b")
    #expect(KeyRange.prefix("b").onlyKey == nil)
  }

  // MARK: Prefixes

  @Test(
    arguments: [
      ([], []), ([0x61], [0x62]), ([0x61, 0xFF], [0x62]), ([0x61, 0xFF, 0xFF], [0x62]), ([0xFF, 0x61], [0xFF, 0x62]),
      ([0xFE, 0xFF], [0xFF]), ([0x61, 0x00], [0x61, 0x01]),
    ] as [([UInt8], [UInt8])])
  func `a prefix ends before the next one`(_ prefix: [UInt8], _ upper: [UInt8]) {
    let range = KeyRange.prefix(StoreKey(bytes: prefix))
    #expect(range.lowerBound.bytes == prefix)
    #expect(range.upperBound?.bytes ?? [] == upper)
  }

  @Test(arguments: [1, 2, 23, 24, 511]) func `a prefix of 0 x FF has no end`(_ count: Int) {
    let prefix = StoreKey(bytes: [UInt8](repeating: 0xFF, count: count))
    let range = KeyRange.prefix(prefix)
    #expect(range.upperBound == nil)
    #expect(range.contains(prefix))
    #expect(range.contains(prefix.successor))
    #expect(!range.contains(StoreKey(bytes: prefix.bytes.dropLast() + [0xFE, 0xFF])))
  }

  @Test func `a prefix range contains the keys with that prefix`() {
    var random = SeededGenerator()
    for _ in 0..<20_000 {
      let prefix = StoreKey(bytes: random.similarBytes(count: random.integer(in: 0...4)))
      let key = StoreKey(bytes: random.similarBytes(count: random.integer(in: 0...6)))
      guard KeyRange.prefix(prefix).contains(key) == key.hasPrefix(prefix) else {
        Issue.record("prefix \(prefix.bytes), key \(key.bytes)")
        return
      }
    }
  }

  @Test func `neighbours of single byte prefixes are outside`() {
    for byte in UInt8.min...UInt8.max {
      let range = KeyRange.prefix(StoreKey(bytes: [byte]))
      for other in UInt8.min...UInt8.max {
        for tail: [UInt8] in [[], [0], [0xFF], [0xFF, 0xFF]] {
          guard range.contains(StoreKey(bytes: [other] + tail)) == (byte == other) else {
            Issue.record("prefix \(byte), key \([other] + tail)")
            return
          }
        }
      }
    }
  }

  // MARK: Parts

  @Test func `parts and membership follow the byte order`() {
    var random = SeededGenerator()
    func isBelow(_ left: [UInt8], _ right: [UInt8]) -> Bool { left.lexicographicallyPrecedes(right) }
    for _ in 0..<20_000 {
      let lower = random.similarBytes(count: random.integer(in: 0...3))
      let upper = random.integer(in: 0...4) == 0 ? nil : random.similarBytes(count: random.integer(in: 0...3))
      let pivot = random.similarBytes(count: random.integer(in: 0...3))
      let key = random.similarBytes(count: random.integer(in: 0...4))
      let range = KeyRange(from: StoreKey(bytes: lower), upTo: upper.map { StoreKey(bytes: $0) })
      let belongs = !isBelow(key, lower) && upper.map { isBelow(key, $0) } ?? true
      let storeKey = StoreKey(bytes: key)
      let after = range.after(StoreKey(bytes: pivot))
      let before = range.before(StoreKey(bytes: pivot))
      guard range.contains(storeKey) == belongs,
        after.contains(storeKey) == (belongs && isBelow(pivot, key)),
        before.contains(storeKey) == (belongs && isBelow(key, pivot)),
        !range.isEmpty || !belongs
      else {
        Issue.record("range \(lower)..<\(String(describing: upper)), pivot \(pivot), key \(key)")
        return
      }
    }
  }

  @Test func `a part of an empty range is empty`() {
    let range: KeyRange = "d"..<"b"
    #expect(range.after("a").isEmpty)
    #expect(range.after("z").isEmpty)
    #expect(range.before("z").isEmpty)
    #expect(KeyRange.all.before("").isEmpty)
  }

  @Test func `describes itself`() {
    #expect(KeyRange.all.description == "all keys")
    #expect(KeyRange(from: "a", upTo: "b").description == #""a"..<"b""#)
    #expect(KeyRange(from: "a", upTo: nil).description == #""a"..."#)
    #expect(KeyRange(from: "", upTo: "b").description == #"..<"b""#)
  }
}
