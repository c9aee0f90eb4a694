import Foundation
import Larder
import LarderTesting
import TestSupport
import Testing

@Suite struct VersionedCodecTests {
  struct UserV0: Codable, Sendable {
    var name: String
  }

  struct UserV1: Codable, Sendable {
    var name: String
    var age: String
  }

  struct User: Codable, Sendable, Equatable {
    var first: String
    var age: Int
  }

  struct BadAge: Error {}

  private static let steps = ValueMigration(from: 0, .json(UserV0.self)) { UserV1(name: $0.name, age: "0") }
    .then(from: 1, .json()) { old in
      guard let age = Int(old.age) else { throw BadAge() }
      return User(first: old.name, age: age)
    }

  private func codec() throws -> VersionedCodec<JSONCodec<User>> {
    try JSONCodec<User>().versioned(2, VersionedCodecTests.steps)
  }

  private func text<Value>(of value: Value, by codec: some Codec<Value>) throws -> String {
    var bytes: [UInt8] = []
    try codec.encode(value, into: &bytes)
    return String(decoding: bytes, as: UTF8.self)
  }

  private func value<Value>(of text: String, by codec: some Codec<Value>) throws -> Value {
    try value(of: Array(text.utf8), by: codec)
  }

  private func value<Value>(of bytes: [UInt8], by codec: some Codec<Value>) throws -> Value {
    try codec.decode(bytes.span.bytes)
  }

  private func frame(of bytes: [UInt8], _ format: CodecFormat) throws -> VersionFrame {
    try VersionFrame(of: bytes.span.bytes, format: format)
  }

  @Test func `values of every version are read as the newest type`() throws {
    let codec = try codec()
    #expect(try value(of: #"{"name":"Ada"}"#, by: codec) == User(first: "Ada", age: 0))
    #expect(
      try value(of: #"{"$version":1,"$value":{"name":"Ada","age":"36"}}"#, by: codec) == User(first: "Ada", age: 36))
    let written = try text(of: User(first: "Ada", age: 36), by: codec)
    #expect(written == #"{"$version":2,"$value":{"age":36,"first":"Ada"}}"#)
    #expect(try value(of: written, by: codec) == User(first: "Ada", age: 36))
    // A person or another tool may format it.
    #expect(
      try value(of: "\n{ \"\\u0024version\" : 2,\n \"$value\" : {\"age\":36,\"first\":\"Ada\"} }\n", by: codec).age
        == 36)
  }

  @Test func `each type of a chain is converted by its own step`() throws {
    let codec = try JSONCodec<String>().versioned(
      4,
      ValueMigration(from: 1, .json(Int.self)) { [$0] }.then(from: 2, .json()) { Double($0[0]) }
        .then(from: 3, .json()) { "\($0)" })
    #expect(try value(of: #"{"$version":1,"$value":7}"#, by: codec) == "7.0")
    #expect(try value(of: #"{"$version":2,"$value":[8,1]}"#, by: codec) == "8.0")
    #expect(try value(of: #"{"$version":3,"$value":9.5}"#, by: codec) == "9.5")
    #expect(try value(of: #"{"$version":4,"$value":"x"}"#, by: codec) == "x")
  }

  @Test func `migrations can also lead directly to the newest type`() throws {
    let codec = try JSONCodec<String>().versioned(
      3, ValueMigration(from: 2, .json(Double.self)) { "\($0)" }, ValueMigration(from: 1, .json(Int.self)) { "\($0)" })
    #expect(try value(of: #"{"$version":1,"$value":7}"#, by: codec) == "7")
    #expect(try value(of: #"{"$version":2,"$value":7}"#, by: codec) == "7.0")
  }

  /// Members with the names of a version, in another form.
  ///
  /// Each may be a value from before versions.
  @Test(arguments: [
    #"{"$value":{"name":"Ada"},"$version":1}"#, #"{"$version":0,"$value":{"name":"Ada"}}"#,
    #"{"$version":-1,"$value":1}"#, #"{"$version":1.0,"$value":1}"#, #"{"$version":"1","$value":1}"#,
    #"{"$version":99999999999999999999,"$value":1}"#,
  ])
  func `an ambiguous object is refused`(text: String) throws {
    let codec = try JSONCodec<[String: JSONValue]>()
      .versioned(1, ValueMigration(from: 0, .json([String: JSONValue].self)) { $0 })
    let error = #expect(throws: ValueVersionError.self) { try value(of: text, by: codec) }
    #expect(error?.storeErrorCode == .undecodable)
  }

  /// A JSON value of any form.
  struct JSONValue: Codable, Sendable {
    init(from decoder: any Decoder) throws {}
    func encode(to encoder: any Encoder) throws {}
  }

  @Test(arguments: [
    "7", "\"$version\"", "[]", "{}", #"{"$version":1}"#, #"{"$value":1}"#, #"{"$version":1,"$value":1,"x":1}"#,
    #"{"$version":1,"value":2}"#, #"{"a":{"$version":1,"$value":1}}"#, #"{"$version":1,"$version":1}"#,
  ])
  func `any other JSON has version zero`(text: String) throws {
    let codec = try JSONTextCodec().versioned(1, ValueMigration(from: 0, .jsonText) { $0 })
    #expect(try value(of: text, by: codec) == JSONText(text))
    // Written again, the same text is a value with a version.
    let written = try self.text(of: JSONText(text), by: codec)
    #expect(written == "{\"$version\":1,\"$value\":\(text)}")
    #expect(try value(of: written, by: codec) == JSONText(text))
  }

  @Test func `a value that looks like a version keeps its content`() throws {
    let codec = try JSONTextCodec().versioned(3)
    let text = #"{"$version":9,"$value":1}"#
    #expect(try value(of: self.text(of: JSONText(text), by: codec), by: codec) == JSONText(text))
  }

  @Test func `a newer version is a mismatch`() throws {
    let error = #expect(throws: ValueVersionError.self) {
      try value(of: #"{"$version":3,"$value":{}}"#, by: codec())
    }
    #expect(error?.storeErrorCode == .versionMismatch)
    #expect(error?.version == 3)
    #expect(error?.message == "the value has version 3, but this program reads only versions up to 2")
  }

  @Test func `an older version without migration is undecodable`() throws {
    let codec = try JSONCodec<User>().versioned(2)
    let error = #expect(throws: ValueVersionError.self) { try value(of: #"{"first":"Ada","age":1}"#, by: codec) }
    #expect(error?.storeErrorCode == .undecodable)
    #expect(error?.version == 0)
  }

  @Test func `a failed migration names its version`() throws {
    let error = #expect(throws: MigrationError.self) {
      try value(of: #"{"$version":1,"$value":{"name":"Ada","age":"old"}}"#, by: codec())
    }
    #expect(error?.version == 1)
    #expect(error?.underlying is BadAge)
    #expect(error?.storeErrorCode == .undecodable)
  }

  @Test func `damaged JSON is not a version`() throws {
    let codec = try codec()
    #expect(throws: JSONSyntaxError.self) { try value(of: #"{"$version":2,"$value":{"age":36"#, by: codec) }
    #expect(throws: JSONSyntaxError.self) { try value(of: #"{"$version":2,"$value":1}}"#, by: codec) }
    #expect(throws: DecodingError.self) { try value(of: "", by: codec) }
  }

  // MARK: Other formats

  @Test func `any other codec has the version before its bytes`() throws {
    let codec = try RawCodec().versioned(3, ValueMigration(from: 2, .raw) { $0.reversed() })
    var bytes: [UInt8] = [9]
    try codec.encode([1, 2], into: &bytes)
    #expect(bytes == [9, 0xDA, 0x4C, 0x61, 0x72, 0x56, 0x82, 3, 1, 2])
    #expect(try value(of: Array(bytes[1...]), by: codec) == [1, 2])
    bytes[7] = 2
    #expect(try value(of: Array(bytes[1...]), by: codec) == [2, 1])
    // Without a version, it may be anything.
    let error = #expect(throws: ValueVersionError.self) { try value(of: [1, 2, 3], by: codec) }
    #expect(error?.storeErrorCode == .corrupted)
    // Not that of the base, whose values have no recognizable version.
    #expect(codec.adoptedNames == ["raw+v1", "raw+v2"])
  }

  @Test(arguments: [1, 23, 24, 255, 256, 65_535, 65_536, 4_294_967_295, 4_294_967_296, .max])
  func `versions of any size round trip`(version: Int) throws {
    for format in [CodecFormat.json, .cbor, .binary] {
      var bytes: [UInt8] = []
      VersionFrame.append(version: version, format: format, to: &bytes) { $0 += Array("7".utf8) }
      let frame = try frame(of: bytes, format)
      #expect(frame.version == version)
      #expect(bytes[frame.value] == Array("7".utf8)[...])
      // No part of a version is taken for another one.
      guard format == .binary else { continue }
      for length in 0..<frame.value.lowerBound {
        #expect(throws: ValueVersionError.self) {
          try self.frame(of: Array(bytes[..<length]), format)
        }
      }
    }
  }

  // MARK: Names

  @Test func `transforms keep the adopted names`() throws {
    let codec = try codec()
    #expect(codec.name == "json+v2")
    #expect(codec.format == .json)
    #expect(codec.adoptedNames == ["json", "json+v1"])
    #expect(codec.newestName == nil)
    #expect(codec.checksummed().name == "json+v2+crc32c")
    #expect(codec.checksummed().adoptedNames == ["json+crc32c", "json+v1+crc32c"])
    #expect(JSONCodec<Int>().checksummed().adoptedNames == [])
    // Values without a version have no type.
    #expect(try JSONCodec<User>().versioned(1).adoptedNames == [])
    #expect(
      try JSONCodec<User>().versioned(2, ValueMigration(from: 1, .json(Int.self)) { User(first: "", age: $0) })
        .adoptedNames == ["json+v1"])
  }

  // MARK: An older version to write

  private func rolling(_ written: Int) throws -> VersionedCodec<JSONCodec<Int>> {
    try JSONCodec<Int>().versioned(
      3, migration(from: 0), migration(from: 1), migration(from: 2),
      writing: OlderVersion(written, .json()) { $0 + 100 * written })
  }

  @Test func `an older version is written until the store has a newer one`() throws {
    func text(_ codec: some Codec<Int>, _ context: ValueContext = ValueContext()) throws -> String {
      var bytes: [UInt8] = []
      try codec.encode(7, into: &bytes, context: context)
      return String(decoding: bytes, as: UTF8.self)
    }
    #expect(try text(rolling(2)) == #"{"$version":2,"$value":207}"#)
    #expect(try text(rolling(2), ValueContext(usesNewestFormat: true)) == #"{"$version":3,"$value":7}"#)
    #expect(try text(rolling(0)) == "7")
    #expect(try rolling(2).decode(Array(#"{"$version":3,"$value":9}"#.utf8).span.bytes) == 9)
    // A newer value that an update replaces keeps its version, because the older one would lack something.
    let newer = ValueContext(stored: Array(#"{"$version":3,"$value":9}"#.utf8)[...])
    #expect(try text(rolling(2), newer) == #"{"$version":3,"$value":7}"#)
    let older = ValueContext(stored: Array(#"{"$version":1,"$value":9}"#.utf8)[...])
    #expect(try text(rolling(2), older) == #"{"$version":2,"$value":207}"#)
    let codec = try rolling(1).checksummed()
    #expect(codec.name == "json+v1+crc32c")
    #expect(codec.adoptedNames == ["json+crc32c"])
    #expect(codec.newestName == "json+v3+crc32c")
    #expect(try rolling(0).name == "json")
    #expect(try rolling(0).adoptedNames == [])
    #expect(try rolling(0).newestName == "json+v3")
  }

  @Test func `an older version needs a migration`() throws {
    func refusal(_ older: OlderVersion<Int>) -> String? {
      expectStoreError(.invalidArgument) {
        try JSONCodec<Int>().versioned(2, migration(from: 1), writing: older)
      }?.message
    }
    for version in [0, 2, 3] {
      #expect(refusal(OlderVersion(version, .json()) { $0 })?.contains("no migration from it") == true)
    }
    #expect(refusal(OlderVersion(1, RenamedCodec(name: "mine")) { $0 })?.contains("mine") == true)
  }

  private struct RenamedCodec: Codec {
    let name: String
    var format: CodecFormat { .json }
    func encode(_ value: Int, into bytes: inout [UInt8], context: ValueContext) throws {}
    func decode(_ bytes: RawSpan, context: ValueContext) throws -> Int { 0 }
  }

  // MARK: The record of a store

  @Test func `a record is compared`() throws {
    let record = CodecRecord(try rolling(1))
    func name(_ recorded: String, _ operation: StoreOperation = .apply) throws -> String {
      try record.name(replacing: recorded, during: operation, store: "users")
    }
    let format = record.format
    #expect(try name("json+v1") == "json+v1")
    #expect(try name("json") == "json+v1")
    #expect(!record.format.isNewest)
    for other in ["json+v4", "json+v2", "cbor", "json+v1+crc32c", ""] {
      expectStoreError(.versionMismatch) { try name(other) }
      expectStoreError(.versionMismatch) { try name(other, .open) }
    }
    try record.checkUnchanged(since: format, during: .apply, store: "users")
    #expect(try name("json+v3") == "json+v3")
    #expect(record.format.isNewest)
    // Values that were encoded before are of the older version, whichever task has seen the record.
    for _ in 0..<2 {
      let error = expectStoreError(.conflict) {
        try record.checkUnchanged(since: format, during: .apply, store: "users")
      }
      #expect(error?.isRetryable == true && error?.outcome == .nothingChanged)
      #expect(try name("json+v3") == "json+v3")
    }
    let newest = record.format
    try record.checkUnchanged(since: newest, during: .apply, store: "users")
    // The store was restored from a backup.
    #expect(try name("json+v1") == "json+v1")
    #expect(!record.format.isNewest)
    expectStoreError(.conflict) { try record.checkUnchanged(since: newest, during: .apply, store: "users") }
  }

  // MARK: Wrong migrations

  private func migration(from version: Int) -> ValueMigration<Int> {
    ValueMigration(from: version, .json(Int.self)) { $0 }
  }

  private func message(_ version: Int, from versions: Int...) throws -> String? {
    expectStoreError(.invalidArgument) {
      try VersionedCodec(JSONCodec<Int>(), version: version, migrations: versions.map(migration(from:)))
    }?.message
  }

  @Test func `wrong migrations are refused`() throws {
    #expect(try message(0) == "the version must be at least 1, not 0")
    #expect(try message(3, from: 0, 2) == "the migration from version 1 is missing")
    #expect(try message(3, from: 1) == "the migration from version 2 is missing")
    #expect(try message(3, from: 2, 1, 2) == "there are two migrations from version 2")
    #expect(try message(2, from: 1, 2) == "the newest version is 2, so there must be no migration from version 2")
    #expect(try message(2, from: 5) == "the newest version is 2, so there must be no migration from version 5")
    #expect(try message(1, from: -1) == "a migration must be from version 0 or newer, not -1")
    let wrongCodec = expectStoreError(.invalidArgument) {
      try JSONCodec<[UInt8]>().versioned(2, ValueMigration(from: 1, .raw) { $0 })
    }
    #expect(
      wrongCodec?.message == "the migration from version 1 reads the codec raw, but the values have the codec json")
    expectStoreError(.invalidArgument) { try RawCodec().versioned(1, ValueMigration(from: 0, .raw) { $0 }) }
    expectStoreError(.invalidArgument) { try RawCodec().versioned(1).checksummed().versioned(1) }
    #expect(try JSONCodec<Int>().versioned(3, migration(from: 2)).version == 3)
  }

  // MARK: Errors of a store

  private func expectedError(reading text: String) async throws -> StoreError? {
    let bytes = MemoryStore<[UInt8]>()
    try bytes.apply([.set("k", Array(text.utf8)), .set("l", Array(#"{"name":"Bob"}"#.utf8))])
    let users = bytes.typed(User.self, codec: try codec())
    let error = await #expect(throws: StoreError.self) { try await users.value(forKey: "k") }
    #expect(error?.isValueUnreadable == true)
    #expect(error?.key == "k")
    // The entry stays as it is, and others are readable.
    #expect(try bytes.value(forKey: "k") == Array(text.utf8))
    #expect(try await users.value(forKey: "l")?.first == "Bob")
    return error
  }

  @Test func `a store tells kinds of unreadable values apart`() async throws {
    #expect(try await expectedError(reading: #"{"$version":3,"$value":1}"#)?.code == .versionMismatch)
    #expect(try await expectedError(reading: #"{"$version":2,"$value":{"fi"#)?.code == .corrupted)
    #expect(try await expectedError(reading: #"{"$version":1,"$value":{"name":"","age":""}}"#)?.code == .undecodable)
    let changed = try await expectedError(reading: #"{"$version":2,"$value":{"first":"Ada","age":"36"}}"#)
    #expect(changed?.code == .undecodable)
    guard case DecodingError.typeMismatch(_, let context)? = changed?.underlying else {
      Issue.record("\(String(describing: changed))")
      return
    }
    #expect(context.codingPath.map(\.stringValue) == ["age"])
    #expect(changed?.detailedDescription.contains("age") == true)
  }

  // MARK: Migrating all values

  private func store(of texts: [String]) throws -> (
    bytes: MemoryStore<[UInt8]>, users: TypedView<MemoryStore<[UInt8]>, User>
  ) {
    let bytes = MemoryStore<[UInt8]>()
    try bytes.apply(ChangeBatch(texts.enumerated().map { .set(StoreKey(integer: $0), Array($1.utf8)) }))
    return (bytes, bytes.typed(User.self, codec: try codec()))
  }

  private func versions(of bytes: MemoryStore<[UInt8]>) throws -> [Int] {
    try bytes.entries(in: .all, limit: .max, order: .ascending).map {
      try frame(of: $0.value, .json).version
    }
  }

  @Test func `all values are migrated in steps`() async throws {
    let (bytes, users) = try store(of: (0..<25).map { "{\"name\":\"\($0)\"}" })
    var steps: [Int] = []
    let outcome = try await users.migrateAll(batchSize: 10) { steps.append($0.examinedCount) }
    #expect(steps == [10, 20, 25])
    #expect(outcome.examinedCount == 25 && outcome.failureCount == 0)
    #expect(outcome.lastKey == StoreKey(integer: 24))
    #expect(try versions(of: bytes) == Array(repeating: 2, count: 25))
    #expect(try await users[StoreKey(integer: 7)] == User(first: "7", age: 0))
  }

  @Test func `a walk that stopped continues behind its last key`() async throws {
    let (bytes, users) = try store(of: (0..<25).map { "{\"name\":\"\($0)\"}" })
    var last: StoreKey?
    await #expect(throws: BadAge.self) {
      try await users.migrateAll(batchSize: 10) {
        last = $0.lastKey
        throw BadAge()
      }
    }
    #expect(try versions(of: bytes) == Array(repeating: 2, count: 10) + Array(repeating: 0, count: 15))
    let outcome = try await users.migrateAll(in: KeyRange.all.after(try #require(last)))
    #expect(outcome.examinedCount == 15)
    #expect(try versions(of: bytes) == Array(repeating: 2, count: 25))
  }

  @Test func `entries that cannot be migrated stay and are reported`() async throws {
    var texts = (0..<25).map { "{\"name\":\"\($0)\"}" }
    texts[3] = #"{"$version":3,"$value":{}}"#
    texts[4] = "{"
    texts[17] = #"{"$version":1,"$value":{"name":"","age":"x"}}"#
    let (bytes, users) = try store(of: texts)
    let outcome = try await users.migrateAll(batchSize: 10)
    #expect(outcome.examinedCount == 25)
    #expect(outcome.failureCount == 3)
    #expect(outcome.failures.map(\.code) == [.versionMismatch, .corrupted, .undecodable])
    #expect(outcome.failures.map(\.key) == [3, 4, 17].map { StoreKey(integer: $0) })
    for index in [3, 4, 17] {
      #expect(try bytes.value(forKey: StoreKey(integer: index)) == Array(texts[index].utf8))
    }
    #expect(try versions(of: bytes).filter { $0 == 2 }.count == 22)
  }

  @Test func `a walk over a small range and wrong arguments`() async throws {
    let (bytes, users) = try store(of: (0..<5).map { "{\"name\":\"\($0)\"}" })
    await expectStoreError(.invalidArgument) { try await users.migrateAll(batchSize: 0) }
    try await users.migrateAll(in: StoreKey(integer: 1)...StoreKey(integer: 2))
    #expect(try versions(of: bytes) == [0, 2, 2, 0, 0])
    #expect(try await MemoryStore<Int>().migrateAll().lastKey == nil)
  }
}
