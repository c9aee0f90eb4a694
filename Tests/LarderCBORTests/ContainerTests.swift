import Foundation
import Larder
import LarderCBOR
import LarderTesting
import Testing

/// Unusual but valid uses of encoders and decoders.
@Suite struct ContainerTests {
  private enum Key: String, CodingKey { case a, b, c, d }

  /// A type with the coding that a test gives it.
  private struct Scripted: Encodable, Sendable {
    let script: @Sendable (any Encoder) throws -> Void
    init(_ script: @escaping @Sendable (any Encoder) throws -> Void) { self.script = script }
    func encode(to encoder: any Encoder) throws { try script(encoder) }
  }

  private func encoded(_ script: @escaping @Sendable (any Encoder) throws -> Void) throws -> String {
    struct Holder: Codable, Sendable {
      let value: Scripted
      init(_ value: Scripted) { self.value = value }
      init(from decoder: any Decoder) throws { value = Scripted { _ in } }
      func encode(to encoder: any Encoder) throws { try value.encode(to: encoder) }
    }
    return try Coding.hex(Coding.encoded(Holder(Scripted(script))))
  }

  /// A field whose name is written and read with other bytes, which are canonically equivalent.
  private struct Renamed: Codable, Equatable {
    struct Name: CodingKey {
      let stringValue: String
      var intValue: Int? { nil }
      init(_ name: String) { stringValue = name }
      init?(stringValue: String) { self.init(stringValue) }
      init?(intValue: Int) { return nil }
    }

    var first, second: Int
    var third: Int?

    init(_ first: Int, _ second: Int) {
      (self.first, self.second) = (first, second)
    }

    func encode(to encoder: any Encoder) throws {
      var container = encoder.container(keyedBy: Name.self)
      try container.encode(first, forKey: Name("caf\u{E9}"))
      try container.encode(second, forKey: Name("a\u{323}\u{307}"))
    }

    init(from decoder: any Decoder) throws {
      let container = try decoder.container(keyedBy: Name.self)
      second = try container.decode(Int.self, forKey: Name("a\u{307}\u{323}"))
      first = try container.decode(Int.self, forKey: Name("cafe\u{301}"))
      third = try container.decodeIfPresent(Int.self, forKey: Name("caf\u{E8}"))
      #expect(container.contains(Name("cafe\u{301}")) && !container.contains(Name("\u{E9}")))
    }
  }

  @Test func `canonically equivalent names are one field`() throws {
    let value = Renamed(1, 2)
    #expect(try JSONDecoder().decode(Renamed.self, from: JSONEncoder().encode(value)) == value)
    #expect(try Coding.decoded(Renamed.self, Coding.encoded(value)) == value)
    // If a map has both forms, {"e\u{301}": 1, "\u{E9}": 2}, each is found by its bytes.
    struct Both: Codable {
      var values: [Int]
      init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: Renamed.Name.self)
        values = try ["\u{E9}", "e\u{301}"].map { try container.decode(Int.self, forKey: Renamed.Name($0)) }
      }
      func encode(to encoder: any Encoder) throws {}
    }
    #expect(try Coding.decoded(Both.self, hex: "a26365cc810162c3a902").values == [2, 1])
  }

  @Test func `containers written alternately`() throws {
    let script: @Sendable (any Encoder) throws -> Void = { encoder in
      var container = encoder.container(keyedBy: Key.self)
      var first = container.nestedUnkeyedContainer(forKey: .a)
      var second = container.nestedContainer(keyedBy: Key.self, forKey: .b)
      try first.encode(1)
      try second.encode(2, forKey: .a)
      try first.encode(3)
      var inner = second.nestedUnkeyedContainer(forKey: .c)
      try container.encode(4, forKey: .c)
      try inner.encode("x")
      try first.encode([5])
      #expect(first.count == 3)
      try second.encode(6, forKey: .d)
      try inner.encode("y")
    }
    #expect(
      try encoded(script) == "a3616183010381056162a361610261638261786179616406616304")
    // The same within other containers, repeatedly.
    struct Repeated: Encodable {
      let script: @Sendable (any Encoder) throws -> Void
      func encode(to encoder: any Encoder) throws {
        var container = encoder.unkeyedContainer()
        for _ in 0..<30 { try container.encode(Scripted(script)) }
      }
    }
    let once = try encoded(script)
    #expect(
      try encoded { try Repeated(script: script).encode(to: $0) } == "981e" + String(repeating: once, count: 30))
  }

  @Test func `many elements in containers written alternately`() throws {
    let hex = try encoded { encoder in
      var container = encoder.container(keyedBy: Key.self)
      var first = container.nestedUnkeyedContainer(forKey: .a)
      var second = container.nestedUnkeyedContainer(forKey: .b)
      for number in 0..<300 {
        try first.encode(number)
        try second.encode(-1 - number)
      }
    }
    struct Fields: Codable, Equatable { var a: [Int], b: [Int] }
    #expect(try Coding.decoded(Fields.self, hex: hex) == Fields(a: Array(0..<300), b: (0..<300).map { -1 - $0 }))
    #expect(try Coding.hex(Coding.encoded(Coding.decoded(Fields.self, hex: hex))) == hex)
  }

  @Test func `long containers move their content`() throws {
    let hex = try encoded { encoder in
      var container = encoder.unkeyedContainer()
      var early = container.nestedUnkeyedContainer()
      try early.encode(1)
      for number in 0..<300 { try container.encode(number) }
      try early.encode(2)
    }
    #expect(hex.hasPrefix("99012d820102000102"))
    let nested = try encoded { encoder in
      var container = encoder.container(keyedBy: Key.self)
      var outer = container.nestedUnkeyedContainer(forKey: .a)
      var inner = outer.nestedUnkeyedContainer()
      for _ in 0..<30 { try outer.encode(0) }
      try container.encode(true, forKey: .b)
      try inner.encode(7)
      try outer.encode(8)
    }
    #expect(nested == "a261619820" + "8107" + String(repeating: "00", count: 30) + "08" + "6162f5")
  }

  @Test func `superclass encoders that are used later`() throws {
    #expect(
      try encoded { encoder in
        var container = encoder.container(keyedBy: Key.self)
        let parent = container.superEncoder()
        let other = container.superEncoder(forKey: .d)
        try container.encode(1, forKey: .a)
        var fields = parent.container(keyedBy: Key.self)
        try fields.encode(2, forKey: .b)
        var single = other.singleValueContainer()
        try single.encode("x")
      } == "a3657375706572a16162026164617861" + "6101")
    #expect(
      try encoded { encoder in
        var container = encoder.unkeyedContainer()
        _ = container.superEncoder()
        var array = container.superEncoder().unkeyedContainer()
        try container.encode(1)
        try array.encode(2)
      } == "83a0810201")
  }

  /// Containers that are written in any order keep their own content.
  @Test func `containers in random order`() throws {
    var random = SeededGenerator(seed: SeededGenerator.seedOfProcess, purpose: "containers in random order")
    for round in 0..<400 {
      let seed = random.next()
      let value = RandomCoding(seed: seed, stepCount: round / 4)
      let expected = Locked("")
      do {
        let hex = try encoded { encoder in
          let bytes = try value.write(to: encoder)
          expected.withLock { $0 = Coding.hex(bytes) }
        }
        #expect(hex == expected.withLock { $0 }, "seed \(seed), \(round / 4) steps")
      } catch {
        Issue.record(error, "seed \(seed), \(round / 4) steps")
      }
    }
  }

  /// A map with a duplicate key could not be read again, so it is not written.
  @Test func `a field is encoded once`() throws {
    let twice: [@Sendable (inout KeyedEncodingContainer<Key>, any Encoder) throws -> Void] = [
      { container, _ in try container.encode("x", forKey: .a) },
      { container, _ in try container.encodeNil(forKey: .a) },
      { container, _ in try container.encode(["a": 1], forKey: .a) },
      { container, _ in _ = container.nestedContainer(keyedBy: Key.self, forKey: .a) },
      { container, _ in _ = container.nestedUnkeyedContainer(forKey: .a) },
      { container, _ in _ = container.superEncoder(forKey: .a) },
      { _, encoder in
        // As a class and its superclass may do.
        var other = encoder.container(keyedBy: Key.self)
        try other.encode(2, forKey: .a)
      },
    ]
    let between: [@Sendable (inout KeyedEncodingContainer<Key>) throws -> Void] = [
      { _ in },
      { try $0.encode(2, forKey: .b) },
      { try $0.encode(["a": 1, "b": 2], forKey: .b) },
      {
        try $0.encode(
          Scripted {
            var inner = $0.container(keyedBy: Key.self); try inner.encode(1, forKey: .a)
          }, forKey: .b)
      },
      { container in
        var nested = container.nestedContainer(keyedBy: Key.self, forKey: .b)
        try nested.encode(3, forKey: .a)
      },
    ]
    for between in between {
      _ = try encoded { encoder in
        var container = encoder.container(keyedBy: Key.self)
        try container.encode(1, forKey: .a)
        try between(&container)
      }
      for again in twice {
        #expect(throws: EncodingError.self) {
          try encoded { encoder in
            var container = encoder.container(keyedBy: Key.self)
            try container.encode(1, forKey: .a)
            try between(&container)
            try again(&container, encoder)
          }
        }
        // In a container that is written after its parent.
        #expect(throws: EncodingError.self) {
          try encoded { encoder in
            var container = encoder.container(keyedBy: Key.self)
            let parent = container.superEncoder()
            var late = parent.container(keyedBy: Key.self)
            try late.encode(1, forKey: .a)
            try container.encode(2, forKey: .c)
            try between(&late)
            try again(&late, parent)
          }
        }
      }
    }
    // The failed value left no key.
    struct Failure: Error {}
    #expect(
      try encoded { encoder in
        var container = encoder.container(keyedBy: Key.self)
        #expect(throws: Failure.self) { try container.encode(Scripted { _ in throw Failure() }, forKey: .a) }
        try container.encode(1, forKey: .a)
      } == "a1616101")
    // Any number of distinct names is valid.
    let numbers = Dictionary(uniqueKeysWithValues: (0..<1000).map { ("\($0)", $0) })
    struct Names: CodingKey {
      let stringValue: String
      var intValue: Int? { nil }
      init(stringValue: String) { self.stringValue = stringValue }
      init?(intValue: Int) { nil }
    }
    let hex = try encoded { encoder in
      var container = encoder.container(keyedBy: Names.self)
      try container.encode(-1, forKey: Names(stringValue: ""))
      for (name, number) in numbers { try container.encode(number, forKey: Names(stringValue: name)) }
    }
    #expect(try Coding.decoded([String: Int].self, hex: hex) == numbers.merging(["": -1]) { old, _ in old })
  }

  private class Animal: Codable {
    var name: String
    init(name: String) { self.name = name }
  }

  private final class Dog: Animal {
    var tricks: [String]

    init(name: String, tricks: [String]) {
      self.tricks = tricks
      super.init(name: name)
    }

    private enum Keys: CodingKey { case tricks }

    required init(from decoder: any Decoder) throws {
      let container = try decoder.container(keyedBy: Keys.self)
      tricks = try container.decode([String].self, forKey: .tricks)
      try super.init(from: container.superDecoder())
    }

    override func encode(to encoder: any Encoder) throws {
      var container = encoder.container(keyedBy: Keys.self)
      try container.encode(tricks, forKey: .tricks)
      try super.encode(to: container.superEncoder())
    }
  }

  private final class Cat: Animal {
    var lives: Int

    init(name: String, lives: Int) {
      self.lives = lives
      super.init(name: name)
    }

    private enum Keys: CodingKey { case lives }

    required init(from decoder: any Decoder) throws {
      lives = try decoder.container(keyedBy: Keys.self).decode(Int.self, forKey: .lives)
      try super.init(from: decoder)
    }

    override func encode(to encoder: any Encoder) throws {
      try super.encode(to: encoder)
      var container = encoder.container(keyedBy: Keys.self)
      try container.encode(lives, forKey: .lives)
    }
  }

  private struct Zoo: Codable, @unchecked Sendable {
    // Tests never change it.
    var dogs: [Dog], cats: [Cat]
  }

  @Test func `classes inherit fields`() throws {
    let zoo = Zoo(
      dogs: [Dog(name: "Rex", tricks: ["sit", "roll"]), Dog(name: "Fido", tricks: [])],
      cats: [Cat(name: "Tom", lives: 9), Cat(name: "Kit", lives: 1)])
    let bytes = try Coding.encoded(zoo)
    let read = try Coding.decoded(Zoo.self, bytes)
    #expect(read.dogs.map(\.name) == ["Rex", "Fido"])
    #expect(read.dogs.map(\.tricks) == [["sit", "roll"], []])
    #expect(read.cats.map(\.name) == ["Tom", "Kit"])
    #expect(read.cats.map(\.lives) == [9, 1])
    #expect(try Coding.encoded(read) == bytes)
  }

  private struct Forgiving: Codable, Equatable {
    var fields: [Int]

    init(from decoder: any Decoder) throws {
      let container = try decoder.container(keyedBy: Key.self)
      fields = []
      for key in [Key.a, .b, .c, .d] {
        if let number = try? container.decode(Int.self, forKey: key) {
          fields.append(number)
        } else if let text = try? container.decode([String].self, forKey: key) {
          fields.append(text.count)
        }
      }
    }

    func encode(to encoder: any Encoder) throws {}
  }

  @Test func `a type may try several forms`() throws {
    #expect(try Coding.decoded(Forgiving.self, hex: "a36161016162826178617961630" + "3").fields == [1, 2, 3])
    struct Either: Codable, Equatable {
      var text: String
      init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        if let number = try? container.decode(Int.self) {
          text = "\(number)"
        } else if let list = try? container.decode([Int].self) {
          text = "\(list)"
        } else if container.decodeNil() {
          text = "nil"
        } else if var array = try? decoder.unkeyedContainer() {
          text = try array.decode(String.self)
        } else {
          text = try decoder.container(keyedBy: Key.self).decode(String.self, forKey: .b)
        }
      }
      func encode(to encoder: any Encoder) throws {}
    }
    let read = try Coding.decoded([Either].self, hex: "850182010281617af6a2616101616261" + "79")
    #expect(read.map(\.text) == ["1", "[1, 2]", "z", "nil", "y"])
  }

  @Test func `a type may continue after an error`() throws {
    struct Refusing: Encodable {
      func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: Key.self)
        try container.encode([1, 2, 3], forKey: .a)
        _ = container.nestedUnkeyedContainer(forKey: .b)
        throw CancellationError()
      }
    }
    let hex = try encoded { encoder in
      var container = encoder.container(keyedBy: Key.self)
      try container.encode(1, forKey: .a)
      try? container.encode(Refusing(), forKey: .b)
      try? container.encode([[Refusing()]], forKey: .c)
      try container.encode(2, forKey: .d)
    }
    #expect(hex == "a2616101616402")
  }

  @Test func `values that encode nothing`() throws {
    struct Nothing: Codable, Equatable {}
    try Coding.expectRoundTrip([Nothing()])
    #expect(try Coding.encoded([Nothing()]) == [0x81, 0xA0])
    #expect(try encoded { _ in } == "a0")
    #expect(try encoded { _ = $0.unkeyedContainer() } == "80")
    #expect(try encoded { _ = $0.container(keyedBy: Key.self) } == "a0")
  }

  @Test func `one encoder has one container`() {
    #expect(throws: EncodingError.self) {
      try encoded { encoder in
        var array = encoder.unkeyedContainer()
        try array.encode(1)
        var map = encoder.container(keyedBy: Key.self)
        try map.encode(1, forKey: .a)
      }
    }
    #expect(throws: EncodingError.self) {
      try encoded { encoder in
        var container = encoder.singleValueContainer()
        try container.encode(1)
        try container.encode(2)
      }
    }
  }

  @Test func `a container cannot be used afterwards`() throws {
    nonisolated(unsafe) var kept: (any UnkeyedEncodingContainer)?
    nonisolated(unsafe) var keptEncoder: (any Encoder)?
    _ = try encoded { encoder in
      keptEncoder = encoder
      kept = encoder.unkeyedContainer()
    }
    #expect(throws: EncodingError.self) { try kept?.encode(1) }
    #expect(throws: EncodingError.self) {
      var container = try #require(keptEncoder).container(keyedBy: Key.self)
      try container.encode("x", forKey: .a)
    }
    #expect(keptEncoder?.codingPath.isEmpty == true)

    nonisolated(unsafe) var decoder: (any Decoder)?
    nonisolated(unsafe) var container: KeyedDecodingContainer<Key>?
    struct Keeping: Codable {
      static nonisolated(unsafe) var keep: (any Decoder) throws -> Void = { _ in }
      init(from decoder: any Decoder) throws { try Keeping.keep(decoder) }
    }
    Keeping.keep = {
      decoder = $0
      container = try $0.container(keyedBy: Key.self)
    }
    _ = try Coding.decoded(Keeping.self, hex: "a1616101")
    #expect(throws: DecodingError.self) { try container?.decode(Int.self, forKey: .a) }
    #expect(throws: DecodingError.self) { try decoder?.singleValueContainer().decode(Int.self) }
    #expect(container?.allKeys.isEmpty == true)
    #expect(container?.codingPath.isEmpty == true)
  }

  /// A retained encoder or container refuses, whatever is encoded in its memory in the meantime.
  @Test func `a retained encoder does not fail other values`() throws {
    nonisolated(unsafe) var encoder: (any Encoder)?
    nonisolated(unsafe) var map: KeyedEncodingContainer<Key>?
    nonisolated(unsafe) var array: (any UnkeyedEncodingContainer)?
    _ = try encoded {
      encoder = $0
      map = $0.container(keyedBy: Key.self)
      array = map?.nestedUnkeyedContainer(forKey: .a)
    }
    // The pool gives a value the memory of the one before, unless another thread has taken it.
    for _ in 0..<10 {
      let hex = try encoded {
        var container = $0.unkeyedContainer()
        try container.encode(1)
        _ = encoder?.unkeyedContainer()
        var nested = map?.nestedContainer(keyedBy: Key.self, forKey: .b)
        _ = nested?.superEncoder()
        #expect(throws: EncodingError.self) {
          var nested = array?.nestedUnkeyedContainer()
          try nested?.encode(1)
        }
        try container.encode(2)
      }
      #expect(hex == "820102")
    }
  }

  /// A retained unkeyed container of indefinite length stays at its end, whatever is decoded in the meantime.
  @Test func `a retained array reads nothing later`() throws {
    nonisolated(unsafe) var kept: [any UnkeyedDecodingContainer] = []
    struct Keeping: Codable {
      static nonisolated(unsafe) var keep: (any Decoder) throws -> Void = { _ in }
      init(from decoder: any Decoder) throws { try Keeping.keep(decoder) }
      func encode(to encoder: any Encoder) throws {}
    }
    Keeping.keep = { decoder in
      let container = try decoder.unkeyedContainer()
      #expect(!container.isAtEnd)
      #expect(!kept.contains { !$0.isAtEnd })
      kept.append(container)
    }
    for _ in 0..<3 { _ = try Coding.decoded(Keeping.self, hex: "9f0102ff") }
    #expect(!kept.contains { !$0.isAtEnd })
  }

  /// Containers are reused for later values unless a type still holds them.
  @Test func `a retained container is not reused`() throws {
    nonisolated(unsafe) var keptEncoding: [KeyedEncodingContainer<Key>] = []
    nonisolated(unsafe) var keptDecoding: [KeyedDecodingContainer<Key>] = []
    let element = Scripted { encoder in
      var container = encoder.container(keyedBy: Key.self)
      try container.encode(keptEncoding.count, forKey: .a)
      for index in keptEncoding.indices {
        #expect(throws: EncodingError.self) { try keptEncoding[index].encode("x", forKey: .b) }
      }
      // Keeps every other container.
      if keptEncoding.count.isMultiple(of: 2) || keptEncoding.count > 3 { keptEncoding.append(container) }
      // The same map again, in a separate container.
      var again = encoder.container(keyedBy: Key.self)
      try again.encode(true, forKey: .c)
      try container.encode(false, forKey: .d)
    }
    let hex = try encoded { encoder in
      var array = encoder.unkeyedContainer()
      try array.encode([element, element, element])
    }
    #expect(hex == "8183" + "a361610" + "06163f56164f4" + "a361610" + "16163f56164f4" + "a361610" + "16163f56164f4")

    struct Element: Codable {
      static nonisolated(unsafe) var script: (any Decoder) throws -> Int = { _ in 0 }
      var number: Int
      init(from decoder: any Decoder) throws { number = try Element.script(decoder) }
      func encode(to encoder: any Encoder) throws {}
    }
    Element.script = { decoder in
      let container = try decoder.container(keyedBy: Key.self)
      for other in keptDecoding {
        #expect(throws: DecodingError.self) { try other.decode(Int.self, forKey: .a) }
      }
      let number = try container.decode(Int.self, forKey: .a)
      if number == 0 { keptDecoding.append(container) }
      #expect(try decoder.container(keyedBy: Key.self).decode(Bool.self, forKey: .c))
      #expect(try !container.decode(Bool.self, forKey: .d))
      return number
    }
    #expect(try Coding.decoded([[Element]].self, hex: hex).first?.map(\.number) == [0, 1, 1])
    #expect(try Coding.decoded([[Element]].self, hex: hex).first?.map(\.number) == [0, 1, 1])
  }

  @Test func `coding paths are available`() throws {
    let path: @Sendable ([any CodingKey]) -> String = { $0.map(\.stringValue).joined(separator: "/") }
    _ = try encoded { encoder in
      #expect(path(encoder.codingPath) == "")
      var container = encoder.container(keyedBy: Key.self)
      try container.encode(1, forKey: .a)
      #expect(path(container.codingPath) == "")
      try container.encode([[Scripted { #expect(path($0.codingPath) == "b/Index 0/Index 0") }]], forKey: .b)
      var array = container.nestedUnkeyedContainer(forKey: .c)
      try array.encode("x")
      #expect(path(array.codingPath) == "c")
      let inner = array.nestedContainer(keyedBy: Key.self)
      #expect(path(inner.codingPath) == "c/Index 1")
      try container.encode(Scripted { #expect(path($0.codingPath) == "d") }, forKey: .d)
    }
    struct Tree: Codable {
      var path: String
      var children: [String: Tree]
      enum Keys: CodingKey { case children }
      init(path: String, children: [String: Tree]) { (self.path, self.children) = (path, children) }
      init(from decoder: any Decoder) throws {
        path = decoder.codingPath.map(\.stringValue).joined(separator: "/")
        let container = try decoder.container(keyedBy: Keys.self)
        #expect(container.codingPath.map(\.stringValue).joined(separator: "/") == path)
        children = try container.decode([String: Tree].self, forKey: .children)
      }
    }
    let leaf = Tree(path: "", children: [:])
    let tree = Tree(path: "", children: ["x": leaf, "y": Tree(path: "", children: ["z": leaf])])
    let read = try Coding.decoded(Tree.self, Coding.encoded(tree))
    #expect(read.children["x"]?.path == "children/x")
    #expect(read.children["y"]?.children["z"]?.path == "children/y/children/z")
  }

  @Test func `containers of a decoder are independent`() throws {
    struct Both: Codable {
      var numbers: [Int] = []
      init(from decoder: any Decoder) throws {
        var first = try decoder.unkeyedContainer()
        var second = try decoder.unkeyedContainer()
        numbers.append(try first.decode(Int.self))
        var copy = first
        numbers.append(try copy.decode(Int.self))
        numbers.append(try first.decode(Int.self))
        numbers.append(try second.decode(Int.self))
        numbers.append(try second.decode(Int.self))
        #expect(try second.nestedUnkeyedContainer().count == 1)
        #expect(!first.isAtEnd && first.currentIndex == 2 && first.count == 4)
      }
      func encode(to encoder: any Encoder) throws {}
    }
    #expect(try Coding.decoded(Both.self, hex: "840102810504").numbers == [1, 2, 2, 1, 2])
    Coding.expectRefused(Both.self, "8401020304")
  }

  /// A value that decodes from a container of the enclosing value, which it received outside of its decoder.
  private struct Looking: Decodable {
    // Used only on the thread that creates it.
    struct Outer: @unchecked Sendable {
      let container: KeyedDecodingContainer<Key>
    }

    @TaskLocal static var outer: Outer?

    var sum: Int

    init(from decoder: any Decoder) throws {
      let container = try decoder.container(keyedBy: Key.self)
      // The order differs from that of the map, so that its keys are listed. The same holds for the enclosing map.
      sum = try container.decode(Int.self, forKey: .b)
      sum += try Looking.outer?.container.decode(Int.self, forKey: .d) ?? 0
      sum += try container.decode(Int.self, forKey: .a)
    }
  }

  @Test func `a value may decode from its enclosing value`() throws {
    struct Outer: Codable {
      var numbers: [Int]

      init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: Key.self)
        let sum = try Looking.$outer.withValue(Looking.Outer(container: container)) {
          try container.decode(Looking.self, forKey: .a).sum
        }
        let other = try container.decode(Looking.self, forKey: .b).sum
        numbers = try [sum, other, container.decode(Int.self, forKey: .c), container.decode(Int.self, forKey: .d)]
      }

      func encode(to encoder: any Encoder) throws {}
    }
    // {"a": {"a": 1, "b": 2}, "b": {"a": 10, "b": 20}, "c": 3, "d": 100}
    let hex = "a4" + "6161a2616101616202" + "6162a261610a616214" + "616303" + "61641864"
    #expect(
      try Coding.decoded([Outer].self, hex: "82" + hex + hex).map(\.numbers) == [
        [103, 30, 3, 100], [103, 30, 3, 100],
      ])
  }

  @Test func `nested containers are read`() throws {
    struct Nested: Codable, Equatable {
      var text: String
      init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: Key.self)
        let inner = try container.nestedContainer(keyedBy: Key.self, forKey: .a)
        var array = try container.nestedUnkeyedContainer(forKey: .b)
        let innermost = try array.nestedContainer(keyedBy: Key.self)
        text = try inner.decode(String.self, forKey: .c)
        text += try innermost.decode(String.self, forKey: .d)
        text += try array.decode(String.self)
        #expect(array.isAtEnd)
        #expect(throws: DecodingError.self) { try array.decode(String.self) }
        text += try container.decode(String.self, forKey: .c)
        #expect(try container.decodeNil(forKey: .d))
        // JSON also returns true for a missing superclass.
        #expect(try container.superDecoder().singleValueContainer().decodeNil())
        #expect(throws: DecodingError.self) { try inner.decodeNil(forKey: .d) }
      }
      func encode(to encoder: any Encoder) throws {}
    }
    let inner = "a2616100616361" + "78"
    let array = "82a16164617961" + "7a"
    let value = "a46161" + inner + "6162" + array + "6163" + "6177" + "6164f6"
    #expect(try Coding.decoded(Nested.self, hex: value).text == "xyzw")
    #expect(try Coding.decoded([Nested].self, hex: "82" + value + value).map(\.text) == ["xyzw", "xyzw"])
    let other = "a46164f66163" + "6177" + "6162" + array + "6161" + inner
    #expect(try Coding.decoded([Nested].self, hex: "82" + other + other).map(\.text) == ["xyzw", "xyzw"])
  }
}
