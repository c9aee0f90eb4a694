import Foundation
import LarderCBOR
import Testing

/// A field of one type, read as another type, as in the table of `Modules/Codecs/LarderCBOR/LarderCBOR.docc/CBOR.md`.
@Suite struct TypeChangeTests {
  private enum Level: String, Codable { case low }

  private struct Field<Value: Codable & Sendable>: Codable, Sendable { var x: Value }

  private struct Change {
    /// The results of JSON and CBOR, with an error if they refuse.
    let json: Result<any Equatable, any Error>
    let cbor: Result<any Equatable, any Error>

    init<From: Codable & Sendable, To: Codable & Sendable & Equatable>(_ value: From, _ type: To.Type) throws {
      let field = Field(x: value)
      let (text, bytes) = try (JSONEncoder().encode(field), Coding.encoded(field))
      json = Result { try JSONDecoder().decode(Field<To>.self, from: text).x }
      cbor = Result { try Coding.decoded(Field<To>.self, bytes).x }
    }
  }

  private static let uuid = UUID(uuid: (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16))
  private static let date = Date(timeIntervalSinceReferenceDate: 700_000_000)

  /// The changes, keyed by the first two cells of their rows.
  private static func changes() throws -> [String: [Change]] {
    let (uuid, date) = (TypeChangeTests.uuid, TypeChangeTests.date)
    let url = URL(string: "https://example.org/a") ?? URL(filePath: "/")
    return try [
      "`Int` | `Double`": [Change(3, Double.self), Change(-1000, Double.self)],
      "`Int` | `Int128`": [Change(Int.min, Int128.self)],
      "`Int` | `Decimal`": [Change(-30, Decimal.self)],
      "`Int` | `String`": [Change(3, String.self)],
      "`Double`, whole | `Int`": [Change(1.0, Int.self)],
      "`Double` | `Float`": [Change(0.1, Float.self)],
      "`Double` | `Decimal`": [Change(0.1, Decimal.self), Change(-2.5e-30, Decimal.self), Change(3.0, Decimal.self)],
      "`Decimal` | `Double`": [Change(Decimal(string: "0.1"), Double.self), Change(Decimal(30), Double.self)],
      "`Decimal`, whole | `Int`": [Change(Decimal(3), Int.self)],
      "`Double` | `Date`": [Change(0.25, Date.self), Change(700_000_000.0, Date.self)],
      "`Date` | `Double`": [Change(date, Double.self), Change(date.addingTimeInterval(0.1), Double.self)],
      "`Date`, whole | `Int`": [Change(date, Int.self)],
      "`Date` | `String`": [Change(date, String.self)],
      "`String` | `URL`": [Change(url.absoluteString, URL.self)],
      "`URL` | `String`": [Change(url, String.self)],
      "`String` | `UUID`": [Change(uuid.uuidString, UUID.self)],
      "`UUID` | `String`": [Change(uuid, String.self)],
      "`String` | an enumeration": [Change("low", Level.self)],
      "an enumeration | `String`": [Change(Level.low, String.self)],
      "`String`, Base64 | `Data`": [Change("AQI=", Data.self)],
      "`Data` | `String`": [Change(Data([1, 2]), String.self)],
      "`[UInt8]` | `Data`": [Change([UInt8]([1, 2]), Data.self)],
      "`[Int]` | `Data`": [Change([1, 255], Data.self), Change([Int](), Data.self)],
      "`Data` | `[UInt8]`": [Change(Data([1, 255]), [UInt8].self)],
      "`[UInt8]` | `[Int]`": [Change([UInt8]([1, 255]), [Int].self), Change([UInt8](), [Int].self)],
      "`[Int]` | `[UInt8]`": [Change([1, 255], [UInt8].self)],
      "`[UInt8]` | `Set<Int>`": [Change([UInt8]([1, 255]), Set<Int>.self)],
      "`[Int]`, some twice | `Set<Int>`": [Change([1, 2, 2], Set<Int>.self)],
      "`Set<Int>` | `[Int]`": [Change(Set([300]), [Int].self)],
      "`[Int: Int]` | `[String: Int]`": [Change([1: 2, -300: 4], [String: Int].self)],
      "`[String: Int]`, of digits | `[Int: Int]`": [Change(["1": 2, "-300": 4], [Int: Int].self)],
      "`[Level: Int]` | `[String: Int]`": [Change([Level.low: 2], [String: Int].self)],
      "`[String: Int]` | `[Level: Int]`": [Change(["low": 2], [Level: Int].self)],
      "`Int` | `Int?`": [Change(1, Int?.self)],
      "`Int?` | `Int`": [Change(Int?.some(1), Int.self)],
      "`Int?`, `nil` | `Int`": [Change(Int?.none, Int.self)],
    ]
  }

  @Test func `the table is accurate`() throws {
    let guide = URL(filePath: #filePath).deletingLastPathComponent()
      .appending(path: "../../Modules/Codecs/LarderCBOR/LarderCBOR.docc/CBOR.md")
    let lines = try String(contentsOf: guide, encoding: .utf8).components(separatedBy: "\n")
    let start = try #require(lines.firstIndex(of: "| From | To | JSON | CBOR |"))
    var changes = try TypeChangeTests.changes()
    for line in lines[(start + 2)...].prefix(while: { $0.hasPrefix("|") }) {
      let cells = line.split(separator: "|").map { $0.trimmingCharacters(in: .whitespaces) }
      let row = "\(cells[0]) | \(cells[1])"
      let rowChanges = changes.removeValue(forKey: row)
      for change in try #require(rowChanges, "\(row)") {
        func word(_ result: Result<any Equatable, any Error>) -> String {
          if case .success = result { "read" } else { "refused" }
        }
        #expect(word(change.json) == cells[2], "\(row): \(change.json)")
        #expect(word(change.cbor) == cells[3], "\(row): \(change.cbor)")
        // Both formats read the same value.
        if case (.success(let json), .success(let cbor)) = (change.json, change.cbor) {
          func isSame<Value: Equatable>(_ value: Value) -> Bool { value == cbor as? Value }
          let isSameValue = isSame(json)
          #expect(isSameValue, "\(row): \(json), \(cbor)")
        }
      }
    }
    #expect(changes.isEmpty, "rows missing: \(changes.keys)")
  }

  /// A tagged item with a meaning of its own is not read as its content.
  @Test(arguments: [
    // Dates of tag 1 and 1001, a decimal fraction, a binary fraction, and a bignum
    ("c11a69fed080", "Double"), ("c11a69fed080", "Int"), ("c11a69fed080", "Float"), ("c100", "Int128"),
    ("d903e9a10582250b", "Double"), ("d903e9a10100", "[Int: Int]"), ("c4820103", "[Int]"), ("c5820103", "[Int]"),
    ("c5820103", "Double"), ("c249010000000000000000", "Data"), ("c249010000000000000000", "[UInt8]"),
    ("c249010000000000000000", "Double"), ("c4820103", "Int"), ("c249010000000000000000", "[Int]"), ("c100", "Bool"),
  ]) func `tagged items are not read as their content`(_ hex: String, _ type: String) throws {
    let types: [String: (String) throws -> Any] = [
      "Double": { try Coding.decoded([Double].self, hex: $0) }, "Int": { try Coding.decoded([Int].self, hex: $0) },
      "Float": { try Coding.decoded([Float].self, hex: $0) }, "Int128": { try Coding.decoded([Int128].self, hex: $0) },
      "[Int: Int]": { try Coding.decoded([[Int: Int]].self, hex: $0) },
      "[Int]": { try Coding.decoded([[Int]].self, hex: $0) }, "Data": { try Coding.decoded([Data].self, hex: $0) },
      "[UInt8]": { try Coding.decoded([[UInt8]].self, hex: $0) }, "Bool": { try Coding.decoded([Bool].self, hex: $0) },
    ]
    let decode = try #require(types[type])
    let error = #expect(throws: DecodingError.self) { try decode("81" + hex) }
    guard case .typeMismatch(_, let context)? = error else {
      Issue.record("\(String(describing: error))")
      return
    }
    #expect(context.codingPath.map(\.stringValue) == ["Index 0"])
    let kinds = ["a date", "a decimal fraction", "a binary fraction", "an integer of more than 64 bits"]
    #expect(kinds.contains { context.debugDescription.hasPrefix("found \($0) instead") })
  }

  /// A keyed container cannot show keys that are neither text nor numbers, so it refuses the whole map.
  @Test func `maps with other keys are not partly read`() throws {
    struct Wrapper: Codable {
      var value: [String: Int]
      init(from decoder: any Decoder) throws { value = try [String: Int](from: decoder) }
      func encode(to encoder: any Encoder) throws {}
    }
    #expect(try Coding.decoded(Wrapper.self, hex: "a2616101" + "0702").value == ["a": 1, "7": 2])
    for hex in ["a2616101" + "c10002", "a1410101", "a1800" + "1", "a2" + "613701" + "0702"] {
      let error = #expect(throws: DecodingError.self) {
        try Coding.decoded([String: Wrapper].self, hex: "a1617a" + hex)
      }
      guard case .typeMismatch(_, let context)? = error else {
        // A number and its digits are the same key.
        guard case .dataCorrupted(let context)? = error else { continue }
        #expect(context.debugDescription.contains("twice"))
        continue
      }
      #expect(context.codingPath.map(\.stringValue) == ["z"])
    }
  }

  /// The deepest level that can be written is read, whatever item is there.
  @Test func `tags at the deepest level`() throws {
    indirect enum Deep<Value: Codable & Sendable & Equatable>: Codable, Sendable, Equatable {
      case end(Value)
      case array(Deep, Int)

      init(_ value: Value, depth: Int) {
        self = (0..<depth).reduce(.end(value)) { deep, level in .array(deep, depth - level) }
      }
      private static var depth: CodingUserInfoKey? { CodingUserInfoKey(rawValue: "depth") }
      init(from decoder: any Decoder) throws {
        if var container = try? decoder.unkeyedContainer(), let left = try? container.decode(Int.self) {
          self = .array(try container.decode(Deep.self), left)
        } else {
          self = .end(
            try decoder.singleValueContainer().decode([String: Value].self)["v"] ?? { throw CancellationError() }())
        }
      }
      func encode(to encoder: any Encoder) throws {
        switch self {
        case .end(let value):
          var container = encoder.singleValueContainer()
          try container.encode(["v": value])
        case .array(let deep, let left):
          var container = encoder.unkeyedContainer()
          try container.encode(left)
          try container.encode(deep)
        }
      }
    }
    func check<Value: Codable & Sendable & Equatable>(_ value: Value) {
      var refusedCount = 0
      for depth in 506...512 {
        let deep = Deep(value, depth: depth)
        do {
          let bytes = try Coding.encoded(deep)
          #expect(throws: Never.self, "\(Value.self) \(depth)") {
            let isSame = try Coding.decoded(Deep<Value>.self, bytes) == deep
            #expect(isSame)
            _ = try Coding.decoded(CBORItem.self, bytes)
          }
        } catch {
          #expect(error is EncodingError, "\(error)")
          refusedCount += 1
        }
      }
      #expect((1...6).contains(refusedCount), "\(Value.self)")
    }
    check(7)
    check(TypeChangeTests.uuid)
    check(TypeChangeTests.date)
    check(TypeChangeTests.date.addingTimeInterval(0.1))
    check(Date(timeIntervalSinceReferenceDate: 1e-300))
    check(Decimal(0.5))
    check(Int128.max)
    check(URL(filePath: "/tmp"))
    check(Level.low)
    check([TypeChangeTests.uuid: 1])
    check([UInt8(1)])
  }
}
