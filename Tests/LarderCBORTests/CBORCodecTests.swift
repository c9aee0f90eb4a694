import Foundation
import Larder
import LarderCBOR
import LarderTesting
import Testing

@Suite struct CBORCodecTests {
  private struct User: Codable, Sendable, Equatable {
    var name: String
    var age: Int?
    var tags: [String]
    var born: Date
    var scores: [String: Double]
  }

  private enum Shape: Codable, Sendable, Equatable, Hashable {
    case point
    case circle(radius: Double)
    case path([Double])
    case pair(Int, String?)
    indirect case both(Shape, Shape)
  }

  private enum Level: String, Codable, Sendable { case low, high }

  private struct Refusing: Codable, Sendable, Equatable {
    init() {}
    init(from decoder: any Decoder) throws { throw CancellationError() }
    func encode(to encoder: any Encoder) throws { throw CancellationError() }
  }

  #if !((os(macOS) || targetEnvironment(macCatalyst)) && arch(x86_64))
  @Test func `every half precision number keeps its bits`() throws {
    let numbers = (0...UInt16.max).map { Float16(bitPattern: $0) }
    let copies = try Coding.decoded([Float16].self, Coding.encoded(numbers))
    #expect(copies.map(\.bitPattern) == numbers.map(\.bitPattern))
    #expect(try Coding.hex(Coding.encoded(Float16.signalingNaN)) == "f97d00")
  }
  #endif

  @Test func `values of many types round trip`() throws {
    try Coding.expectRoundTrip([Int8.min, -1, 0, 1, .max])
    try Coding.expectRoundTrip([Int16.min, -257, -256, -25, -24, 23, 24, 255, 256, .max])
    try Coding.expectRoundTrip([Int32.min, -65_537, -65_536, 65_535, 65_536, .max])
    try Coding.expectRoundTrip([Int64.min, -4_294_967_297, -4_294_967_296, 4_294_967_295, 4_294_967_296, .max])
    try Coding.expectRoundTrip([UInt8.min, 23, 24, .max])
    try Coding.expectRoundTrip([UInt64.min, 9_007_199_254_740_993, .max])
    try Coding.expectRoundTrip([Int128.min, Int128(Int64.min) - 1, -1, 0, Int128(UInt64.max) + 1, .max])
    try Coding.expectRoundTrip([UInt128.min, UInt128(UInt64.max), UInt128(UInt64.max) + 1, .max])
    try Coding.expectRoundTrip([true, false])
    for count in [0, 1, 15, 16, 23, 24, 255, 256, 65_535, 65_536, 100_000] {
      try Coding.expectRoundTrip([String(repeating: "x", count: count)])
      try Coding.expectRoundTrip([Data(repeating: 7, count: count)])
      try Coding.expectRoundTrip([[UInt8](repeating: 7, count: count)])
      try Coding.expectRoundTrip([[Int](repeating: 7, count: count)])
    }
    try Coding.expectRoundTrip(["\0\u{1F}\n\"\\/", "é", "🐄", "\u{2028}"])
    try Coding.expectRoundTrip([Float.pi, 0, -1.5, .greatestFiniteMagnitude, .leastNonzeroMagnitude, 0.1])
    try Coding.expectRoundTrip([
      0, 0.1, 1.0 / 3, 1e308, .greatestFiniteMagnitude, .leastNonzeroMagnitude, .infinity, -.infinity,
    ])
    #if !((os(macOS) || targetEnvironment(macCatalyst)) && arch(x86_64))
    try Coding.expectRoundTrip([Float16.pi, 0, -1.5, .greatestFiniteMagnitude, .leastNonzeroMagnitude])
    #endif
    try Coding.expectRoundTrip([Data(), Data(0...255), Data(0...255)[7..<9]])
    try Coding.expectRoundTrip([UUID(), UUID()])
    try Coding.expectRoundTrip([[[Int]](), [[], [1]]])
    try Coding.expectRoundTrip([[String: Int](), ["b": 2, "a": 1, "": 0, "é": 3]])
    try Coding.expectRoundTrip([[Int: String](), [1: "a", -2: "b"]])
    try Coding.expectRoundTrip([[UUID(): [Level.high: Shape.point]]])
    try Coding.expectRoundTrip([Set<Int>(), [1, 2, 300]])
    try Coding.expectRoundTrip([Set<Shape>(), [.point, .circle(radius: 1), .path([])]])
    try Coding.expectRoundTrip([1...3, -7...7])
    try Coding.expectRoundTrip([Level.low, .high])
    try Coding.expectRoundTrip([
      Shape.point, .circle(radius: 0.1), .path([]), .pair(1, nil), .pair(2, "x"),
      .both(.point, .both(.circle(radius: 2), .pair(3, "y"))),
    ])
    try Coding.expectRoundTrip([
      User(name: "Ada", age: nil, tags: [], born: Date(timeIntervalSinceReferenceDate: 0.1), scores: ["a": -0.5]),
      User(name: "é\0", age: .max, tags: ["", "x"], born: .distantPast, scores: [:]),
    ])
    try Coding.expectRoundTrip([
      URL(string: "https://example.org/a?b#c"), URL(string: "mailto:ada@example.org"),
      URL(string: "b/c", relativeTo: URL(string: "https://example.org/a/")), nil,
    ])
    try Coding.expectRoundTrip([
      Decimal(0), 1, -1, 12.5, Decimal(string: "0.1"), Decimal(string: "-123456789012345678901234567890.12345678"),
      Decimal.greatestFiniteMagnitude, -Decimal.greatestFiniteMagnitude, Decimal.leastNonzeroMagnitude, nil,
    ])
    #expect(try Coding.decoded(Decimal.self, Coding.encoded(Decimal.nan)).isNaN)
  }

  @Test func `an optional nil is a value`() throws {
    try Coding.expectRoundTrip([Int?.none, 0, 1])
    try Coding.expectRoundTrip([String?.none, ""])
    try Coding.expectRoundTrip([User?.none])
    try Coding.expectRoundTrip([Shape?.none, .point])
    #expect(try Coding.encoded(Int?.none) == [0xF6])
  }

  @Test func `every bit of a number is preserved`() throws {
    var random = SeededGenerator(seed: SeededGenerator.seedOfProcess, purpose: "numbers as CBOR")
    for _ in 0..<20_000 {
      let bits = random.next()
      let double = Double(bitPattern: bits)
      #expect(try Coding.decoded(Double.self, Coding.encoded(double)).bitPattern == bits)
      let single = Float(bitPattern: UInt32(truncatingIfNeeded: bits))
      let readSingle = try Coding.decoded(Float.self, Coding.encoded(single))
      #expect(readSingle.bitPattern == single.bitPattern)
    }
    // All 16-bit values.
    for bits in UInt16.min ... .max {
      let bytes: [UInt8] = [0xF9, UInt8(bits >> 8), UInt8(bits & 0xFF)]
      #expect(try Coding.encoded(Coding.decoded(Double.self, bytes)) == bytes)
      #expect(try Coding.encoded(Coding.decoded(Float.self, bytes)) == bytes)
    }
  }

  @Test func `every date is exact`() throws {
    var random = SeededGenerator(seed: SeededGenerator.seedOfProcess, purpose: "dates as CBOR")
    var dates: [Date] = [
      .distantPast, .distantFuture, Date(timeIntervalSince1970: 0), Date(timeIntervalSince1970: 0.001),
    ]
    dates += [
      0, -0.0, 1e-300, -1e-300, .leastNonzeroMagnitude, 1e300, -1e300, 1e-9, -1e-9, 0x1p-40, 0x1p-41, 0x1p60 + 256,
      1e17,
      -978_307_200, -978_307_200.1, .infinity, .nan,
    ].map {
      Date(timeIntervalSinceReferenceDate: $0)
    }
    for _ in 0..<10_000 {
      dates.append(Date(timeIntervalSinceReferenceDate: .random(in: -1e10...1e10, using: &random)))
      dates.append(Date(timeIntervalSinceReferenceDate: .random(in: 7e8...9e8, using: &random)))
      let scale = Double(sign: .plus, exponent: .random(in: -60...90, using: &random), significand: 1)
      dates.append(Date(timeIntervalSinceReferenceDate: .random(in: -1...1, using: &random) * scale))
      let any = Double(bitPattern: random.next())
      if any.isFinite { dates.append(Date(timeIntervalSinceReferenceDate: any)) }
    }
    var extendedCount = 0
    for date in dates {
      let bytes = try Coding.encoded(date)
      let seconds = date.timeIntervalSinceReferenceDate
      let read = try Coding.decoded(Date.self, bytes).timeIntervalSinceReferenceDate
      #expect(read.bitPattern == seconds.bitPattern, "\(seconds)")
      if bytes[0] != 0xC1 { extendedCount += 1 }
    }
    #expect(extendedCount > 1000)
    // Whole seconds always have tag 1.
    #expect(try Coding.hex(Coding.encoded(Date(timeIntervalSinceReferenceDate: 800_000_000))) == "c11a69fed080")
  }

  @Test func `reads dates of other forms`() throws {
    func date(_ hex: String) throws -> TimeInterval { try Coding.decoded(Date.self, hex: hex).timeIntervalSince1970 }
    #expect(try date("c1fb41d452d9ec200000") == 1_363_896_240.5)
    #expect(try date("c1f93c00") == 1)
    #expect(try date("d903e9a2011a514b67b0281a075bcd15") == 1_363_896_240.123456789 as Double)
    #expect(try date("d903e9a104822019" + "0fa0") == 400)
    // Binary fractions: 11 / 64, -12 / 64, 5 * 8, and 1 / 2 as a bignum
    #expect(try date("d903e9a10582250b") == 11.0 / 64)
    #expect(try date("d903e9a10582252b") == -12.0 / 64)
    #expect(try date("d903e9a105820305") == 40)
    #expect(try date("d903e9a1058220c24101") == 0.5)
    // An untagged number of seconds since 2001, as the `Codable` conformance of `Date` writes it.
    #expect(try Coding.decoded(Date.self, hex: "1a2faf0800") == Date(timeIntervalSinceReferenceDate: 800_000_000))
    #expect(try Coding.decoded(Date.self, hex: "d9d9f7f93800") == Date(timeIntervalSinceReferenceDate: 0.5))
    // After a tag that marks CBOR, and with UTC as the time scale.
    #expect(try date("d9d9f7d903e9a2200001" + "00") == 0)
    // "2013-03-21T20:04:00.5+01:00"
    #expect(try date("c0781b323031332d30332d32315432303a30343a30302e352b30313a3030") == 1_363_892_640.5)
    // "2000-02-29T00:00:00Z", and the same day of 2100, which has no such day
    #expect(try date("c074323030302d30322d32395430303a30303a30305a") == 951_782_400)
    Coding.expectRefused(Date.self, "c074323130302d30322d32395430303a30303a30305a")
    for hex in [
      "6161", "f5", "c66161", "d86405", "c482201903e8", "c06161", "c16161", "d903e9a0", "d903e9a12001", "d903e901",
      // 10 to the power of 1000, 2 to the power of 1101, more than 128 bits, and more than 160 bytes
      "d903e9a104821903e801", "d903e9a1058219044d01", "d903e9a1058200c251" + String(repeating: "ff", count: 17),
      "d903e9a10582390418c258a1" + String(repeating: "00", count: 161),
      // Not two numbers
      "d903e9a10581250b", "d903e9a105822560", "d903e9a105826025", "d903e9a105822545ffffffffff",
    ] {
      Coding.expectRefused(Date.self, hex)
    }
  }

  @Test func `dictionaries and sets are sorted`() throws {
    #expect(try Coding.hex(Coding.encoded(["b": 1, "aa": 2, "": 3, "a": 4])) == "a4600361610461620162616102")
    #expect(try Coding.hex(Coding.encoded([10: 0, 100: 1, -1: 2, 5: 3])) == "a405030a001864012002")
    #expect(try Coding.hex(Coding.encoded(Set(["b", "aa", "a"]))) == "8361616162626161")
    let many = Dictionary(uniqueKeysWithValues: (0..<1000).map { ("\($0)", [$0: Shape.point]) })
    let bytes = try Coding.encoded(many)
    for _ in 0..<3 {
      // The same entries, inserted in another order.
      let copy = Dictionary(uniqueKeysWithValues: many.shuffled())
      #expect(try Coding.encoded(copy) == bytes)
    }
  }

  @Test func `fields stand in the order in which they are encoded`() throws {
    struct Fields: Codable { var b = 1, a = 2, c: Int? = nil }
    #expect(try Coding.hex(Coding.encoded(Fields())) == "a2616201616102")
  }

  @Test func `bytes in many types`() throws {
    #expect(try Coding.encoded(Data([1, 2])) == [0x42, 1, 2])
    #expect(try Coding.encoded([1, 2] as [UInt8]) == [0xD8, 64, 0x42, 1, 2])
    for hex in ["420102", "d840420102", "d90040420102", "d8405f41014102ff"] {
      #expect(try Coding.decoded([UInt8].self, hex: hex) == [1, 2])
    }
    #expect(try Coding.decoded([Int].self, hex: "d90040420102") == [1, 2])
    #expect(throws: DecodingError.self) { try Coding.decoded([Int].self, hex: "420102") }
    #expect(throws: DecodingError.self) { try Coding.decoded(Data.self, hex: "820102") }
    #expect(try Coding.decoded([UInt8].self, hex: "820102") == [1, 2])
    #expect(try Coding.decoded([UInt8].self, hex: "5f41014102ff") == [1, 2])
    let uuid = try #require(UUID(uuidString: "00112233-4455-6677-8899-AABBCCDDEEFF"))
    #expect(try Coding.hex(Coding.encoded(uuid)) == "d8255000112233445566778899aabbccddeeff")
    #expect(try Coding.decoded(UUID.self, hex: "5000112233445566778899aabbccddeeff") == uuid)
  }

  @Test func `decimals are decimal fractions`() throws {
    #expect(try Coding.hex(Coding.encoded(try #require(Decimal(string: "273.15")))) == "c48221196ab3")
    #expect(try Coding.decoded(Decimal.self, hex: "0a") == 10)
    #expect(try Coding.decoded(Decimal.self, hex: "c48201c2420100") == 2560)
    // The digits of a floating-point number, as JSON prints them.
    #expect(try Coding.decoded(Decimal.self, hex: "fb3fb999999999999a") == Decimal(string: "0.1"))
    for hex in ["f97c00", "c4821903e801", "c48101", "6131", "c48200c251" + String(repeating: "ff", count: 17)] {
      Coding.expectRefused(Decimal.self, hex)
    }
  }

  /// Significands of all sizes up to 128 bits with every exponent, including those with trailing zeros.
  @Test func `decimals of all magnitudes`() throws {
    func text(_ number: UInt128, _ exponent: Int) -> String {
      var (digits, exponent) = (number.description, exponent)
      while digits.count > 1, digits.last == "0" {
        digits.removeLast()
        exponent += 1
      }
      if digits == "0" { return digits }
      if exponent >= 0 { return digits + String(repeating: "0", count: exponent) }
      digits = String(repeating: "0", count: max(1 - exponent - digits.count, 0)) + digits
      return digits.dropLast(-exponent) + "." + digits.suffix(-exponent)
    }
    var random = SeededGenerator(seed: SeededGenerator.seedOfProcess, purpose: "decimals")
    for round in 0..<600 {
      var digits = UInt128.random(in: 1...(.max >> UInt128.random(in: 0..<128, using: &random)), using: &random)
      if round.isMultiple(of: 3) { digits = max(digits / 1000, 1) * 1000 }
      let exponent = round < 8 ? 127 : round < 16 ? -128 : Int.random(in: -128...127, using: &random)
      let bytes = Coding.bytes("c482") + (try Coding.encoded(exponent)) + (try Coding.encoded(digits))
      let decimal = try Coding.decoded(Decimal.self, bytes)
      #expect(decimal.description == text(digits, exponent), "\(digits) \(exponent)")
      #expect(try Coding.decoded(Decimal.self, Coding.encoded(decimal)) == decimal)
      #expect(try Coding.decoded(Decimal.self, Coding.encoded(-decimal)) == -decimal)
    }
    for hex in ["c482188001", "c482388001", "c48200c3" + "50" + String(repeating: "ff", count: 16)] {
      Coding.expectRefused(Decimal.self, hex)
    }
  }

  @Test func `errors of the value pass through`() {
    #expect(throws: CancellationError.self) { try Coding.encoded(Refusing()) }
    #expect(throws: CancellationError.self) { try Coding.encoded([[Refusing()]]) }
    #expect(throws: CancellationError.self) { try Coding.decoded(Refusing.self, hex: "a0") }
  }

  @Test func `numbers that do not fit are refused`() {
    Coding.expectRefused(Int8.self, "1880")
    Coding.expectRefused(Int8.self, "3880")
    Coding.expectRefused(UInt8.self, "190100")
    Coding.expectRefused(UInt8.self, "20")
    Coding.expectRefused(Int.self, "1b8000000000000000")
    Coding.expectRefused(Int.self, "3b8000000000000000")
    Coding.expectRefused(Int.self, "c249010000000000000000")
    Coding.expectRefused(UInt64.self, "c249010000000000000000")
    Coding.expectRefused(Int128.self, "c25080000000000000000000000000000000")
    Coding.expectRefused(UInt128.self, "c2510100000000000000000000000000000000")
    Coding.expectRefused(Float.self, "fb7e37e43c8800759c")
    Coding.expectRefused(Double.self, "1bffffffffffffffff")
    Coding.expectRefused(Int.self, "f93c00")
  }

  @Test func `numbers in other forms are read`() throws {
    for hex in [
      "1805", "190005", "1a00000005", "1b0000000000000005", "c24105", "c2420005", "c25f40420005ff", "d9d9f705",
    ] {
      #expect(try Coding.decoded(Int.self, hex: hex) == 5)
      #expect(try Coding.decoded(UInt8.self, hex: hex) == 5)
      #expect(try Coding.decoded(Int128.self, hex: hex) == 5)
    }
    for hex in ["3804", "390004", "3a00000004", "3b0000000000000004", "c34104"] {
      #expect(try Coding.decoded(Int.self, hex: hex) == -5)
      #expect(try Coding.decoded(Int8.self, hex: hex) == -5)
    }
    #expect(try Coding.decoded(Int.self, hex: "3b7fffffffffffffff") == .min)
    for hex in ["05", "f94500", "fa40a00000", "fb4014000000000000"] {
      #expect(try Coding.decoded(Double.self, hex: hex) == 5)
      #expect(try Coding.decoded(Float.self, hex: hex) == 5)
    }
  }

  @Test(arguments: [
    "", "18", "19ff", "1a000000", "1b00000000000000", "1c", "1d", "1e", "1f", "3f", "df", "ff", "0000", "f6",
    "61", "6161", "c0", "c1", "f4", "40", "80", "a0", "f818", "f800", "f81f", "fc", "fd", "fe", "f9", "f900", "fa",
    "fb",
    "5fff", "7fff", "9fff", "bfff", "c25f", "c25f4105", "c25f6105ff", "c25f5f4105ffff", "c25bffffffffffffffff",
    "9bffffffffffffffff", "bbffffffffffffffff", "5bffffffffffffffff", "7bffffffffffffffff",
  ]) func `other than numbers are refused`(_ hex: String) {
    Coding.expectRefused(Int.self, hex)
    // Malformed items are not skipped either.
    struct Empty: Codable {}
    if hex.isEmpty || hex.count > 4 || hex.hasPrefix("1") || hex.hasPrefix("f") && hex != "f6" && hex != "f4" {
      if !["0000", "5fff", "7fff", "9fff", "bfff", "6161"].contains(hex) {
        Coding.expectRefused(Empty.self, "a16161" + hex)
      }
    }
  }

  /// Short texts are decoded without the library, in one way before many bytes and in another at the end.
  @Test func `short texts at the end and before other bytes`() throws {
    let letters = Array("abcdefghijklmnopqrstuvwxyz".utf8)
    for count in 0...24 {
      let text = String(decoding: letters[..<count], as: UTF8.self)
      for index in 0..<count {
        // Each byte must be copied to its place, and each must be validated.
        var characters = Array(text)
        characters[index] = "\u{7F}"
        let other = String(characters)
        #expect(Array(try Coding.decoded(String.self, Coding.encoded(other)).utf8) == Array(other.utf8))
        characters[index] = "é"
        try Coding.expectRoundTrip([String(characters)])
        var bytes = try Coding.encoded(text)
        bytes[bytes.count - count + index] = 0xFF
        #expect(throws: DecodingError.self) { try Coding.decoded(String.self, bytes) }
      }
      for followingCount in 0...17 {
        let bytes = try [0x82] + Coding.encoded(text) + Coding.encoded(String(repeating: "z", count: followingCount))
        let read = try Coding.decoded([String].self, bytes)
        #expect(read.first.map { Array($0.utf8) } == Array(text.utf8), "\(count) before \(followingCount)")
        #expect(read.first?.hashValue == text.hashValue && read.first?.count == count)
      }
    }
  }

  @Test func `invalid UTF8 is refused`() {
    for hex in ["61ff", "62c328", "61c3", "63eda080", "64f8808080", "7f61c361a9ff", "7f61ffff"] {
      Coding.expectRefused(String.self, hex)
      Coding.expectRefused([String].self, "81" + hex)
      Coding.expectRefused([String: Int].self, "a1" + hex + "01")
    }
  }

  @Test func `duplicate keys are refused`() {
    struct Fields: Codable { var a: Int, b: Int }
    Coding.expectRefused([String: Int].self, "a2616101616102")
    Coding.expectRefused([Int: Int].self, "a201010102")
    for hex in [
      "a3616101616202616103", "a3616101616102616203", "a3616202616202616103", "bf616101616202616103ff",
      "a4616101616202616301616301", "a4616101616202010101" + "02",
    ] {
      Coding.expectRefused(Fields.self, hex)
    }
    // The same key in chunks.
    Coding.expectRefused(Fields.self, "a36161016162027f6161ff03")
  }

  @Test func `nesting is bounded`() throws {
    indirect enum Nest: Codable, Equatable {
      case end
      case array([Nest])

      init(from decoder: any Decoder) throws {
        var container = try decoder.unkeyedContainer()
        var elements: [Nest] = []
        while !container.isAtEnd { elements.append(try container.decode(Nest.self)) }
        self = elements.isEmpty ? .end : .array(elements)
      }

      func encode(to encoder: any Encoder) throws {
        var container = encoder.unkeyedContainer()
        if case .array(let elements) = self { for element in elements { try container.encode(element) } }
      }
    }
    func nest(_ depth: Int) -> Nest { (1..<depth).reduce(Nest.end) { nest, _ in .array([nest]) } }
    try Coding.expectRoundTrip([nest(500)])
    #expect(try Coding.decoded(Nest.self, Coding.encoded(nest(512))) == nest(512))
    #expect(throws: EncodingError.self) { try Coding.encoded(nest(513)) }
    struct Empty: Codable {}
    for head in ["81", "9f", "a100", "bf00", "c1"] {
      let deep = String(repeating: head, count: 100_000)
      Coding.expectRefused(Nest.self, deep)
      Coding.expectRefused(Empty.self, "a16161" + deep)
      Coding.expectRefused([Nest?].self, "81" + deep)
    }
    // Skipped tags count, too.
    for (count, item) in [
      (513, "01"), (513, "6161"), (513, "80"), (513, "a0"), (513, "f6"), (513, "4101"), (100_000, "01"),
    ] {
      let tagged = String(repeating: "c6", count: count) + item
      for hex in [tagged, "81" + tagged.dropFirst(2)] {
        Coding.expectRefused(CBORItem.self, hex)
        Coding.expectRefused(Int.self, hex)
        Coding.expectRefused([Int].self, hex)
        Coding.expectRefused(String.self, hex)
        Coding.expectRefused([String: Int].self, hex)
        Coding.expectRefused(Data.self, hex)
      }
    }
    #expect(try Coding.decoded(Int.self, hex: String(repeating: "c6", count: 511) + "01") == 1)
  }

  @Test func `encoding appends to existing bytes`() throws {
    var bytes: [UInt8] = [1, 2]
    try CBORCodec<Int>().encode(7, into: &bytes)
    #expect(bytes == [1, 2, 7])
  }

  @Test func `is named after its format`() {
    func name<Value>(of codec: some Codec<Value>, _ type: Value.Type) -> String { codec.name }
    #expect(name(of: .cbor(), Int.self) == "cbor")
    #expect(name(of: .cbor(), User.self) == "cbor")
    #expect(CBORCodec<Int>().format == .cbor)
  }

  @Test func `many tasks encode concurrently`() async throws {
    let codec = CBORCodec<[User]>()
    try await withThrowingTaskGroup(of: Bool.self) { group in
      for number in 0..<200 {
        group.addTask {
          let user = User(
            name: "\(number)", age: number, tags: ["a"], born: .now, scores: ["x": Double(number), "y": 1])
          let value = Array(repeating: user, count: number)
          return try Coding.decoded(Coding.encoded(value, codec), codec) == value
        }
      }
      for try await isSame in group { #expect(isSame) }
    }
  }
}
