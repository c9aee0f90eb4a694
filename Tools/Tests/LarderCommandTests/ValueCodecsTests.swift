import Foundation
import Larder
import LarderCBOR
import LarderCompression
import LarderExpiry
import Testing

@testable import LarderCommand
@testable import StoreAccess

@Suite struct ValueCodecsTests {
  private func roundTrip(_ text: String, by codec: some Codec<JSONText>) throws -> String {
    var bytes: [UInt8] = []
    try codec.encode(JSONText(text), into: &bytes)
    return try bytes.withUnsafeBytes { try codec.decode($0.bytes) }.description
  }

  @Test func `json passes through`() throws {
    #expect(try roundTrip("[1.0,1E5,\"a\"]", by: ValueCodecs().codec(named: "json")) == "[1.0,1E5,\"a\"]")
  }

  @Test func `cbor is shown as JSON`() throws {
    let codec = ValueCodecs().codec(named: "cbor")
    #expect(codec.name == "cbor")
    #expect(
      try roundTrip("{\"a\":[1,-2,null,true],\"b\":{\"$base64\":\"AQID\"}}", by: codec)
        == "{\"a\":[1,-2,null,true],\"b\":{\"$base64\":\"AQID\"}}")
    var bytes: [UInt8] = []
    try codec.encode(JSONText("{\"a\":1}"), into: &bytes)
    #expect(bytes == [0xA1, 0x61, 0x61, 0x01])
  }

  @Test func `values that JSON cannot represent are shown as text`() async throws {
    let folder = try TemporaryFolder()
    let url = "lmdb:\(folder.file("store"))"
    let store = try await Stores.registry.open(url, codec: .cbor(CBORItem.self))
    let item = try CBORItem(Array(repeatElement([0xA1, 0x01] as [UInt8], count: 200).joined()) + [0x02])
    try await store.setValue(item, forKey: "deep")
    try await store.close()
    #expect(try await Tool.larder("verify", url).errors == "1 entry, no damage\n")
    let shown = try await Tool.larder("get", url, "deep")
    #expect(shown.output.hasPrefix(#"{"$diagnostic":"{1: {1: {1:"#))
    // The printed value can be stored again, and a copy has the same value.
    let copy = "lmdb:\(folder.file("copy"))"
    #expect(try await Tool.larder("copy", url, copy).status == 0)
    #expect(try await Tool.larder("set", copy, "again", shown.output) == .done())
    let copied = try await Stores.registry.open(copy, codec: .cbor(CBORItem.self))
    #expect(try await copied["deep"] == item)
    #expect(try await copied["again"] == item)
    try await copied.close()
  }

  @Test(arguments: ["json+crc32c", "cbor+crc32c", "json+crc32c+crc32c"]) func `checksums are stored`(name: String)
    throws
  {
    let codec = ValueCodecs().codec(named: name)
    #expect(codec.name == name)
    #expect(try roundTrip("{\"a\":[1,\"b\"]}", by: codec) == "{\"a\":[1,\"b\"]}")
    let bytes = Array("[1]".utf8)
    #expect(throws: ChecksumError.self) { try bytes.withUnsafeBytes { try codec.decode($0.bytes) } }
  }

  @Test(arguments: ["json", "cbor"]) func `versions are shown and stored`(base: String) throws {
    let name = "\(base)+v3"
    let codec = ValueCodecs().codec(named: name)
    #expect(codec.name == name)
    for text in [#"{"$version":3,"$value":{"a":[1]}}"#, #"{"a":[1]}"#, "7"] {
      #expect(try roundTrip(text, by: codec) == text)
    }
    var bytes: [UInt8] = []
    #expect(throws: NewerValue.self) { try codec.encode(JSONText(#"{"$version":4,"$value":[1]}"#), into: &bytes) }
    bytes = []
    try codec.encode(JSONText(#"{"$version":3,"$value":[1]}"#), into: &bytes)
    #expect(
      bytes
        == (base == "cbor"
          ? [0xDA, 0x4C, 0x61, 0x72, 0x56, 0x82, 3, 0x81, 1] : Array(#"{"$version":3,"$value":[1]}"#.utf8)))
  }

  /// A value as a program stores it.
  private struct Note: Codable, Sendable {
    var text: String
  }

  @Test(arguments: ["lmdb", "json", "compressed"], [false, true])
  func `stat counts the values of each version`(scheme: String, isExpiring: Bool) async throws {
    let folder = try TemporaryFolder()
    let url = "\(scheme):\(folder.file("store"))"
    func write(_ numbers: Range<Int>, by codec: some Codec<Note>) async throws {
      func key(_ number: Int) -> StoreKey { StoreKey("\(1000 + number)") }
      if isExpiring {
        let store = try await Stores.registry.open(url, codec: codec.expiring())
        try await store.apply(ChangeBatch(numbers.map { .set(key($0), Expiring(Note(text: "x"))) }))
        try await store.close()
      } else {
        let store = try await Stores.registry.open(url, codec: codec)
        try await store.apply(ChangeBatch(numbers.map { .set(key($0), Note(text: "x")) }))
        try await store.close()
      }
    }
    let migration = ValueMigration(from: 0, .cbor(Note.self)) { $0 }
    try await write(0..<700, by: .cbor(Note.self))
    try await write(0..<300, by: CBORCodec<Note>().versioned(1, migration))
    try await write(0..<10, by: CBORCodec<Note>().versioned(2, migration.then(from: 1, .cbor()) { $0 }))
    #expect(try await Tool.larder("get", url, "1000") == .done("{\"$version\":2,\"$value\":{\"text\":\"x\"}}\n"))
    #expect(try await Tool.larder("get", url, "1699") == .done("{\"text\":\"x\"}\n"))
    let json = try await Tool.larder("stat", url, "--json").output
    #expect(json.hasSuffix(#","versions":{"0":400,"1":290,"2":10},"unreadableCount":0}"# + "\n"))
    let table = try await Tool.larder("stat", url).output.split(separator: "\n")
    let rows = table.suffix(3).map { $0.split(separator: " ", omittingEmptySubsequences: true).joined(separator: " ") }
    #expect(rows == ["version 0 400", "version 1 290", "version 2 10"])
    // A copy keeps the versions.
    let copy = "lmdb:\(folder.file("copy"))"
    #expect(try await Tool.larder("copy", url, copy).status == 0)
    #expect(try await Tool.larder("stat", copy, "--json").output.contains(#""versions":{"0":400,"1":290,"2":10}"#))
  }

  @Test func `damage under a checksum is found`() async throws {
    let folder = try TemporaryFolder()
    let url = "lmdb:\(folder.file("store"))"
    let store = try await Stores.registry.open(url, codec: .jsonText.checksummed())
    try await store.apply([.set("a", try JSONText("[1]")), .set("b", try JSONText("\"sound\""))])
    try await store.close()
    #expect(try await Tool.larder("get", url, "b") == .done("\"sound\"\n"))
    #expect(try await Tool.larder("set", url, "c", "2") == .done())
    #expect(try await Tool.larder("verify", url).errors == "3 entries, no damage\n")
    let data = URL(filePath: folder.file("store/data.mdb"))
    var bytes = try Data(contentsOf: data)
    while let range = bytes.range(of: Data("sound".utf8)) { bytes.replaceSubrange(range, with: Data("sand!".utf8)) }
    try bytes.write(to: data)
    let verify = try await Tool.larder("verify", url)
    #expect(verify.status == 2)
    #expect(verify.output.hasPrefix("{\"key\":\"b\","))
    #expect(try await Tool.larder("get", url, "b").failed(65, "the checksum does not match the 11 bytes"))
    #expect(try await Tool.larder("get", url, "a") == .done("[1]\n"))
  }

  @Test(arguments: ["json+deflate", "cbor+crc32c+deflate", "json+deflate+crc32c"])
  func `compressed values are shown`(name: String) throws {
    let codec = ValueCodecs().codec(named: name)
    #expect(codec.name == name)
    let text = "[\(String(repeating: "\"again and again\",", count: 100))1]"
    #expect(try roundTrip(text, by: codec) == text)
    #expect(ValueCodecs().expiringCodec(named: "json+expiring+deflate")?.name == "json+expiring+deflate")
    #expect(ValueCodecs().expiringCodec(named: "json+deflate+expiring")?.name == "json+deflate+expiring")
  }

  @Test(arguments: ["lmdb", "json"]) func `dictionaries beside a store are used`(scheme: String) async throws {
    let folder = try TemporaryFolder()
    let place = folder.file("store")
    let url = scheme == "lmdb" ? "lmdb:\(place)#users" : "json:\(place)"
    let file = CompressionDictionaries.path(besideStoreAt: place)
    func text(_ number: Int) -> String {
      "{\"name\":\"Ada Lovelace\",\"email\":\"ada@example.org\",\"number\":\(number)}"
    }
    let values = try (0..<20).map { try JSONText(text($0)) }
    for round in 0..<2 {
      // The second dictionary replaces the first, with which the first half was written.
      let dictionary = try CompressionDictionary.train(on: values, codec: .jsonText, size: 64 + 136 * round)
      let dictionaries = try await CompressionDictionaries.add(dictionary, toFile: file)
      let store = try await Stores.registry.open(url, codec: .jsonText.compressed(dictionaries: dictionaries))
      for number in round * 10..<round * 10 + 10 {
        try await store.setValue(values[number], forKey: StoreKey("user:\(number + 10)"))
      }
      try await store.close()
    }
    #expect(try await CompressionDictionaries.read(fromFile: file).all.count == 2)
    #expect(try await Tool.larder("get", url, "user:10") == .done(text(0) + "\n"))
    #expect(try await Tool.larder("set", url, "user:30", text(20)) == .done())
    #expect(try await Tool.larder("verify", url).errors == "21 entries, no damage\n")
    let exported = try await Tool.larder("export", url)
    #expect(exported.output.split(separator: "\n").count == 21)
    let copy = "json:\(folder.file("copy.json"))"
    #expect(try await Tool.larder("copy", url, copy, "--codec", "json").status == 0)
    #expect(try await Tool.larder("export", copy).output == exported.output)

    try FileManager.default.removeItem(atPath: file)
    let missing = try await Tool.larder("get", url, "user:10")
    #expect(missing.failed(65, "is missing (\(file))"))
    try "not a file of dictionaries".write(toFile: file, atomically: true, encoding: .utf8)
    #expect(try await Tool.larder("get", url, "user:10").failed(65, "not a dictionary file"))
    // Without compressed values, the dictionaries are not needed.
    try "not a file of dictionaries".write(
      toFile: folder.file("copy.json.dictionaries"), atomically: true, encoding: .utf8)
    #expect(try await Tool.larder("get", copy, "user:10") == .done(text(0) + "\n"))
  }

  @Test(arguments: ["raw", "a codec of tomorrow"]) func `other bytes are tagged objects`(name: String) throws {
    let codec = ValueCodecs().codec(named: name)
    #expect(codec.name == name)
    #expect(try roundTrip("{\"$base64\":\"AQID\"}", by: codec) == "{\"$base64\":\"AQID\"}")
    #expect(throws: OpaqueTextCodec.NoBytes.self) { try roundTrip("[1]", by: codec) }
  }

  @Test func `a store is opened with the codec that it names`() async throws {
    let folder = try TemporaryFolder()
    let url = "json:\(folder.file("raw.json"))"
    let store = try await Stores.registry.open(url, codec: .raw)
    try await store.setValue([1, 2, 3], forKey: "k")
    try await store.close()
    #expect(try await Tool.larder("get", url, "k") == .done("{\"$base64\":\"AQID\"}\n"))
    #expect(try await Tool.larder("set", url, "k", "{\"$base64\":\"BA==\"}") == .done())
    #expect(try await Tool.larder("list", url) == .done("{\"key\":\"k\",\"value\":{\"$base64\":\"BA==\"}}\n"))
    #expect(try await Tool.larder("set", url, "k", "5").failed(65, "raw"))
    // With another codec, the values stay the same.
    let copy = "lmdb:\(folder.file("copy"))"
    #expect(try await Tool.larder("copy", url, copy, "--codec", "cbor").status == 0)
    #expect(try await Tool.larder("get", copy, "k") == .done("{\"$base64\":\"BA==\"}\n"))
    let reopened = try await Stores.registry.open(copy, codec: .cbor([UInt8].self))
    #expect(try await reopened["k"] == [4])
    try await reopened.close()
  }
}
