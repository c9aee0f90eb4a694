import Foundation
import Larder
import LarderTesting
import TestSupport
import Testing

@Suite struct StoreKeyComponentsTests {
  // MARK: The format

  /// The examples of the specification, and further ones that follow from its text.
  @Test(
    arguments: [
      ([.null], [0x00]),
      ([.bytes(Array("foo\0bar".utf8))], [0x01, 0x66, 0x6F, 0x6F, 0x00, 0xFF, 0x62, 0x61, 0x72, 0x00]),
      ([.string("F\u{D4}O\0bar")], [0x02, 0x46, 0xC3, 0x94, 0x4F, 0x00, 0xFF, 0x62, 0x61, 0x72, 0x00]),
      (
        [.nested([.bytes(Array("foo\0bar".utf8)), .null, .nested([])])],
        [0x05, 0x01, 0x66, 0x6F, 0x6F, 0x00, 0xFF, 0x62, 0x61, 0x72, 0x00, 0x00, 0xFF, 0x05, 0x00, 0x00]
      ),
      ([.nested([])], [0x05, 0x00]),
      ([.nested([.null])], [0x05, 0x00, 0xFF, 0x00]),
      ([.nested([.null]), .null], [0x05, 0x00, 0xFF, 0x00, 0x00]),
      ([.nested([.nested([]), .null])], [0x05, 0x05, 0x00, 0x00, 0xFF, 0x00]),
      ([.nested([.nested([.null])]), .nested([])], [0x05, 0x05, 0x00, 0xFF, 0x00, 0x00, 0x05, 0x00]),
      ([.integer(-5_551_212)], [0x11, 0xAB, 0x4B, 0x93]),
      ([.integer(0)], [0x14]),
      ([.integer(1)], [0x15, 0x01]),
      ([.integer(-1)], [0x13, 0xFE]),
      ([.integer(255)], [0x15, 0xFF]),
      ([.integer(256)], [0x16, 0x01, 0x00]),
      ([.integer(-255)], [0x13, 0x00]),
      ([.integer(-256)], [0x12, 0xFE, 0xFF]),
      ([.integer(Int128(UInt64.max))], [0x1C, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF]),
      ([.integer(-Int128(UInt64.max))], [0x0C, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00]),
      ([.integer(Int128(UInt64.max) + 1)], [0x1D, 0x09, 0x01, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00]),
      ([.integer(-Int128(UInt64.max) - 1)], [0x0B, 0xF6, 0xFE, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF]),
      ([.integer(.max)], [0x1D, 0x10, 0x7F] + [UInt8](repeating: 0xFF, count: 15)),
      ([.integer(.min)], [0x0B, 0xEF, 0x7F] + [UInt8](repeating: 0xFF, count: 15)),
      ([.float(-42)], [0x20, 0x3D, 0xD7, 0xFF, 0xFF]),
      ([.float(0)], [0x20, 0x80, 0x00, 0x00, 0x00]),
      ([.float(-0.0)], [0x20, 0x7F, 0xFF, 0xFF, 0xFF]),
      ([.double(1)], [0x21, 0xBF, 0xF0, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00]),
      ([.double(-.infinity)], [0x21, 0x00, 0x0F, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF]),
      ([.boolean(false), .boolean(true)], [0x26, 0x27]),
      ([.uuid(UUID(uuid: (0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15)))], [0x30] + Array(0...15)),
      ([], []),
    ] as [([KeyComponent], [UInt8])])
  func matchesFoundationDB(_ components: [KeyComponent], _ bytes: [UInt8]) throws {
    let key = StoreKey(components: components)
    #expect(key.bytes == bytes)
    #expect(try StoreKey(bytes: bytes).components() == components)
  }

  @Test(arguments: 1...15) func `integers are tested around each byte length`(_ bytes: Int) throws {
    let power = Int128(1) << (8 * bytes)
    let integers = [-power - 1, -power, -power + 1, power - 1, power, power + 1]
    let keys = integers.map { StoreKey(components: $0) }
    #expect(keys == keys.sorted())
    #expect(Set(keys).count == 6)
    for (integer, key) in zip(integers, keys) {
      #expect(try key.components() == [.integer(integer)])
      let length = integer.magnitude < UInt128(1) << (8 * bytes) ? bytes : bytes + 1
      #expect(key.count == 1 + length + (length > 8 ? 1 : 0))
    }
  }

  // MARK: Bounds

  /// Every range that can be written with components has possible bounds.
  @Test func `bounds of components are recognized`() {
    let seed = SeededGenerator.seedOfProcess
    var random = SeededGenerator(seed: seed, purpose: "bounds of components")
    let last = UUID(uuid: (255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255))
    var tuples: [[KeyComponent]] = [[], [.null], [.boolean(true)], [.integer(.min)], [.uuid(last)]]
    tuples += (0..<500).map { _ in StoreKeyComponentsTests.tuple(&random) }
    for tuple in tuples {
      let key = StoreKey(components: tuple)
      let part = StoreKey(bytes: key.bytes.prefix(random.integer(in: 0...key.count)))
      let ranges: [KeyRange] = [
        .prefix(components: tuple), .prefix(key), .prefix(part), .only(key), key..., ...key, ..<key, part...key,
        KeyRange.prefix(key).after(key), KeyRange(from: key, upTo: StoreKey(bytes: [0xFF])),
        KeyRange(from: KeyRange.prefix(key).upperBound ?? "", upTo: nil),
      ]
      for range in ranges {
        #expect(range.lowerBound.isBoundOfComponents, "\(range), seed \(seed)")
        #expect(range.upperBound?.isBoundOfComponents ?? true, "\(range), seed \(seed)")
      }
    }
  }

  @Test(arguments: ["swift", "2026-11-23", "user/7", "é", "A", "~", "10", "\u{7}", "-"])
  func `text is no bound of components`(_ text: String) {
    #expect(!StoreKey(text).isBoundOfComponents)
  }

  // MARK: Round trips and order

  private static let scalars: [String] = ["", "a", "b", "\0", "a\0", "a\0b", "é", "e\u{301}", "\u{FF}", "🐄", "\u{1}"]

  private static func integer(_ random: inout SeededGenerator) -> Int128 {
    let bits = UInt128(random.next()) << 64 | UInt128(random.next())
    let integer = Int128(truncatingIfNeeded: bits) >> random.integer(in: 0...127)
    switch random.integer(in: 0...9) {
    case 0: return .min
    case 1: return .max
    case 2: return Int128(1) << (8 * random.integer(in: 0...15)) + Int128(random.integer(in: -1...1))
    case 3: return -(Int128(1) << (8 * random.integer(in: 0...15))) + Int128(random.integer(in: -1...1))
    default: return integer
    }
  }

  private static func component(_ random: inout SeededGenerator, depth: Int = 0) -> KeyComponent {
    switch random.integer(in: 0...(depth < 3 ? 9 : 7)) {
    case 0: .null
    case 1: .bytes(random.similarBytes(count: random.integer(in: 0...4)))
    case 2: .string(random.element(of: scalars))
    case 3: .integer(integer(&random))
    case 4:
      .float(
        random.element(of: [
          0, -0.0, 1, -1, .infinity, -.infinity, .leastNonzeroMagnitude, Float(bitPattern: UInt32(random.next() >> 32)),
        ]))
    case 5:
      .double(
        random.element(of: [
          0, -0.0, 1, -1, .infinity, -.infinity, .greatestFiniteMagnitude, Double(bitPattern: random.next()),
        ]))
    case 6: .boolean(random.integer(in: 0...1) == 0)
    case 7: .uuid(UUID(uuid: random.bytes(count: 16).withUnsafeBytes { $0.loadUnaligned(as: uuid_t.self) }))
    default: .nested((0..<random.integer(in: 0...3)).map { _ in component(&random, depth: depth + 1) })
    }
  }

  private static func tuple(_ random: inout SeededGenerator) -> [KeyComponent] {
    (0..<random.integer(in: 0...4)).map { _ in component(&random) }
  }

  /// Compares components by their meaning, without any encoding: by type, then by value.
  ///
  /// A shorter list precedes a longer one that starts with it.
  private static func compare(_ left: [KeyComponent], _ right: [KeyComponent]) -> Int {
    for (left, right) in zip(left, right) {
      let result = compare(left, right)
      if result != 0 { return result }
    }
    return left.count == right.count ? 0 : left.count < right.count ? -1 : 1
  }

  private static func compare(_ left: KeyComponent, _ right: KeyComponent) -> Int {
    func ordered<Content: Comparable>(_ left: Content, _ right: Content) -> Int {
      left == right ? 0 : left < right ? -1 : 1
    }
    func bytewise(_ left: some Sequence<UInt8>, _ right: some Sequence<UInt8>) -> Int {
      left.elementsEqual(right) ? 0 : left.lexicographicallyPrecedes(right) ? -1 : 1
    }
    func total<Number: BinaryFloatingPoint>(_ left: Number, _ right: Number) -> Int {
      left.isTotallyOrdered(belowOrEqualTo: right) ? right.isTotallyOrdered(belowOrEqualTo: left) ? 0 : -1 : 1
    }
    switch (left, right) {
    case (.null, .null): return 0
    case (.bytes(let left), .bytes(let right)): return bytewise(left, right)
    case (.string(let left), .string(let right)): return bytewise(left.utf8, right.utf8)
    case (.nested(let left), .nested(let right)): return compare(left, right)
    case (.integer(let left), .integer(let right)): return ordered(left, right)
    case (.float(let left), .float(let right)): return total(left, right)
    case (.double(let left), .double(let right)): return total(left, right)
    case (.boolean(let left), .boolean(let right)): return ordered(left ? 1 : 0, right ? 1 : 0)
    case (.uuid(let left), .uuid(let right)):
      return withUnsafeBytes(of: left.uuid) { left in withUnsafeBytes(of: right.uuid) { bytewise(left, $0) } }
    default: return ordered(rank(left), rank(right))
    }
  }

  private static func rank(_ component: KeyComponent) -> Int {
    switch component {
    case .null: 0
    case .bytes: 1
    case .string: 2
    case .nested: 3
    case .integer: 4
    case .float: 5
    case .double: 6
    case .boolean: 7
    case .uuid: 8
    }
  }

  @Test func `random tuples round trip`() throws {
    var random = SeededGenerator()
    for _ in 0..<5_000 {
      let tuple = StoreKeyComponentsTests.tuple(&random)
      let decoded = try StoreKey(components: tuple).components()
      // Uses `compare`, which distinguishes values that `==` does not: -0.0 and 0.0, NaNs, and composed characters.
      guard StoreKeyComponentsTests.compare(tuple, decoded) == 0 else {
        Issue.record("\(tuple) came back as \(decoded)")
        return
      }
    }
  }

  @Test func `keys sort as their components`() {
    var random = SeededGenerator()
    for _ in 0..<20_000 {
      let left = StoreKeyComponentsTests.tuple(&random)
      // The other tuple often starts with this one, or almost.
      var right = StoreKeyComponentsTests.tuple(&random)
      switch random.integer(in: 0...2) {
      case 0: right = left.prefix(random.integer(in: 0...left.count)) + right
      case 1: right = Array(left.prefix(random.integer(in: 0...left.count)))
      default: break
      }
      let expected = StoreKeyComponentsTests.compare(left, right)
      let leftKey = StoreKey(components: left)
      let rightKey = StoreKey(components: right)
      guard leftKey < rightKey ? expected < 0 : leftKey == rightKey ? expected == 0 : expected > 0 else {
        Issue.record("\(left) and \(right) sort differently as keys")
        return
      }
    }
  }

  @Test func `nans keep their bits`() throws {
    for bits: UInt64 in [0x7FF8_0000_0000_0000, 0xFFF8_0000_0000_0000, 0x7FF0_0000_0000_0001, 0xFFFF_FFFF_FFFF_FFFF] {
      let decoded = try StoreKey(components: Double(bitPattern: bits)).components()
      #expect(decoded.first?.double?.bitPattern == bits)
    }
    for bits: UInt32 in [0x7FC0_0000, 0xFFC0_0000, 0x7F80_0001, 0xFFFF_FFFF] {
      let decoded = try StoreKey(components: Float(bitPattern: bits)).components()
      #expect(decoded.first?.float?.bitPattern == bits)
    }
    #expect(StoreKey(components: -0.0) < StoreKey(components: 0.0))
    #expect(StoreKey(components: Double.infinity) < StoreKey(components: Double.nan))
  }

  @Test func `equal components may make two keys`() {
    for (left, right) in [
      (.string("\u{E9}"), .string("e\u{301}")), (.double(-0.0), .double(0)), (.float(-0.0), .float(0)),
    ]
      as [(KeyComponent, KeyComponent)]
    {
      #expect(left == right)
      #expect(StoreKey(components: left) != StoreKey(components: right))
    }
  }

  // MARK: Bad input

  @Test func `every truncation is refused or is a shorter tuple`() {
    var random = SeededGenerator()
    for _ in 0..<500 {
      let tuple = StoreKeyComponentsTests.tuple(&random)
      let bytes = StoreKey(components: tuple).bytes
      for length in 0..<bytes.count {
        let key = StoreKey(bytes: bytes.prefix(length))
        do {
          // It may end after a component, or where an escaped NUL became the end of a string.
          let components = try key.components()
          #expect(StoreKey(components: components) == key)
        } catch StoreError.Code.invalidKey {
        } catch {
          Issue.record(error)
        }
      }
    }
  }

  @Test(
    arguments: [
      [.string("text")], [.bytes([1, 2])], [.nested([.boolean(true)])], [.integer(70_000)], [.integer(.max)],
      [.integer(.min)],
      [.float(1)], [.double(1)], [.uuid(UUID())], [.nested([.nested([.string("a\0b")])])],
    ] as [[KeyComponent]])
  func `truncated components are refused`(_ components: [KeyComponent]) {
    let bytes = StoreKey(components: components).bytes
    for length in 1..<bytes.count {
      let key = StoreKey(bytes: bytes.prefix(length))
      let error = expectStoreError(.invalidKey) { try key.components() }
      #expect(error?.key == key)
      #expect(error?.operation == .decodeKey)
    }
  }

  @Test func `arbitrary bytes are refused or round trip`() {
    var random = SeededGenerator()
    let codes: [UInt8] = [
      0x00, 0x01, 0x02, 0x05, 0x0B, 0x0C, 0x13, 0x14, 0x15, 0x1C, 0x1D, 0x20, 0x21, 0x26, 0x30, 0xFF,
    ]
    var accepted = 0
    for round in 0..<60_000 {
      var bytes = random.bytes(count: random.integer(in: 0...(round % 100 == 0 ? 511 : 24)))
      for index in bytes.indices where random.integer(in: 0...2) > 0 {
        bytes[index] = random.element(of: codes)
      }
      let key = StoreKey(bytes: bytes)
      do {
        let components = try key.components()
        accepted += 1
        // A tuple has exactly one encoding, so the decoded tuple must encode to the same bytes.
        guard StoreKey(components: components) == key else {
          Issue.record("\(key) reads as \(components), which is written differently")
          return
        }
      } catch StoreError.Code.invalidKey {
      } catch {
        Issue.record(error)
        return
      }
    }
    #expect(accepted > 1_000)
  }

  @Test(
    arguments: [
      [0x15, 0x00], [0x16, 0x00, 0x01], [0x13, 0xFF], [0x12, 0xFF, 0xFE], [0x0C, 0xFF, 0, 0, 0, 0, 0, 0, 0],
      [0x1D, 0x00], [0x1D, 0x01, 0x01], [0x1D, 0x08, 1, 2, 3, 4, 5, 6, 7, 8], [0x1D, 0x09, 0, 1, 2, 3, 4, 5, 6, 7, 8],
      [0x0B, 0xFF], [0x0B, 0xFE, 0xFE], [0x0B, 0xF7, 0, 0, 0, 0, 0, 0, 0, 0],
      [0x0B, 0xF6, 0xFF, 0, 0, 0, 0, 0, 0, 0, 0],
    ] as [[UInt8]])
  func `an integer not in its shortest form is refused`(_ bytes: [UInt8]) {
    expectStoreError(.invalidKey) { try StoreKey(bytes: bytes).components() }
  }

  @Test(
    arguments: [
      [0x1D, 0x10, 0x80] + [UInt8](repeating: 0, count: 15),
      [0x0B, 0xEF, 0x7F] + [UInt8](repeating: 0xFF, count: 14) + [0xFE],
      [0x1D, 0x11, 0x01] + [UInt8](repeating: 0, count: 16),
      [0x0B, 0xEE, 0xFE] + [UInt8](repeating: 0, count: 16),
      [0x1D, 0xFF] + [UInt8](repeating: 1, count: 255),
    ] as [[UInt8]])
  func `an integer beyond 128 bits is refused`(_ bytes: [UInt8]) {
    expectStoreError(.invalidKey) { try StoreKey(bytes: bytes).components() }
  }

  @Test func `every other type code is refused`() {
    let known: Set<UInt8> = [0x00, 0x01, 0x02, 0x05, 0x20, 0x21, 0x26, 0x27, 0x30]
    for code in UInt8.min...UInt8.max where !known.contains(code) && !(0x0B...0x1D).contains(code) {
      expectStoreError(.invalidKey) { try StoreKey(bytes: [code] + [UInt8](repeating: 1, count: 20)).components() }
    }
  }

  @Test func `text that is not UTF8 is refused`() {
    for content: [UInt8] in [[0x80], [0xC0, 0x80], [0xED, 0xA0, 0x80], [0xC3]] {
      expectStoreError(.invalidKey) { try StoreKey(bytes: [0x02] + content + [0x00]).components() }
      #expect(throws: Never.self) { try StoreKey(bytes: [0x01] + content + [0x00]).components() }
    }
  }

  @Test func `deep nesting is read or refused`() throws {
    // As deep as a key can hold, with as many levels opened but not closed.
    let deep = [UInt8](repeating: 0x05, count: 255) + [UInt8](repeating: 0x00, count: 255)
    let key = StoreKey(bytes: deep)
    #expect(StoreKey(components: try key.components()) == key)
    expectStoreError(.invalidKey) { try StoreKey(bytes: [UInt8](repeating: 0x05, count: 511)).components() }
  }

  @Test func `a key that is too long is refused`() throws {
    let longest = StoreKey(components: String(repeating: "a", count: 509))
    #expect(longest.count == StoreKey.maximumLength)
    #expect(try longest.components().first?.string?.utf8.count == 509)
    expectStoreError(.invalidKey) { try StoreKey(components: String(repeating: "a", count: 510)).components() }
  }

  @Test func `plain keys are not components`() {
    for key: StoreKey in ["txn", "user:1", "a", "\u{FF}"] {
      expectStoreError(.invalidKey) { try key.components() }
    }
    #expect(!StoreKey(components: "txn", 1).hasPrefix("txn"))
  }

  // MARK: Swift values

  private struct AccountNumber: KeyComponentConvertible {
    let number: Int
    var keyComponent: KeyComponent { .integer(Int128(number)) }
  }

  @Test func `accepts Swift values`() throws {
    let uuid = UUID()
    let missing: Int? = nil
    let there: String? = "x"
    let key = StoreKey(
      components: "text", Substring("sub"), true, Float(1.5), 2.5, 1, Int8(-1), Int16(-2), Int32(-3), Int64(-4),
      Int128.max, UInt(5), UInt8(6), UInt16(7), UInt32(8), UInt64.max)
    #expect(
      try key.components() == [
        .string("text"), .string("sub"), .boolean(true), .float(1.5), .double(2.5), .integer(1), .integer(-1),
        .integer(-2), .integer(-3), .integer(-4), .integer(.max), .integer(5), .integer(6), .integer(7), .integer(8),
        .integer(Int128(UInt64.max)),
      ])
    let others = StoreKey(
      components: uuid, Data([1, 2, 3])[1...], [UInt8]([9]), missing, there, KeyComponent.null, AccountNumber(number: 3)
    )
    #expect(
      try others.components() == [
        .uuid(uuid), .bytes([2, 3]), .bytes([9]), .null, .string("x"), .null, .integer(3),
      ])
  }

  @Test func `a date is exact`() throws {
    var random = SeededGenerator()
    var dates: [Date] = [.distantPast, .distantFuture, Date(timeIntervalSinceReferenceDate: 0), Date()]
    dates += (0..<500).map { _ in
      Date(timeIntervalSinceReferenceDate: Double.random(in: -1e10...1e10, using: &random))
    }
    for date in dates {
      #expect(try StoreKey(components: date).components().first?.date == date)
    }
    #expect(dates.sorted().map { StoreKey(components: $0) } == dates.map { StoreKey(components: $0) }.sorted())
  }

  @Test func `accessors return only their case`() {
    let uuid = UUID()
    let components: [KeyComponent] = [
      .null, .bytes([1]), .string("a"), .nested([.null]), .integer(1), .float(1), .double(1), .boolean(true),
      .uuid(uuid),
    ]
    #expect(components.map(\.bytes) == [nil, [1], nil, nil, nil, nil, nil, nil, nil])
    #expect(components.map(\.string) == [nil, nil, "a", nil, nil, nil, nil, nil, nil])
    #expect(components.map(\.nested) == [nil, nil, nil, [.null], nil, nil, nil, nil, nil])
    #expect(components.map(\.integer) == [nil, nil, nil, nil, 1, nil, nil, nil, nil])
    #expect(components.map(\.float) == [nil, nil, nil, nil, nil, 1, nil, nil, nil])
    #expect(components.map(\.double) == [nil, nil, nil, nil, nil, nil, 1, nil, nil])
    #expect(components.map(\.boolean) == [nil, nil, nil, nil, nil, nil, nil, true, nil])
    #expect(components.map(\.uuid) == [nil, nil, nil, nil, nil, nil, nil, nil, uuid])
    #expect(components.map { $0.date?.timeIntervalSinceReferenceDate } == [nil, nil, nil, nil, nil, nil, 1, nil, nil])
  }

  // MARK: Ranges

  @Test func `a prefix contains exactly the keys with its components`() {
    let range = KeyRange.prefix(components: "a")
    #expect(range.contains(StoreKey(components: "a")))
    #expect(range.contains(StoreKey(components: "a", 1)))
    #expect(range.contains(StoreKey(components: "a", KeyComponent.null)))
    #expect(
      range.contains(
        StoreKey(
          components: "a", UUID(uuid: (255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255)))
      ))
    #expect(!range.contains(StoreKey(components: "a\0")))
    #expect(!range.contains(StoreKey(components: "a\0b")))
    #expect(!range.contains(StoreKey(components: "ab")))
    #expect(!range.contains(StoreKey(components: Array("a".utf8))))
    #expect(KeyRange.prefix(components: [KeyComponent]()) == .all)
    #expect(KeyRange.prefix(components: []) == .all)
  }

  @Test func `a prefix of random tuples contains the right keys`() {
    var random = SeededGenerator()
    for _ in 0..<10_000 {
      let tuple = StoreKeyComponentsTests.tuple(&random)
      let prefix =
        random.integer(in: 0...1) == 0
        ? StoreKeyComponentsTests.tuple(&random) : Array(tuple.prefix(random.integer(in: 0...tuple.count)))
      let begins =
        prefix.count <= tuple.count
        && StoreKeyComponentsTests.compare(Array(tuple.prefix(prefix.count)), prefix) == 0
      guard KeyRange.prefix(components: prefix).contains(StoreKey(components: tuple)) == begins else {
        Issue.record("prefix \(prefix), tuple \(tuple)")
        return
      }
    }
  }
}
