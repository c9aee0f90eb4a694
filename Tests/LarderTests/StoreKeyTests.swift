import Foundation
import Larder
import LarderTesting
import Testing

@Suite struct StoreKeyTests {
  /// Returns byte strings of every length around the inline capacity, many of them similar, and some long ones.
  private static func samples(_ random: inout SeededGenerator, rounds: Int) -> [[UInt8]] {
    var samples: [[UInt8]] = []
    for _ in 0..<rounds {
      for length in Array(0...26) + [31, 32, 33, 100, 510, 511, 512] {
        samples.append(random.similarBytes(count: length))
        samples.append([UInt8](repeating: random.element(of: [0x00, 0x61, 0xFF]), count: length))
        // A sample that shares a long prefix with the previous one.
        if let previous = samples.last, let last = previous.last {
          samples.append(previous.dropLast() + [last &+ 1])
          samples.append(previous + [0])
        }
      }
    }
    return samples
  }

  // MARK: Order and identity

  @Test func `orders by its bytes`() {
    var random = SeededGenerator()
    let samples = StoreKeyTests.samples(&random, rounds: 2)
    let keys = samples.map { StoreKey(bytes: $0) }
    for (left, leftBytes) in zip(keys, samples) {
      for (right, rightBytes) in zip(keys, samples) {
        let isLess = leftBytes.lexicographicallyPrecedes(rightBytes)
        guard (left < right) == isLess, (left == right) == (leftBytes == rightBytes),
          left.hasPrefix(right) == leftBytes.starts(with: rightBytes)
        else {
          Issue.record("\(leftBytes) and \(rightBytes) compare differently as keys")
          return
        }
      }
    }
    let sortedBytes = samples.sorted { $0.lexicographicallyPrecedes($1) }
    #expect(keys.sorted().map(\.bytes) == sortedBytes)
  }

  @Test func `keeps its bytes`() {
    var random = SeededGenerator()
    for bytes in StoreKeyTests.samples(&random, rounds: 2) {
      let key = StoreKey(bytes: bytes)
      let seen = key.withBytes { span in span.withUnsafeBytes { Array($0) } }
      guard key.bytes == bytes, key.count == bytes.count, key.isEmpty == bytes.isEmpty, seen == bytes,
        key.withUnsafeBytes({ Array($0) }) == bytes
      else {
        Issue.record("\(bytes) became \(key.bytes)")
        return
      }
    }
  }

  @Test func `keys can be joined`() {
    var random = SeededGenerator()
    let samples = StoreKeyTests.samples(&random, rounds: 1)
    for (left, right) in zip(samples, samples.reversed()) {
      let key = StoreKey(bytes: left).appending(StoreKey(bytes: right))
      guard key == StoreKey(bytes: left + right) else {
        Issue.record("\(left) and \(right) became \(key.bytes)")
        return
      }
    }
  }

  @Test func `equal keys have equal hashes`() {
    var random = SeededGenerator()
    for bytes in StoreKeyTests.samples(&random, rounds: 1) {
      let padded = Data([1, 2, 3] + bytes + [4, 5])
      let ways: [StoreKey] = [
        StoreKey(bytes: bytes),
        StoreKey(bytes: ([9] + bytes)[1...]),
        StoreKey(bytes: padded[3..<3 + bytes.count]),
        StoreKey(bytes: AnySequence(bytes)),
        StoreKey(bytes: bytes.lazy.map { $0 ^ 1 }.map { $0 ^ 1 }),
        StoreKey(bytes: bytes.reversed().reversed()),
        bytes.withUnsafeBytes { StoreKey(copying: $0) },
        StoreKey(bytes: StoreKey(bytes: bytes).bytes),
      ]
      #expect(Set(ways) == [ways[0]])
      #expect(Set(ways.map(\.hashValue)).count == 1)
      #expect(ways.allSatisfy { $0.bytes == bytes })
    }
  }

  @Test func `different keys are distinct in a set`() {
    // 256 keys of one byte, each followed by up to 30 NULs, so that they differ only in bytes that padding could hide.
    var seen: Set<StoreKey> = []
    for byte in UInt8.min...UInt8.max {
      for zeros in 0...30 {
        let (isNew, _) = seen.insert(StoreKey(bytes: [byte] + [UInt8](repeating: 0, count: zeros)))
        #expect(isNew)
      }
    }
    #expect(seen.count == 256 * 31)
  }

  @Test func `a slice of data gives its own bytes`() {
    let data = Data("0123456789".utf8)
    #expect(StoreKey(bytes: data[3..<6]) == "345")
    #expect(StoreKey(bytes: data[10..<10]).isEmpty)
    #expect(StoreKey(bytes: data.dropFirst(9)) == "9")
    #expect(StoreKey(bytes: "0123456789".utf8.dropFirst(7)) == "789")
  }

  @Test func `takes four words of memory`() {
    #expect(MemoryLayout<StoreKey>.size == 32)
    #expect(MemoryLayout<StoreKey?>.size <= 40)
  }

  @Test func `bytes above ASCII stay distinct`() {
    let bytes: [UInt8] = [0x80, 0xC0, 0xFF]
    let keys = bytes.map { StoreKey(bytes: [$0]) }
    #expect(Set(keys).count == 3)
    #expect(keys == keys.sorted())
    #expect(StoreKey(bytes: [0x7F]) < keys[0])
    #expect(keys.allSatisfy { $0.string == nil })
  }

  // MARK: Text

  @Test func `composed and decomposed text are two keys`() {
    let composed = "caf\u{E9}"
    let decomposed = "cafe\u{301}"
    #expect(composed == decomposed)
    #expect(StoreKey(composed) != StoreKey(decomposed))
    #expect(Array(StoreKey(composed).bytes) == Array(composed.utf8))
    #expect(StoreKey(decomposed).string?.utf8.elementsEqual(decomposed.utf8) == true)
    #expect(StoreKey("A") != StoreKey("a"))
  }

  @Test func `text round trips`() {
    let texts = [
      "", "a", "/", "..", "../foo/../bar/../../baz../", "foo//bar///baz", "a:b", "a\\b", "\0", "a\0b", "☺☺☺", "🐄",
      "👨‍👩‍👧‍👦", "\u{FEFF}x", "x\u{301}", "\r\n", "12345678901234567890123", "123456789012345678901234",
      String(repeating: "é", count: 300),
    ]
    for text in texts {
      let key = StoreKey(text)
      #expect(key.bytes == Array(text.utf8))
      #expect(key.string.map { Array($0.utf8) } == Array(text.utf8))
      #expect(StoreKey(stringLiteral: text) == key)
    }
    #expect(Set(texts.map { StoreKey($0) }).count == texts.count)
  }

  @Test func `can be created from literals and interpolation`() {
    let id = 42
    let name = "é"
    let key: StoreKey = "user:\(id):\(name)"
    #expect(key == StoreKey("user:42:é"))
    #expect(key.bytes == Array("user:42:é".utf8))
    let long: StoreKey = "a key longer than the twenty-three bytes kept inline: \(id)"
    #expect(long.string == "a key longer than the twenty-three bytes kept inline: 42")
  }

  @Test func `text of ill formed bytes is nil`() {
    for bytes: [UInt8] in [[0x80], [0xC0, 0x80], [0xED, 0xA0, 0x80], [0xF4, 0x90, 0x80, 0x80], [0x61, 0xC3]] {
      #expect(StoreKey(bytes: bytes).string == nil)
      #expect(StoreKey(bytes: bytes).description == "0x" + bytes.map { String(format: "%02x", $0) }.joined())
    }
  }

  @Test func `describes itself`() {
    #expect(StoreKey("user:1").description == "\"user:1\"")
    #expect(StoreKey("a\"b\n").description == #""a\"b\n""#)
    #expect(StoreKey("").description == "\"\"")
    #expect(StoreKey(bytes: [0x80, 0x0A]).description == "0x800a")
    // Text that looks like bytes is distinguishable from them.
    #expect(StoreKey("0x800a").description == "\"0x800a\"")
  }

  // MARK: Integers and UUIDs

  @Test func `integers keep their order`() {
    var random = SeededGenerator()
    var integers: [Int64] = [.min, .min + 1, -256, -255, -2, -1, 0, 1, 2, 255, 256, .max - 1, .max]
    integers += (0..<2_000).map { _ in Int64(bitPattern: random.next()) >> random.integer(in: 0...63) }
    integers.sort()
    let keys = integers.map { StoreKey(integer: $0) }
    #expect(keys == keys.sorted())
    #expect(keys.map(\.integer) == integers)
    #expect(Set(keys).count == Set(integers).count)
  }

  @Test func `an integer is eight bytes big endian with the sign flipped`() {
    #expect(StoreKey(integer: 0).bytes == [0x80, 0, 0, 0, 0, 0, 0, 0])
    #expect(StoreKey(integer: -1).bytes == [0x7F, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF])
    #expect(StoreKey(integer: Int64.min).bytes == [UInt8](repeating: 0, count: 8))
    #expect(StoreKey(integer: Int64.max).bytes == [UInt8](repeating: 0xFF, count: 8))
    #expect(StoreKey(integer: 258).bytes == [0x80, 0, 0, 0, 0, 0, 1, 2])
    // The same bytes give the same key, however it was created.
    let key = StoreKey(bytes: [0x80, 0, 0, 0, 0, 0, 1, 2])
    #expect(key == StoreKey(integer: 258))
    #expect(key.hashValue == StoreKey(integer: Int64(258)).hashValue)
    #expect(key.integer == 258)
  }

  @Test(arguments: [0, 1, 7, 9, 16, 30]) func `only eight bytes are an integer`(_ count: Int) {
    #expect(StoreKey(bytes: [UInt8](repeating: 1, count: count)).integer == nil)
  }

  @Test func `a UUID is its sixteen bytes`() throws {
    let uuid = try #require(UUID(uuidString: "00112233-4455-6677-8899-AABBCCDDEEFF"))
    let key = StoreKey(uuid)
    #expect(key.bytes == (0...15).map { UInt8($0 * 0x11) })
    #expect(key.uuid == uuid)
    #expect(key == StoreKey(bytes: key.bytes))
    for count in [0, 8, 15, 17, 32] {
      #expect(StoreKey(bytes: [UInt8](repeating: 7, count: count)).uuid == nil)
    }
  }

  // MARK: Successors and prefixes

  @Test func `no key is between a key and its successor`() {
    var random = SeededGenerator()
    for bytes in StoreKeyTests.samples(&random, rounds: 1) {
      let key = StoreKey(bytes: bytes)
      #expect(key.successor.bytes == bytes + [0])
      #expect(key < key.successor)
      #expect(key.successor.hasPrefix(key))
    }
    let keys = Set(StoreKeyTests.samples(&random, rounds: 3).map { StoreKey(bytes: $0) }).sorted()
    for (left, right) in zip(keys, keys.dropFirst()) {
      #expect(left.successor <= right)
    }
  }

  @Test func `begins with a prefix`() {
    let key: StoreKey = "a key of more than twenty-three bytes"
    #expect(key.hasPrefix(""))
    #expect(key.hasPrefix("a key"))
    #expect(key.hasPrefix("a key of more than twenty-three"))
    #expect(key.hasPrefix(key))
    #expect(!key.hasPrefix(key.successor))
    #expect(!key.hasPrefix("A"))
    #expect(!StoreKey("").hasPrefix("a"))
    #expect(!StoreKey("a").hasPrefix("a\0"))
    #expect(StoreKey("e\u{301}").hasPrefix("e"))
  }

  @Test func `reading forwards errors and results`() {
    for text in ["short", "a key that is longer than twenty-three bytes"] {
      let key = StoreKey(text)
      #expect(throws: CancellationError.self) { try key.withBytes { _ in throw CancellationError() } }
      #expect(throws: CancellationError.self) { try key.withUnsafeBytes { _ in throw CancellationError() } }
      #expect(key.withBytes { $0.byteCount } == text.utf8.count)
    }
  }
}
