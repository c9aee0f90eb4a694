import Foundation
import Larder
import LarderCBOR
import Testing

@testable import LarderCommand

@Suite struct ValueCodecsTests {
  private func roundTrip(_ text: String, by codec: some Codec<JSONText>) throws -> String {
    var bytes: [UInt8] = []
    try codec.encode(JSONText(text), into: &bytes)
    return try bytes.withUnsafeBytes { try codec.decode($0.bytes) }.description
  }

  @Test func jsonPassesThrough() throws {
    #expect(try roundTrip("[1.0,1E5,\"a\"]", by: ValueCodecs.codec(named: "json")) == "[1.0,1E5,\"a\"]")
  }

  @Test func cborIsShownAsJSON() throws {
    let codec = ValueCodecs.codec(named: "cbor")
    #expect(codec.name == "cbor")
    #expect(
      try roundTrip("{\"a\":[1,-2,null,true],\"b\":{\"$base64\":\"AQID\"}}", by: codec)
        == "{\"a\":[1,-2,null,true],\"b\":{\"$base64\":\"AQID\"}}")
    var bytes: [UInt8] = []
    try codec.encode(JSONText("{\"a\":1}"), into: &bytes)
    #expect(bytes == [0xA1, 0x61, 0x61, 0x01])
  }

  @Test func whatJSONCannotSayIsShownAsTextAndIsNoDamage() async throws {
    let folder = try TemporaryFolder()
    let url = "lmdb:\(folder.file("store"))"
    let store = try await Stores.registry.open(url, codec: .cborItem)
    let item = try CBORItem(Array(repeatElement([0xA1, 0x01] as [UInt8], count: 200).joined()) + [0x02])
    try await store.setValue(item, forKey: "deep")
    try await store.close()
    #expect(try await Tool.larder("verify", url).errors == "1 entry, no damage\n")
    let shown = try await Tool.larder("get", url, "deep")
    #expect(shown.output.hasPrefix(#"{"$diagnostic":"{1: {1: {1:"#))
    // What was shown can be stored as what it was, and a copy is the same.
    let copy = "lmdb:\(folder.file("copy"))"
    #expect(try await Tool.larder("copy", url, copy).status == 0)
    #expect(try await Tool.larder("set", copy, "again", shown.output) == .done())
    let copied = try await Stores.registry.open(copy, codec: .cborItem)
    #expect(try await copied["deep"] == item)
    #expect(try await copied["again"] == item)
    try await copied.close()
  }

  @Test(arguments: ["json+crc32c", "cbor+crc32c", "json+crc32c+crc32c"]) func checksumsAreKept(name: String) throws {
    let codec = ValueCodecs.codec(named: name)
    #expect(codec.name == name)
    #expect(try roundTrip("{\"a\":[1,\"b\"]}", by: codec) == "{\"a\":[1,\"b\"]}")
    let bytes = Array("[1]".utf8)
    #expect(throws: ChecksumError.self) { try bytes.withUnsafeBytes { try codec.decode($0.bytes) } }
  }

  @Test func damageUnderAChecksumIsFound() async throws {
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
    while let place = bytes.range(of: Data("sound".utf8)) { bytes.replaceSubrange(place, with: Data("sand!".utf8)) }
    try bytes.write(to: data)
    let verify = try await Tool.larder("verify", url)
    #expect(verify.status == 2)
    #expect(verify.output.hasPrefix("{\"key\":\"b\","))
    #expect(try await Tool.larder("get", url, "b").failed(65, "the checksum of the 11 bytes does not fit them"))
    #expect(try await Tool.larder("get", url, "a") == .done("[1]\n"))
  }

  @Test(arguments: ["raw", "a codec of tomorrow"]) func otherBytesAreMarked(name: String) throws {
    let codec = ValueCodecs.codec(named: name)
    #expect(codec.name == name)
    #expect(try roundTrip("{\"$base64\":\"AQID\"}", by: codec) == "{\"$base64\":\"AQID\"}")
    #expect(throws: OpaqueTextCodec.NoBytes.self) { try roundTrip("[1]", by: codec) }
  }

  @Test func aStoreIsOpenedWithTheCodecThatItNames() async throws {
    let folder = try TemporaryFolder()
    let url = "json:\(folder.file("raw.json"))"
    let store = try await Stores.registry.open(url, codec: .raw)
    try await store.setValue([1, 2, 3], forKey: "k")
    try await store.close()
    #expect(try await Tool.larder("get", url, "k") == .done("{\"$base64\":\"AQID\"}\n"))
    #expect(try await Tool.larder("set", url, "k", "{\"$base64\":\"BA==\"}") == .done())
    #expect(try await Tool.larder("list", url) == .done("{\"key\":\"k\",\"value\":{\"$base64\":\"BA==\"}}\n"))
    #expect(try await Tool.larder("set", url, "k", "5").failed(65, "raw"))
    // A new LMDB store is one of CBOR; the copy of one into the other takes the values along.
    let copy = "lmdb:\(folder.file("copy"))"
    #expect(try await Tool.larder("copy", url, copy).status == 0)
    #expect(try await Tool.larder("get", copy, "k") == .done("{\"$base64\":\"BA==\"}\n"))
    let reopened: AnyDataStore<[UInt8]> = try await Stores.registry.open(StoreURL(copy)) { name in
      #expect(name == "cbor")
      return .cbor([UInt8].self)
    }
    #expect(try await reopened["k"] == [4])
    try await reopened.close()
  }
}
