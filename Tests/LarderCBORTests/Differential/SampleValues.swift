import Foundation
import LarderTesting

/// Values of types with a special form in CBOR or an unusual `Codable` conformance.
enum SampleValues {
  enum Level: String, Codable, Hashable { case low, high }

  enum Number: Int, Codable, Hashable { case one = 1, two }

  /// Dictionary keys that are encoded as text or numbers.
  enum TextKey: String, Codable, Hashable, CodingKeyRepresentable { case a, b }
  enum NumberKey: Int, Codable, Hashable, CodingKeyRepresentable { case one = 1, two }

  /// A type that is encoded as text in keys and as a map in values.
  struct StructureKey: Codable, Hashable, CodingKeyRepresentable {
    struct Key: CodingKey {
      var stringValue: String
      var intValue: Int? { nil }
      init(stringValue: String) { self.stringValue = stringValue }
      init?(intValue: Int) { nil }
    }

    var first: Int, second: Int
    var codingKey: any CodingKey { Key(stringValue: "\(first)-\(second)") }
    init(first: Int, second: Int) { (self.first, self.second) = (first, second) }
    init?<Given: CodingKey>(codingKey: Given) {
      let parts = codingKey.stringValue.split(separator: "-").compactMap { Int($0) }
      guard parts.count == 2 else { return nil }
      self.init(first: parts[0], second: parts[1])
    }
  }

  struct Point: Codable, Hashable { var x: Int, y: Double }

  indirect enum Tree: Codable, Hashable, Sendable {
    case leaf
    case text(String)
    case node(Tree, label: String?, children: [Tree])
  }

  struct Nothing: Codable, Hashable {}

  /// JSON of any type, which is decoded by trying one type after another.
  enum AnyValue: Codable, Hashable, Sendable {
    case null, bool(Bool), int(Int), double(Double), text(String), array([AnyValue]), object([String: AnyValue])

    init(from decoder: any Decoder) throws {
      let container = try decoder.singleValueContainer()
      if container.decodeNil() {
        self = .null
      } else if let value = try? container.decode(Bool.self) {
        self = .bool(value)
      } else if let value = try? container.decode(Int.self) {
        self = .int(value)
      } else if let value = try? container.decode(Double.self) {
        self = .double(value)
      } else if let value = try? container.decode(String.self) {
        self = .text(value)
      } else if let value = try? container.decode([AnyValue].self) {
        self = .array(value)
      } else {
        self = .object(try container.decode([String: AnyValue].self))
      }
    }

    func encode(to encoder: any Encoder) throws {
      var container = encoder.singleValueContainer()
      switch self {
      case .null: try container.encodeNil()
      case .bool(let value): try container.encode(value)
      case .int(let value): try container.encode(value)
      case .double(let value): try container.encode(value)
      case .text(let value): try container.encode(value)
      case .array(let value): try container.encode(value)
      case .object(let value): try container.encode(value)
      }
    }
  }

  /// Decodes the superclass's part, which it never encodes.
  struct MissingSuper: Codable, Hashable {
    init() {}
    init(from decoder: any Decoder) throws {
      let container = try decoder.container(keyedBy: SampleKey.self)
      guard try container.superDecoder().singleValueContainer().decodeNil(),
        try container.superDecoder(forKey: .c).singleValueContainer().decodeNil()
      else { throw CocoaError(.coderInvalidValue) }
    }
    func encode(to encoder: any Encoder) throws { _ = encoder.container(keyedBy: SampleKey.self) }
  }

  /// Encodes repeated elements, and decodes them as a set.
  struct SetOfRepeated: Codable, Hashable {
    var values: Set<String>
    init(_ values: Set<String>) { self.values = values }
    init(from decoder: any Decoder) throws { values = try decoder.singleValueContainer().decode(Set<String>.self) }
    func encode(to encoder: any Encoder) throws {
      var container = encoder.singleValueContainer()
      try container.encode(values.sorted() + values.sorted())
    }
  }

  /// A number that is encoded as text, and text that is encoded as a number.
  struct OtherForms: Codable, Hashable {
    var moment: Date, id: UUID, amount: Decimal, bytes: [UInt8], counts: [Int: Int]
    init(from decoder: any Decoder) throws {
      var container = try decoder.unkeyedContainer()
      moment = Date(timeIntervalSinceReferenceDate: try container.decode(Double.self))
      guard let id = UUID(uuidString: try container.decode(String.self)) else { throw CocoaError(.coderInvalidValue) }
      self.id = id
      amount = Decimal(try container.decode(Double.self))
      bytes = try container.decode([Int].self).map { UInt8($0) }
      counts = Dictionary(
        uniqueKeysWithValues: try container.decode([String: Int].self).map { (Int($0.key) ?? 0, $0.value) })
    }
    init(_ moment: Date, _ id: UUID, _ amount: Decimal, _ bytes: [UInt8], _ counts: [Int: Int]) {
      (self.moment, self.id, self.amount, self.bytes, self.counts) = (moment, id, amount, bytes, counts)
    }
    func encode(to encoder: any Encoder) throws {
      var container = encoder.unkeyedContainer()
      // A date could not be decoded as a number.
      try container.encode(moment.timeIntervalSinceReferenceDate)
      try container.encode(id)
      try container.encode(amount)
      try container.encode(bytes)
      try container.encode(counts)
    }
  }

  /// Calls a closure with the name and the value of each sample.
  static func each(_ body: (String, any SampleValue) throws -> Void) rethrows {
    let uuid = UUID(uuid: (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16))
    let date = Date(timeIntervalSinceReferenceDate: 800_000_000)
    let fraction = Date(timeIntervalSinceReferenceDate: 123_456.789)
    try body("Bool", true)
    try body("Int", -1000)
    try body("UInt8", UInt8.max)
    try body("UInt64", UInt64.max)
    try body("Int128", Int128.min)
    try body("UInt128", UInt128.max)
    try body("small Int128", Int128(5))
    try body("Float", Float(0.1))
    try body("Double", 0.1)
    try body("whole Double", 3.0)
    try body("large Double", 1e300)
    try body("infinity", -Double.infinity)
    try body("CGFloat", CGFloat(1.1))
    try body("String", "text")
    try body("long String", String(repeating: "é", count: 40))
    try body("empty String", "")
    try body("text of a number", "17")
    try body("text of a UUID", uuid.uuidString)
    try body("whole Date", date)
    try body("Date", fraction)
    try body("early Date", Date.distantPast)
    try body("tiny Date", Date(timeIntervalSinceReferenceDate: 1e-300))
    try body("Date of 2001", Date(timeIntervalSinceReferenceDate: 0))
    try body("UUID", uuid)
    try body("Data", Data([0, 24, 255]))
    try body("empty Data", Data())
    try body("bytes", [UInt8]([0, 23, 24, 255]))
    try body("no bytes", [UInt8]())
    try body("URL", URL(string: "https://example.org/a?b#c") ?? URL(filePath: "/"))
    try body(
      "relative URL", URL(string: "b/c", relativeTo: URL(string: "https://example.org/a/")) ?? URL(filePath: "/"))
    try body("file URL", URL(filePath: "/tmp/ä ö"))
    try body("Decimal", Decimal(string: "-12345678901234567890.12345") ?? 0)
    try body("whole Decimal", Decimal(3))
    try body("Int?", Int?.some(3))
    try body("nil", Int?.none)
    try body("Date?", Date?.some(date))
    try body("[Int]", [1, -2, 300])
    try body("[Int?]", [1, nil, 3])
    try body("[Double]", [0.5, 2])
    try body("[Date]", [date, fraction])
    try body("[[UInt8]]", [[UInt8]]([[], [1, 2]]))
    try body("[Int8]", [Int8]([-1, 2]))
    try body("ContiguousArray", ContiguousArray<UInt8>([1, 2]))
    try body("Set<Int>", Set([3, 1, 2]))
    try body("Set<UInt8>", Set<UInt8>([3, 1, 2]))
    try body("Set<UUID>", Set([uuid]))
    try body("Set<Level>", Set([Level.low, .high]))
    try body("[String: Int]", ["b": 1, "a": 2, "17": 3])
    try body("[String: Date]", ["a": date, "b": fraction])
    try body("[Int: String]", [1: "a", -5: "b"])
    try body("[Int: Date]", [1: date])
    try body("[Int8: Int]", [Int8(1): 2])
    try body("[UInt64: Int]", [UInt64.max: 2, 3: 4])
    try body("[Double: Int]", [1.5: 1, -0.5: 2])
    try body("[Bool: Int]", [true: 1, false: 2])
    try body("[Date: Int]", [date: 1, fraction: 2])
    try body("[UUID: Int]", [uuid: 1])
    try body("[URL: Int]", [URL(filePath: "/tmp"): 1])
    try body("[Level: Int]", [Level.low: 1, .high: 2])
    try body("[Number: [Level: Int]]", [Number.one: [Level.low: 1]])
    try body("[TextKey: Int]", [TextKey.a: 1, .b: 2])
    try body("[NumberKey: Date]", [NumberKey.one: date, .two: fraction])
    try body("[StructureKey: Int]", [StructureKey(first: 1, second: 2): 3, StructureKey(first: 0, second: 5): 4])
    try body("[Point: [Int]]", [Point(x: 1, y: 2): [3]])
    try body("[[Int]: Int]", [[1, 2]: 3, []: 4])
    try body("[Int?: Int]", [1: 2, nil: 3] as [Int?: Int])
    try body("empty [String: Int]", [String: Int]())
    try body("empty [Int: Int]", [Int: Int]())
    try body("empty [Level: Int]", [Level: Int]())
    try body("empty [UUID: Int]", [UUID: Int]())
    try body("empty [Int]", [Int]())
    try body("Point", Point(x: 1, y: 0.5))
    try body("Level", Level.high)
    try body("Number", Number.two)
    try body("Tree", Tree.node(.leaf, label: nil, children: [.text("x"), .node(.leaf, label: "y", children: [])]))
    try body("Nothing", Nothing())
    try body("[Nothing]", [Nothing(), Nothing()])
    try body(
      "AnyValue",
      AnyValue.object([
        "a": .array([.null, .bool(true), .int(1), .double(1.5), .text("x"), .object([:])]), "17": .array([]),
      ]))
    try body("AnyValue of a whole Double", AnyValue.double(1))
    try body("MissingSuper", MissingSuper())
    try body("SetOfRepeated", SetOfRepeated(["x", "y"]))
    try body("OtherForms", OtherForms(fraction, uuid, Decimal(0.25), [1, 255], [1: 2, -3: 4]))
    try body("Range", 1..<5)
    try body("ClosedRange", "a"..."b")
    try body("Range<Date>", date..<date.addingTimeInterval(0.1))
    try body("Duration", Duration.milliseconds(1500))
    try body("Locale", Locale(identifier: "de_DE"))
    try body("TimeZone", TimeZone(secondsFromGMT: 3600) ?? .gmt)
    try body("DateComponents", DateComponents(year: 2026, month: 3))
    try body("DateInterval", DateInterval(start: date, duration: 5))
    try body("IndexSet", IndexSet([1, 2, 5]))
    try body("IndexPath", IndexPath(indexes: [1, 2]))
    try body("URLComponents", URLComponents(string: "https://example.org/c?d=e") ?? URLComponents())
    try body("PersonNameComponents", PersonNameComponents(givenName: "Ada"))
    try body("CGPoint", CGPoint(x: 1, y: 2))
    try body("CGRect", CGRect(x: 1, y: 2, width: 3, height: 4))
    try body("CharacterSet", CharacterSet.whitespaces)
    try body("Measurement", Measurement(value: 3, unit: UnitLength.meters))
  }

  /// Returns each value, bare and in each wrapper.
  static func samples() -> [CodingSample] {
    var samples: [CodingSample] = []
    func add<Value: SampleValue>(_ name: String, _ value: Value) {
      samples.append(CodingSample(name, value))
      samples += CodingSample.wrapped(name, value)
    }
    each { name, value in add(name, value) }
    return samples
  }
}
