import Foundation
import Larder
import LarderCBOR
import LarderTesting
import TestSupport
import Testing

/// Nested containers count toward the depth limit, and sibling containers do not.
@Suite struct DepthTests {
  private enum Key: String, CodingKey { case a, b }

  private static let count = 100_000

  /// The number of containers in slow tests without optimization; `make soak` uses the full number.
  private static let smallerCount = ConformanceSuite.roundsOfProcess > 20 ? count : 20_000

  /// Numbers, each in its own container.
  private struct Numbers<Way: WayOfCoding>: Codable, Sendable, Equatable {
    var values: [Int]
    init(_ values: Range<Int>) { self.values = Array(values) }
    init(from decoder: any Decoder) throws {
      var container = try decoder.unkeyedContainer()
      values = []
      while !container.isAtEnd { values.append(try Way.decode(from: &container)) }
    }
    func encode(to encoder: any Encoder) throws {
      var container = encoder.unkeyedContainer()
      try Way.encode(values, to: &container)
    }
  }

  private protocol WayOfCoding {
    static func encode(_ values: [Int], to container: inout any UnkeyedEncodingContainer) throws
    static func decode(from container: inout any UnkeyedDecodingContainer) throws -> Int
  }

  private struct Field: Codable, Equatable { var a: Int }

  /// A type that reads its fields in another order than it writes them, so the keys of its map are listed.
  private struct Fields: Codable {
    var sum: Int
    init(_ sum: Int) { self.sum = sum }
    init(from decoder: any Decoder) throws {
      let container = try decoder.container(keyedBy: Key.self)
      sum = try container.decode(Int.self, forKey: .b) + container.decode(Int.self, forKey: .a)
    }
    func encode(to encoder: any Encoder) throws {
      var container = encoder.container(keyedBy: Key.self)
      try container.encode(1, forKey: .a)
      try container.encode(sum - 1, forKey: .b)
    }
  }

  private enum KeyedInTurn: WayOfCoding {
    static func encode(_ values: [Int], to container: inout any UnkeyedEncodingContainer) throws {
      for value in values {
        var nested = container.nestedContainer(keyedBy: Key.self)
        try nested.encode(Field(a: value), forKey: .a)
      }
    }
    static func decode(from container: inout any UnkeyedDecodingContainer) throws -> Int {
      try container.nestedContainer(keyedBy: Key.self).decode(Field.self, forKey: .a).a
    }
  }

  private enum KeyedAllOpen: WayOfCoding {
    static func encode(_ values: [Int], to container: inout any UnkeyedEncodingContainer) throws {
      let nested = values.map { _ in container.nestedContainer(keyedBy: Key.self) }
      for (value, var nested) in zip(values, nested) { try nested.encode(Field(a: value), forKey: .a) }
    }
    static func decode(from container: inout any UnkeyedDecodingContainer) throws -> Int {
      try KeyedInTurn.decode(from: &container)
    }
  }

  private enum Listed: WayOfCoding {
    static func encode(_ values: [Int], to container: inout any UnkeyedEncodingContainer) throws {
      for value in values {
        var nested = container.nestedContainer(keyedBy: Key.self)
        try nested.encode(Fields(value), forKey: .a)
        try nested.encode(0, forKey: .b)
      }
    }
    static func decode(from container: inout any UnkeyedDecodingContainer) throws -> Int {
      let nested = try container.nestedContainer(keyedBy: Key.self)
      return try nested.decode(Int.self, forKey: .b) + nested.decode(Fields.self, forKey: .a).sum
    }
  }

  private enum Unkeyed: WayOfCoding {
    static func encode(_ values: [Int], to container: inout any UnkeyedEncodingContainer) throws {
      for value in values {
        var nested = container.nestedUnkeyedContainer()
        for number in 0..<25 { try nested.encode(value + number) }
      }
    }
    static func decode(from container: inout any UnkeyedDecodingContainer) throws -> Int {
      var nested = try container.nestedUnkeyedContainer()
      return try nested.decode(Int.self)
    }
  }

  private enum SuperEncoder: WayOfCoding {
    static func encode(_ values: [Int], to container: inout any UnkeyedEncodingContainer) throws {
      for value in values { try Field(a: value).encode(to: container.superEncoder()) }
    }
    static func decode(from container: inout any UnkeyedDecodingContainer) throws -> Int {
      try Field(from: container.superDecoder()).a
    }
  }

  private enum SuperEncodersAllOpen: WayOfCoding {
    static func encode(_ values: [Int], to container: inout any UnkeyedEncodingContainer) throws {
      let encoders = values.map { _ in container.superEncoder() }
      for (value, encoder) in zip(values, encoders).reversed() { try Field(a: value).encode(to: encoder) }
    }
    static func decode(from container: inout any UnkeyedDecodingContainer) throws -> Int {
      try SuperEncoder.decode(from: &container)
    }
  }

  private static func expectSame<Value: Codable & Sendable & Equatable>(_ value: Value) throws {
    // A quadratic algorithm would take hours: the test would not end.
    let bytes = try Coding.encoded(value)
    // Not as an expectation of the values themselves, which would describe them.
    let isSame = try Coding.decoded(Value.self, bytes) == value
    #expect(isSame, "\(Value.self)")
  }

  @Test func `containers side by side`() throws {
    let values = 0..<DepthTests.smallerCount
    try DepthTests.expectSame(Numbers<KeyedInTurn>(0..<DepthTests.count))
    try DepthTests.expectSame(Numbers<KeyedAllOpen>(values))
    try DepthTests.expectSame(Numbers<Listed>(values))
    try DepthTests.expectSame(Numbers<Unkeyed>(values))
    try DepthTests.expectSame(Numbers<SuperEncoder>(0..<DepthTests.count))
    try DepthTests.expectSame(Numbers<SuperEncodersAllOpen>(values))
    // As an element, each of them has its own scope.
    try DepthTests.expectSame([Numbers<KeyedInTurn>(0..<3000), Numbers<KeyedInTurn>(0..<3000)])
    try DepthTests.expectSame((0..<DepthTests.count).map { [$0] })
    try DepthTests.expectSame((0..<DepthTests.smallerCount).map { ["a": Optional([$0])] })
    try DepthTests.expectSame(Set((0..<DepthTests.smallerCount).map { [$0] }))
  }

  /// A value that is encoded at the greatest depth can be read, or is refused, whatever containers it uses.
  @Test func `at the greatest depth`() throws {
    struct Nothing: Codable, Sendable, Equatable {}
    indirect enum Nested: Codable, Sendable, Equatable {
      case deeper(Nested)
      /// A value that is written into an array that was closed before.
      case late([[Nothing]])

      init(from decoder: any Decoder) throws {
        var container = try decoder.unkeyedContainer()
        if try container.decode(Bool.self) {
          self = .deeper(try container.decode(Nested.self))
        } else {
          var inner = try container.nestedUnkeyedContainer()
          self = .late(try inner.decode([[Nothing]].self))
        }
      }

      func encode(to encoder: any Encoder) throws {
        var container = encoder.unkeyedContainer()
        switch self {
        case .deeper(let nested):
          try container.encode(true)
          try container.encode(nested)
        case .late(let values):
          try container.encode(false)
          var inner = container.nestedUnkeyedContainer()
          try container.encode(false)
          try inner.encode(values)
        }
      }
    }
    var refusals = 0
    for depth in 500...514 {
      var value = Nested.late([[Nothing()]])
      for _ in 1..<depth { value = .deeper(value) }
      do {
        let bytes = try Coding.encoded(value)
        #expect(try Coding.decoded(Nested.self, bytes) == value, "\(depth)")
      } catch is EncodingError {
        refusals += 1
      }
    }
    #expect((1..<14).contains(refusals))
  }

  /// The fields of one map, each of which is a container.
  @Test func `fields side by side`() throws {
    struct Name: CodingKey {
      let stringValue: String
      var intValue: Int? { nil }
      init(stringValue: String) { self.stringValue = stringValue }
      init?(intValue: Int) { nil }
    }
    struct Fields: Codable, Sendable, Equatable {
      var count: Int
      init(count: Int) { self.count = count }
      init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: Name.self)
        count = 0
        for number in 0..<DepthTests.count {
          let name = Name(stringValue: "\(number)")
          let isSame =
            switch number % 3 {
            case 0:
              try container.nestedContainer(keyedBy: Key.self, forKey: name).decode(Field.self, forKey: .a).a == number
            case 1: try Field(from: container.superDecoder(forKey: name)).a == number
            default: try container.nestedUnkeyedContainer(forKey: name).isAtEnd
            }
          if isSame { count += 1 }
        }
      }
      func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: Name.self)
        for number in 0..<count {
          let name = Name(stringValue: "\(number)")
          switch number % 3 {
          case 0:
            var nested = container.nestedContainer(keyedBy: Key.self, forKey: name)
            try nested.encode(Field(a: number), forKey: .a)
          case 1: try Field(a: number).encode(to: container.superEncoder(forKey: name))
          default: _ = container.nestedUnkeyedContainer(forKey: name)
          }
        }
      }
    }
    try DepthTests.expectSame(Fields(count: DepthTests.count))
  }

  /// As fields, and as an opaque item.
  @Test func `items side by side`() throws {
    let value = (0..<DepthTests.count).map { [Field(a: $0)] }
    try DepthTests.expectSame(value)
    try DepthTests.expectSame(CBORItem(Coding.encoded(value)))
  }

  /// A container beyond the depth limit is never opened, so writing beside it closes nothing.
  @Test func `writing beside a too deep container is refused`() {
    struct Nested: Codable {
      let depth: Int
      init(depth: Int) { self.depth = depth }
      init(from decoder: any Decoder) throws { depth = 0 }
      func encode(to encoder: any Encoder) throws {
        var container = encoder.unkeyedContainer()
        if depth > 1 { return try container.encode(Nested(depth: depth - 1)) }
        // Just enough bytes to fill the memory reserved for them.
        for _ in 0..<(1024 - 512) { try container.encode(true) }
        var tooDeep = container.nestedUnkeyedContainer()
        try? tooDeep.encode(1)
        try container.encode(true)
      }
    }
    #expect(throws: (any Error).self) { try Coding.encoded(Nested(depth: 512)) }
  }

  /// One of several attempted forms.
  ///
  /// Its error is discarded with it.
  @Test func `an error of an abandoned form is discarded`() throws {
    enum Shape: Codable, Equatable { case circle(radius: Int), square(side: Int) }
    enum Either: Codable, Equatable {
      case shape(Shape), scores([UUID: Int])
      init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        if let shape = try? container.decode(Shape.self) {
          self = .shape(shape)
        } else {
          self = .scores(try container.decode([UUID: Int].self))
        }
      }
      func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        switch self {
        case .shape(let shape): try container.encode(shape)
        case .scores(let scores): try container.encode(scores)
        }
      }
    }
    for value in [Either.scores([UUID(): 1]), .scores([:]), .shape(.circle(radius: 2))] {
      #expect(try Coding.decoded(try Coding.encoded(value, CBORCodec<Either>()), CBORCodec<Either>()) == value)
    }
  }
}
