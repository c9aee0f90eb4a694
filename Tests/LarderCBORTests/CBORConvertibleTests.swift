import Foundation
import Larder
import LarderCBOR
import Testing

/// Types that conform to `CBORConvertible`, alone and among `Codable` types.
@Suite struct CBORConvertibleTests {
  struct User: Codable, Sendable, Equatable {
    var id: Int
    var name: String
    var nickname: String?
    var created: Date
    var tags: [String]
  }

  /// The same type with handwritten coding.
  struct HandUser: Codable, CBORConvertible, Sendable, Equatable, Hashable {
    var id: Int
    var name: String
    var nickname: String?
    var created: Date
    var tags: [String]

    init(_ user: User) {
      (id, name, nickname, created, tags) = (user.id, user.name, user.nickname, user.created, user.tags)
    }

    // Never called, because the codec prefers the handwritten coding.
    init(from decoder: any Decoder) throws { throw CancellationError() }
    func encode(to encoder: any Encoder) throws { throw CancellationError() }

    func write(to writer: inout CBORWriter) throws {
      try writer.writeMap { map in
        try map.write(id, forKey: "id")
        try map.write(name, forKey: "name")
        try map.writeIfPresent(nickname, forKey: "nickname")
        try map.write(created, forKey: "created")
        try map.write(tags, forKey: "tags")
      }
    }

    init(from reader: inout CBORReader) throws {
      let user = try reader.readMap { map in
        try User(
          id: map.read(forKey: "id"), name: map.read(forKey: "name"), nickname: map.readIfPresent(forKey: "nickname"),
          created: map.read(forKey: "created"), tags: map.read(forKey: "tags"))
      }
      self.init(user)
    }
  }

  private static let users = [
    User(
      id: 1, name: "Ada", nickname: nil, created: Date(timeIntervalSinceReferenceDate: 7e8 + 0.1), tags: ["x", "y"]),
    User(id: -1_000_000, name: "", nickname: "Countess", created: .distantPast, tags: []),
  ]

  @Test func bothConformancesWriteTheSameBytes() throws {
    for user in CBORConvertibleTests.users {
      let bytes = try Coding.encoded(user)
      #expect(try Coding.encoded(HandUser(user), CBORCodec<HandUser>()) == bytes)
      #expect(try Coding.decoded(bytes, CBORCodec<HandUser>()) == HandUser(user))
      #expect(try Coding.decoded(User.self, bytes) == user)
    }
  }

  @Test func isUsedWithinCodableData() throws {
    struct Group: Codable, Sendable, Equatable {
      var leader: HandUser
      var deputy: HandUser?
      var members: [HandUser]
      var byName: [String: HandUser]
      var plain: [[User]]
      var seen: Set<HandUser>
    }
    struct PlainGroup: Codable, Sendable, Equatable {
      var leader: User
      var deputy: User?
      var members: [User]
      var byName: [String: User]
      var plain: [[User]]
      var seen: [User]
    }
    let users = CBORConvertibleTests.users
    let hands = users.map(HandUser.init)
    let group = Group(
      leader: hands[0], deputy: hands[1], members: hands, byName: ["a": hands[0], "b": hands[1]], plain: [users],
      seen: [hands[0]])
    let plain = PlainGroup(
      leader: users[0], deputy: users[1], members: users, byName: ["a": users[0], "b": users[1]], plain: [users],
      seen: [users[0]])
    #expect(try Coding.encoded(group) == Coding.encoded(plain))
    #expect(try Coding.decoded(Group.self, Coding.encoded(plain)) == group)
    #expect(try Coding.decoded(PlainGroup.self, Coding.encoded(group)) == plain)
  }

  @Test func holdsCodableData() throws {
    struct Holder: CBORConvertible, Sendable, Equatable {
      var users: [User]
      var last: User
      init(users: [User], last: User) { (self.users, self.last) = (users, last) }
      func write(to writer: inout CBORWriter) throws {
        try writer.writeMap { map in
          try map.encode(users, forKey: "users")
          try map.encode(last, forKey: "last")
        }
      }
      init(from reader: inout CBORReader) throws {
        self = try reader.readMap { try Holder(users: $0.decode(forKey: "users"), last: $0.decode(forKey: "last")) }
      }
    }
    let holder = Holder(users: CBORConvertibleTests.users, last: CBORConvertibleTests.users[1])
    let codec = CBORCodec<Holder>()
    #expect(try Coding.decoded(Coding.encoded(holder, codec), codec) == holder)
    let many = CBORCodec<[Int: [Holder?]]>()
    let value = [1: [holder, nil], 2: []]
    #expect(try Coding.decoded(Coding.encoded(value, many), many) == value)
  }

  @Test func fieldsOfOtherVersions() throws {
    struct New: CBORConvertible, Sendable, Equatable {
      var tags: [String]
      var email: String?
      var name: String
      init(tags: [String], email: String?, name: String) { (self.tags, self.email, self.name) = (tags, email, name) }
      func write(to writer: inout CBORWriter) throws {}
      init(from reader: inout CBORReader) throws {
        self = try reader.readMap { map in
          try New(
            tags: map.read(forKey: "tags"), email: map.readIfPresent(forKey: "email"), name: map.read(forKey: "name"))
        }
      }
    }
    let bytes = try Coding.encoded(CBORConvertibleTests.users)
    let read = try Coding.decoded(bytes, CBORCodec<[New]>())
    #expect(read == [New(tags: ["x", "y"], email: nil, name: "Ada"), New(tags: [], email: nil, name: "")])
    struct Missing: CBORConvertible, Sendable {
      init(from reader: inout CBORReader) throws { _ = try reader.readMap { try $0.read(Int.self, forKey: "email") } }
      func write(to writer: inout CBORWriter) throws {}
    }
    let error = try #require(throws: DecodingError.self) { try Coding.decoded(bytes, CBORCodec<[Missing]>()) }
    guard case .keyNotFound(let key, let context) = error else {
      Issue.record("\(error)")
      return
    }
    #expect(key.stringValue == "email")
    #expect(context.codingPath.map(\.intValue) == [0])
    for hex in [
      "a3616101616202616103", "a26161016161" + "02", "bf616101616202616103ff", "a1616101ff", "a161", "80", "f6",
    ] {
      #expect(throws: DecodingError.self) { try Coding.decoded(Coding.bytes(hex), CBORCodec<Missing>()) }
    }
  }

  @Test func outputIsWellFormed() {
    struct Scripted: CBORConvertible, Sendable {
      var script: @Sendable (inout CBORWriter) throws -> Void
      init(_ script: @escaping @Sendable (inout CBORWriter) throws -> Void) { self.script = script }
      init(from reader: inout CBORReader) throws { script = { _ in } }
      init(from decoder: any Decoder) throws { script = { _ in } }
      func write(to writer: inout CBORWriter) throws { try script(&writer) }
      func encode(to encoder: any Encoder) throws { throw CancellationError() }
    }
    func expectRefused(
      sourceLocation: SourceLocation = #_sourceLocation, _ script: @escaping @Sendable (inout CBORWriter) throws -> Void
    ) {
      #expect(throws: EncodingError.self, sourceLocation: sourceLocation) {
        try Coding.encoded(Scripted(script), CBORCodec<Scripted>())
      }
      #expect(throws: EncodingError.self, sourceLocation: sourceLocation) {
        try Coding.encoded([Scripted(script)], CBORCodec<[Scripted]>())
      }
    }
    expectRefused { _ in }
    expectRefused { writer in
      try writer.write(1)
      try writer.write(2)
    }
    expectRefused { try $0.writeMap { try $0.write("key") } }
    expectRefused { try $0.writeTag(1) { _ in } }
    expectRefused { try $0.writeMap { try $0.write(Scripted { _ in }, forKey: "a") } }
    // A map with a duplicate key could not be read again.
    expectRefused { writer in
      try writer.writeMap { map in
        try map.write(1, forKey: "a")
        try map.write(["a": 1], forKey: "b")
        try map.encode(2, forKey: "a")
      }
    }
    expectRefused { writer in
      try writer.writeMap { map in
        try map.write(1, forKey: "a name of more than 23 bytes")
        try map.write("b")
        try map.writeMap { try $0.write(1, forKey: "") }
        try map.write(1, forKey: "a name of more than 23 bytes")
      }
    }
    // An ignored error leaves incomplete output.
    expectRefused { writer in
      try writer.writeArray { array in
        try? array.writeMap { map in
          try map.write(1, forKey: "a")
          throw CancellationError()
        }
        try array.write(1)
      }
    }
    expectRefused { writer in
      try writer.writeMap { map in
        try? map.write(Scripted { _ in throw CancellationError() }, forKey: "a")
        try? map.write(Scripted { _ in throw CancellationError() }, forKey: "b")
      }
    }
    expectRefused { writer in
      try writer.writeArray { array in
        try? array.write(
          Scripted { writer in
            try writer.write(1)
            throw CancellationError()
          })
        try array.write(2)
      }
    }
    expectRefused { writer in
      try writer.writeArray { array in
        try? array.encode(Scripted { _ in throw CancellationError() })
        try array.write(2)
      }
    }
    expectRefused { writer in
      func nest(_ writer: inout CBORWriter, _ depth: Int) throws {
        try writer.writeArray { if depth > 1 { try nest(&$0, depth - 1) } }
      }
      try nest(&writer, 513)
    }
  }

  @Test func everyKindOfItemIsWrittenAndRead() throws {
    enum Kind: Int, CBORConvertible, Sendable { case small = 1, large = 1000 }
    struct All: CBORConvertible, Sendable, Equatable {
      var kind = Kind.large
      var optional: [Int?] = [1, nil]
      var bytes: [UInt8] = [1, 2, 3]
      var tag: UInt64?
      var pairs: [String] = []
      init() {}
      func write(to writer: inout CBORWriter) throws {
        try writer.writeArray { array in
          try array.write(kind)
          try array.write(optional)
          array.write(bytes: bytes.span.bytes)
          try array.writeTag(1000) { $0.writeNull() }
          try array.writeMap { map in
            for number in 0..<30 {
              try map.write(number)
              try map.write("\(number)")
            }
          }
        }
      }
      init(from reader: inout CBORReader) throws {
        var index = 0
        try reader.readArray { reader in
          switch index {
          case 0: kind = try reader.read()
          case 1: optional = try reader.read()
          case 2: bytes = try reader.readBytes()
          case 3:
            tag = try reader.readTag()
            let isNull = reader.readNull()
            #expect(isNull)
          case 4:
            try reader.readPairs { reader in
              let key = try reader.read(Int.self)
              #expect(key == pairs.count)
              pairs.append(try reader.read())
            }
          default: try reader.skip()
          }
          index += 1
        }
      }
    }
    let codec = CBORCodec<All>()
    let read = try Coding.decoded(Coding.encoded(All(), codec), codec)
    #expect(read.kind == .large && read.optional == [1, nil] && read.bytes == [1, 2, 3] && read.tag == 1000)
    #expect(read.pairs == (0..<30).map { "\($0)" })
    #expect(throws: DecodingError.self) { try Coding.decoded([2], CBORCodec<Kind>()) }
    // The codec is the same for types with both conformances and for types with only one.
    let format: some Codec<Kind> = .cbor()
    #expect(format.name == "cbor")
  }

  @Test func aFieldOfAnyItemIsPreserved() throws {
    struct Envelope: CBORConvertible, Sendable, Equatable {
      var kind: String
      var content: RawItem
      func write(to writer: inout CBORWriter) throws {
        try writer.writeMap { map in
          try map.write(kind, forKey: "kind")
          try map.write(content, forKey: "content")
        }
      }
      init(from reader: inout CBORReader) throws {
        (kind, content) = try reader.readMap { (try $0.read(forKey: "kind"), try $0.read(forKey: "content")) }
      }
    }
    // {"kind": "x", "content": {_ "a": 1, "b": [_ 2, 3]}}
    let bytes = Coding.bytes("a2" + "646b696e646178" + "67636f6e74656e74" + "bf61610161629f0203ffff")
    #expect(try Coding.encoded(Coding.decoded(Envelope.self, bytes)) == bytes)
  }

  @Test(arguments: ["", "0000", "61ff", "81", "ff", "9f", "7f61c361a9ff", "a161ff00", "1c", "81f800", "9f61ffff"])
  func malformedItemsAreNeitherReadNorWritten(_ hex: String) {
    struct Malformed: CBORConvertible {
      var bytes: [UInt8]
      init(bytes: [UInt8]) { self.bytes = bytes }
      init(from reader: inout CBORReader) throws { bytes = try reader.readItem() }
      func write(to writer: inout CBORWriter) throws { try writer.write(item: bytes.span.bytes) }
    }
    Coding.expectRefused(RawItem.self, hex)
    #expect(throws: EncodingError.self) { try Coding.encoded([Malformed(bytes: Coding.bytes(hex))]) }
  }

  /// An item that nests as deep as the limit can stand alone, but not in an array.
  @Test func itemsThatNestTooDeepAreNotWritten() throws {
    let bytes = [UInt8](repeating: 0x81, count: CBORWriter.maximumDepth) + [0]
    let item = try Coding.decoded(RawItem.self, bytes)
    #expect(try Coding.encoded(item) == bytes)
    #expect(throws: EncodingError.self) { try Coding.encoded([item]) }
  }
}
