import Foundation
import Larder
import LarderCBOR
import Testing

/// Values that were written by another version of a type.
@Suite struct EvolutionTests {
  private struct Old: Codable, Sendable, Equatable {
    var id: Int
    var name: String
    var address: [String: [Int]]
    var tags: [String]
  }

  private static let old = Old(id: 7, name: "Ada", address: ["a": [1, 2], "b": []], tags: ["x"])

  @Test func `a field that was added`() throws {
    struct New: Codable, Sendable, Equatable {
      var first: Int?
      var id: Int
      var middle: String?
      var name: String
      var address: [String: [Int]]
      var tags: [String]
      var last: [Int]?
    }
    let value = try Coding.decoded(New.self, Coding.encoded(EvolutionTests.old))
    #expect(value == New(id: 7, name: "Ada", address: ["a": [1, 2], "b": []], tags: ["x"]))
    #expect(try Coding.decoded(Old.self, Coding.encoded(value)) == EvolutionTests.old)
    #expect(
      try Coding.decoded([New].self, Coding.encoded([EvolutionTests.old, EvolutionTests.old])) == [value, value])
  }

  @Test func `a field that was lost`() throws {
    struct First: Codable, Sendable, Equatable { var id: Int }
    struct Last: Codable, Sendable, Equatable { var tags: [String] }
    struct Middle: Codable, Sendable, Equatable { var name: String, tags: [String] }
    struct None: Codable, Sendable, Equatable {}
    let bytes = try Coding.encoded([EvolutionTests.old, EvolutionTests.old])
    #expect(try Coding.decoded([First].self, bytes) == [First(id: 7), First(id: 7)])
    #expect(try Coding.decoded([Last].self, bytes) == [Last(tags: ["x"]), Last(tags: ["x"])])
    #expect(try Coding.decoded([Middle].self, bytes).last == Middle(name: "Ada", tags: ["x"]))
    #expect(try Coding.decoded([None].self, bytes).count == 2)
  }

  @Test func `fields in another order`() throws {
    struct New: Codable, Sendable, Equatable {
      var tags: [String]
      var name: String
      var extra: String?
      var id: Int
      var address: [String: [Int]]
    }
    let new = New(tags: ["x"], name: "Ada", id: 7, address: ["a": [1, 2], "b": []])
    let bytes = try Coding.encoded([EvolutionTests.old, EvolutionTests.old])
    #expect(try Coding.decoded([New].self, bytes) == [new, new])
    #expect(try Coding.decoded([Old].self, Coding.encoded([new])) == [EvolutionTests.old])
  }

  @Test func `a field that is missing is named`() throws {
    struct Inner: Codable { var here = 1 }
    struct Outer: Codable { var list: [[String: Inner]] }
    struct NewInner: Codable { var here: Int, gone: Int }
    struct NewOuter: Codable { var list: [[String: NewInner]] }
    let bytes = try Coding.encoded(Outer(list: [[:], ["first": Inner(), "second": Inner()]]))
    let error = try #require(throws: DecodingError.self) { try Coding.decoded(NewOuter.self, bytes) }
    guard case .keyNotFound(let key, let context) = error else {
      Issue.record("\(error)")
      return
    }
    #expect(key.stringValue == "gone")
    #expect(context.codingPath.map(\.stringValue) == ["list", "Index 1", "first"])
    #expect(context.codingPath.map(\.intValue) == [nil, 1, nil])
    #expect(context.debugDescription.contains("gone"))
  }

  /// A store's error names its key, and the underlying error names the field.
  @Test func `a store names its key beside the field`() async throws {
    struct New: Codable, Sendable { var id: Int, email: String }
    let bytes = try Coding.encoded(EvolutionTests.old)
    do {
      _ = try CBORCodec<New>().decode(bytes.span.bytes)
      Issue.record("The field is missing.")
    } catch DecodingError.keyNotFound(let key, let context) {
      #expect(key.stringValue == "email")
      #expect(context.codingPath.isEmpty)
    }
  }

  @Test func `a value of another type is named`() throws {
    struct New: Codable, Sendable { var id: Int, name: String, address: [String: [String]] }
    let error = try #require(throws: DecodingError.self) {
      try Coding.decoded(New.self, Coding.encoded(EvolutionTests.old))
    }
    guard case .typeMismatch(let type, let context) = error else {
      Issue.record("\(error)")
      return
    }
    #expect(ObjectIdentifier(type) == ObjectIdentifier(String.self))
    #expect(context.codingPath.map(\.stringValue) == ["address", "a", "Index 0"])
  }

  @Test func `null for a required value`() throws {
    struct Fields: Codable { var a: Int }
    let error = try #require(throws: DecodingError.self) { try Coding.decoded(Fields.self, hex: "a16161f6") }
    guard case .valueNotFound(_, let context) = error else {
      Issue.record("\(error)")
      return
    }
    #expect(context.codingPath.map(\.stringValue) == ["a"])
  }

  /// A map with more fields than a linear search covers.
  @Test func `many fields in any order`() throws {
    struct Key: CodingKey {
      let stringValue: String
      var intValue: Int? { nil }
      init(stringValue: String) { self.stringValue = stringValue }
      init?(intValue: Int) { nil }
    }
    struct Fields: Codable, Equatable {
      var values: [String: Int]

      init(_ values: [String: Int]) { self.values = values }

      init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: Key.self)
        values = [:]
        for key in container.allKeys.shuffled() {
          values[key.stringValue] = try container.decode(Int.self, forKey: key)
        }
        #expect(!container.contains(Key(stringValue: "none")))
        #expect(container.contains(Key(stringValue: "7")) == (values["7"] != nil))
        #expect(try container.decodeIfPresent(Int.self, forKey: Key(stringValue: "none")) == nil)
      }

      func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: Key.self)
        for (key, value) in values { try container.encode(value, forKey: Key(stringValue: key)) }
      }
    }
    for count in [0, 1, 2, 12, 13, 23, 24, 300, 70_000] {
      let value = Fields(Dictionary(uniqueKeysWithValues: (0..<count).map { ("\($0)", $0) }))
      #expect(try Coding.decoded(Fields.self, Coding.encoded(value)) == value)
      let pair = [value, value]
      #expect(try Coding.decoded([Fields].self, Coding.encoded(pair)) == pair)
    }
  }
}
