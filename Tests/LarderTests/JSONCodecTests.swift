import Foundation
import Larder
import LarderTesting
import Testing

@Suite struct JSONCodecTests {
  private struct User: Codable, Sendable, Equatable {
    var name: String
    var age: Int?
    var tags: [String]
    var born: Date
    var scores: [String: Double]
  }

  private enum Shape: Codable, Sendable, Equatable {
    case point
    case circle(radius: Double)
    case path([Double])
  }

  private struct Refusing: Codable, Sendable, Equatable {
    init() {}
    init(from decoder: any Decoder) throws { throw CancellationError() }
    func encode(to encoder: any Encoder) throws { throw CancellationError() }
  }

  private static func encoded<Coder: Codec>(_ value: Coder.Value, _ codec: Coder) throws -> String {
    var bytes: [UInt8] = []
    try codec.encode(value, into: &bytes)
    return String(decoding: bytes, as: UTF8.self)
  }

  private static func decoded<Coder: Codec>(_ text: some Sequence<UInt8>, _ codec: Coder) throws -> Coder.Value {
    try Array(text).withUnsafeBytes { try codec.decode($0.bytes) }
  }

  private func expectRoundTrip<Value: Codable & Sendable & Equatable>(
    _ values: [Value], sourceLocation: SourceLocation = #_sourceLocation
  ) throws {
    let codec = JSONCodec<Value>()
    for value in values {
      let text = try JSONCodecTests.encoded(value, codec)
      #expect(try JSONCodecTests.decoded(text.utf8, codec) == value, sourceLocation: sourceLocation)
      // The output is valid JSON for other programs, too.
      #expect(throws: Never.self, sourceLocation: sourceLocation) { try JSONText(text) }
      #expect(!text.contains("\n"), sourceLocation: sourceLocation)
    }
  }

  @Test func `values of many types round trip`() throws {
    try expectRoundTrip([Int8.min, -1, 0, 1, .max])
    try expectRoundTrip([Int16.min, .max])
    try expectRoundTrip([Int32.min, .max])
    try expectRoundTrip([Int64.min, -9_007_199_254_740_993, 0, 9_007_199_254_740_993, .max])
    try expectRoundTrip([UInt8.max])
    try expectRoundTrip([UInt64.min, 9_007_199_254_740_993, .max])
    try expectRoundTrip([true, false])
    try expectRoundTrip([
      "", "a", "\0\u{1F}\n\"\\/", "é", "e\u{301}", "🐄", "\u{2028}", String(repeating: "x", count: 100_000),
    ])
    try expectRoundTrip([Float.pi, 0, -1.5, .greatestFiniteMagnitude, .leastNonzeroMagnitude, 16_777_216, 0.1])
    try expectRoundTrip([
      0, 0.1, 1.0 / 3, 1e308, -1e-308, .greatestFiniteMagnitude, .leastNonzeroMagnitude, 9_007_199_254_740_992,
    ])
    try expectRoundTrip([Data(), Data(0...255)])
    try expectRoundTrip([UUID()])
    try expectRoundTrip([[Int](), [1, 2, 3]])
    try expectRoundTrip([[[Int]](), [[], [1]]])
    try expectRoundTrip([[String: Int](), ["b": 2, "a": 1, "": 0, "é": 3]])
    try expectRoundTrip([[Int: String](), [1: "a", -2: "b"]])
    try expectRoundTrip([Shape.point, .circle(radius: 0.1), .path([])])
    try expectRoundTrip([
      User(name: "Ada", age: nil, tags: [], born: Date(timeIntervalSinceReferenceDate: 0.1), scores: ["a": -0.5]),
      User(name: "é\0", age: .max, tags: ["", "x"], born: .distantPast, scores: [:]),
    ])
  }

  @Test func `an optional nil is a value`() throws {
    try expectRoundTrip([Int?.none, 0, 1])
    try expectRoundTrip([String?.none, ""])
    try expectRoundTrip([User?.none])
    #expect(try JSONCodecTests.encoded(nil, JSONCodec<Int?>()) == "null")
  }

  @Test func `negative zero stays negative`() throws {
    let codec = JSONCodec<Double>()
    let read = try JSONCodecTests.decoded(JSONCodecTests.encoded(-0.0, codec).utf8, codec)
    #expect(read.sign == .minus && read == 0)
  }

  @Test func `random numbers and dates are exact`() throws {
    var random = SeededGenerator()
    let doubles = (0..<2_000).map { _ in Double(bitPattern: random.next()) }.filter(\.isFinite)
    try expectRoundTrip(doubles)
    try expectRoundTrip((0..<500).map { _ in Float(bitPattern: UInt32(random.next() >> 32)) }.filter(\.isFinite))
    try expectRoundTrip((0..<500).map { _ in Int64(bitPattern: random.next()) })
    let seconds = (0..<1_000).map { _ in Double.random(in: -1e10...1e10, using: &random) }
    try expectRoundTrip(seconds.map { Date(timeIntervalSinceReferenceDate: $0) })
    try expectRoundTrip([Date(), .distantPast, .distantFuture, Date(timeIntervalSince1970: 0.001)])
  }

  @Test(arguments: [Double.nan, .infinity, -.infinity]) func `numbers that are not finite cannot be written`(
    _ number: Double
  ) {
    #expect(throws: EncodingError.self) { try JSONCodecTests.encoded(number, JSONCodec<Double>()) }
    #expect(throws: EncodingError.self) { try JSONCodecTests.encoded([1, number], JSONCodec<[Double]>()) }
    #expect(throws: EncodingError.self) { try JSONCodecTests.encoded(Float(number), JSONCodec<Float>()) }
  }

  @Test func `errors of the value pass through`() {
    #expect(throws: CancellationError.self) { try JSONCodecTests.encoded(Refusing(), JSONCodec<Refusing>()) }
    #expect(throws: CancellationError.self) { try JSONCodecTests.decoded("{}".utf8, JSONCodec<Refusing>()) }
  }

  @Test(arguments: ["", " ", "{", "\"a\"", "1 2", "null", "1.5", "99999999999999999999", "[1]", "tru"])
  func `other values are refused`(_ text: String) {
    #expect(throws: DecodingError.self) { try JSONCodecTests.decoded(text.utf8, JSONCodec<Int>()) }
  }

  @Test func `bytes that are not UTF8 are refused`() {
    #expect(throws: DecodingError.self) { try JSONCodecTests.decoded([0x22, 0xFF, 0x22], JSONCodec<String>()) }
  }

  @Test func `sorts keys and does not escape slashes`() throws {
    #expect(try JSONCodecTests.encoded(["b": "/", "a": "é"], JSONCodec<[String: String]>()) == #"{"a":"é","b":"/"}"#)
  }

  @Test func `encoding appends to existing bytes`() throws {
    var bytes: [UInt8] = [1, 2]
    try JSONCodec<Int>().encode(7, into: &bytes)
    #expect(bytes == [1, 2, UInt8(ascii: "7")])
  }

  @Test func `uses custom coders`() throws {
    let encoder = JSONEncoder()
    encoder.dateEncodingStrategy = .iso8601
    let decoder = JSONDecoder()
    decoder.dateDecodingStrategy = .iso8601
    let codec = JSONCodec<Date>(encoder: encoder, decoder: decoder)
    let date = Date(timeIntervalSince1970: 0)
    #expect(try JSONCodecTests.encoded(date, codec) == "\"1970-01-01T00:00:00Z\"")
    #expect(try JSONCodecTests.decoded("\"1970-01-01T00:00:00Z\"".utf8, codec) == date)
  }

  @Test func `is named after its format`() {
    func name<Value>(of codec: some Codec<Value>, _ type: Value.Type) -> String { codec.name }
    #expect(name(of: .json(), Int.self) == "json")
    #expect(JSONCodec<Int>().format == .json)
    #expect(JSONCodec<Int>().name == JSONTextCodec().name)
  }

  @Test func `many tasks encode concurrently`() async throws {
    let codec = JSONCodec<[String: Int]>()
    try await withThrowingTaskGroup(of: Bool.self) { group in
      for number in 0..<200 {
        group.addTask {
          let value = ["a": number, "b": -number]
          return try JSONCodecTests.decoded(JSONCodecTests.encoded(value, codec).utf8, codec) == value
        }
      }
      for try await isSame in group { #expect(isSame) }
    }
  }
}
