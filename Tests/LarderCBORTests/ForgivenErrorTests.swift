import Foundation
import Testing

@testable import LarderCBOR

/// Types that continue after an error in one of their parts.
@Suite struct ForgivenErrorTests {
  private enum Key: String, CodingKey { case a, b, c }

  // MARK: Decoding

  /// A type that tolerates unknown kinds from other writers.
  private struct Tolerant: Codable, Sendable, Equatable {
    enum Kind: String, Codable { case known, unknown }

    var kind: Kind
    var number: Int?
    var list: [Int]

    init(from decoder: any Decoder) throws {
      let container = try decoder.container(keyedBy: Key.self)
      // Uses the standard library's decoding of raw values, which asks for the coding path.
      kind = (try? container.decode(Kind.self, forKey: .a)) ?? .unknown
      number = try? container.decode(Int.self, forKey: .b)
      list = (try? container.decode([Int].self, forKey: .c)) ?? []
    }

    func encode(to encoder: any Encoder) throws {}
  }

  /// A type that reads only the keys of a map receives an error for an unreadable key.
  @Test func `unreadable keys`() throws {
    struct Names: Codable, Sendable, Equatable {
      var names: [String]
      init(from decoder: any Decoder) throws {
        names = try decoder.container(keyedBy: CBORPathKey.self).allKeys.map(\.stringValue)
      }
      func encode(to encoder: any Encoder) throws {}
    }
    #expect(try Coding.decoded(Names.self, hex: "a2616101616202").names.sorted() == ["a", "b"])
    #expect(throws: DecodingError.self) { try Coding.decoded(Names.self, hex: "a261610161ff02") }
    #expect(throws: DecodingError.self) { try Coding.decoded([Names].self, hex: "81a261610161ff02") }
  }

  /// A type that tries two kinds of dictionaries gets back the one that it wrote, even if it is empty.
  @Test func `tried dictionaries`() throws {
    enum Either: Codable, Sendable, Equatable {
      case names([String: Int])
      case numbers([Int: Int])
      case identifiers([UUID: Int])

      init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        if let names = try? container.decode([String: Int].self) {
          self = .names(names)
        } else if let numbers = try? container.decode([Int: Int].self) {
          self = .numbers(numbers)
        } else {
          self = .identifiers(try container.decode([UUID: Int].self))
        }
      }

      func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        switch self {
        case .names(let names): try container.encode(names)
        case .numbers(let numbers): try container.encode(numbers)
        case .identifiers(let identifiers): try container.encode(identifiers)
        }
      }
    }
    for value in [Either.identifiers([:]), .identifiers([UUID(): 1]), .names(["a": 1]), .names([:])] {
      #expect(try Coding.decoded(Either.self, Coding.encoded(value)) == value)
    }
  }

  /// Returns an array of `{"a":"x","b":"y","c":[1,"z"]}`, no field of which has the requested type.
  private static func strange(count: Int) -> [UInt8] {
    let head = String(format: "9a%08x", count)
    let element = "a3" + "61616178" + "61626179" + "61638201617a"
    return Coding.bytes(head) + Array(repeatElement(Coding.bytes(element), count: count).joined())
  }

  @Test func `unreadable parts are skipped`() throws {
    let read = try Coding.decoded([Tolerant].self, ForgivenErrorTests.strange(count: 2))
    #expect(read.map(\.kind) == [.unknown, .unknown])
    #expect(read.map(\.number) == [nil, nil])
    #expect(read.map(\.list) == [[], []])
  }

  /// Sixteen times as many errors take about sixteen times as long, not 256 times.
  @Test func `many forgiven errors take linear time`() throws {
    /// The processor time, so other work on the machine does not matter.
    func now() -> Int {
      var time = timespec()
      clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
      return time.tv_sec * 1_000_000_000 + time.tv_nsec
    }
    func shortest(count: Int) throws -> Int {
      let bytes = ForgivenErrorTests.strange(count: count)
      let times = try (0..<3).map { _ in
        let start = now()
        _ = try Coding.decoded([Tolerant].self, bytes)
        return now() - start
      }
      return times.reduce(times[0], min)
    }
    let few = try shortest(count: 25)
    #expect(try shortest(count: 400) < few * 64)
  }

  /// Each error has its own coding path, whatever was requested before.
  @Test func `forgiven errors have their paths`() throws {
    struct Asking: Codable, Sendable {
      var paths: [String] = []

      init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: Key.self)
        func note(_ body: () throws -> Int) {
          do {
            _ = try body()
          } catch DecodingError.typeMismatch(_, let context) {
            paths.append(context.codingPath.map(\.stringValue).joined(separator: "/"))
          } catch DecodingError.keyNotFound(_, let context) {
            paths.append("?" + context.codingPath.map(\.stringValue).joined(separator: "/"))
          } catch {
            paths.append("\(error)")
          }
        }
        note { try container.decode(Int.self, forKey: .b) }
        note { try container.decode([[Int]].self, forKey: .c)[0][0] }
        note { try container.decode(Int.self, forKey: .a) }
        note { try container.nestedContainer(keyedBy: Key.self, forKey: .b).decode(Int.self, forKey: .c) }
        note { try container.decode([[Int]].self, forKey: .c)[0][0] }
        note { try container.decode([String: Int].self, forKey: .a).count }
      }

      func encode(to encoder: any Encoder) throws {}
    }
    // {"a": {"x": "y"}, "b": {"a": "z"}, "c": [[1], [2, "w"]]}
    let hex = "a3" + "6161a161786179" + "6162a16161617a" + "61638281018202" + "6177"
    let paths = ["b", "c/Index 1/Index 1", "a", "?b", "c/Index 1/Index 1", "a/x"]
    let read = try Coding.decoded([Asking].self, hex: "82" + hex + hex)
    for index in 0..<2 {
      #expect(
        read[index].paths
          == paths.map { $0.hasPrefix("?") ? "?Index \(index)/" + $0.dropFirst() : "Index \(index)/" + $0 })
    }
  }

  /// The keys of a truncated map are not kept each time the map is requested.
  @Test func `a truncated map leaves nothing`() throws {
    let bytes = Coding.bytes("a4" + "616101" + "616202" + "6163")
    try bytes.withUnsafeBytes { bytes in
      var reader = CBORReader(bytes)
      for _ in 0..<3 {
        reader.next = reader.base
        reader.depth = 0
        let count = try reader.openPairs()
        var cursor = MapCursor(start: reader.next, count: count)
        #expect(throws: DecodingError.self) { try reader.list(&cursor) }
        #expect(reader.listing?.maps.count == 0)
      }
    }
  }

  // MARK: Encoding

  /// A type that writes a part of itself before it throws.
  private struct Breaking: Codable, Sendable {
    init() {}
    init(from decoder: any Decoder) throws { throw CancellationError() }
    func encode(to encoder: any Encoder) throws {
      var container = encoder.container(keyedBy: Key.self)
      try container.encode([1, 2, 3], forKey: .a)
      throw CancellationError()
    }
  }

  @Test func `an element that fails leaves nothing`() throws {
    struct Elements: Codable, Sendable {
      init() {}
      init(from decoder: any Decoder) throws {}
      func encode(to encoder: any Encoder) throws {
        var container = encoder.unkeyedContainer()
        try container.encode(1)
        try? container.encode(Breaking())
        try? container.encode([Breaking()])
        try? container.encode(["x": Breaking?.some(Breaking())])
        #expect(container.count == 1)
        try container.encode("x")
        var inner = container.nestedUnkeyedContainer()
        try? inner.encode([Breaking()])
        try container.encode(true)
        // The array was closed before.
        try? inner.encode([Breaking()])
        try inner.encode(2)
      }
    }
    #expect(try Coding.hex(Coding.encoded(Elements())) == "84" + "01" + "6178" + "8102" + "f5")
  }

  @Test func `a single value that fails leaves nothing`() throws {
    struct Single: Codable, Sendable {
      init() {}
      init(from decoder: any Decoder) throws {}
      func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try? container.encode([Breaking()])
        try? container.encode(Breaking())
        try container.encode("x")
      }
    }
    #expect(try Coding.hex(Coding.encoded([Single(), Single()])) == "8261786178")
  }

  // MARK: Both

  /// A number whose negative values cannot be encoded.
  private struct Number: Codable, Sendable, Equatable {
    var value: Int
    init(_ value: Int) { self.value = value }

    func encode(to encoder: any Encoder) throws {
      var container = encoder.container(keyedBy: Key.self)
      try container.encode(value, forKey: .a)
      if value < 0 { throw CancellationError() }
      try container.encode(value, forKey: .b)
    }

    init(from decoder: any Decoder) throws {
      let container = try decoder.container(keyedBy: Key.self)
      // The order differs from that of writing, so that the keys are listed.
      let value = try container.decode(Int.self, forKey: .b)
      self.value = try container.decode(Int.self, forKey: .a) == value ? value : -1
    }
  }

  /// Numbers, and `nil` in place of unreadable ones.
  private struct Numbers: Codable, Sendable, Equatable {
    var first: Number?
    var list: [Number?]
    var last: Number?

    init(first: Number?, list: [Number?], last: Number?) { (self.first, self.list, self.last) = (first, list, last) }

    init(from decoder: any Decoder) throws {
      let container = try decoder.container(keyedBy: Key.self)
      // In reverse order, so that the keys are listed here, too.
      last = try? container.decode(Number.self, forKey: .c)
      var array = try container.nestedUnkeyedContainer(forKey: .b)
      list = []
      while !array.isAtEnd {
        if let number = try? array.decode(Number.self) {
          list.append(number)
        } else {
          _ = try array.decode([String: String].self)
          list.append(nil)
        }
      }
      first = try? container.decode(Number.self, forKey: .a)
    }

    func encode(to encoder: any Encoder) throws {
      var container = encoder.container(keyedBy: Key.self)
      try? container.encode(first, forKey: .a)
      var array = container.nestedUnkeyedContainer(forKey: .b)
      for number in list {
        do {
          try array.encode(number)
        } catch is CancellationError {
          try array.encode(["none": "at all"])
        }
      }
      try? container.encode(last, forKey: .c)
    }
  }

  private struct Outer: Codable, Sendable, Equatable {
    var before: Number
    var middle: [Numbers]
    var after: Number
  }

  @Test func `an error of an inner value is forgiven`() throws {
    let broken = Number(-1)
    let written = [
      Numbers(first: Number(1), list: [Number(2), broken, Number(3)], last: broken),
      Numbers(first: broken, list: [broken, broken], last: Number(4)),
    ]
    let read = [
      Numbers(first: Number(1), list: [Number(2), nil, Number(3)], last: nil),
      Numbers(first: nil, list: [nil, nil], last: Number(4)),
    ]
    let codec = CBORCodec<[Outer]>()
    let bytes = try Coding.encoded(
      [
        Outer(before: Number(5), middle: written, after: Number(6)),
        Outer(before: Number(7), middle: [], after: Number(8)),
      ],
      codec)
    #expect(
      try Coding.decoded(bytes, codec) == [
        Outer(before: Number(5), middle: read, after: Number(6)),
        Outer(before: Number(7), middle: [], after: Number(8)),
      ])
  }
}
