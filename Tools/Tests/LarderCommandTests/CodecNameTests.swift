import Larder
import LarderExpiry
import Testing

@testable import LarderCommand

@Suite struct CodecNameTests {
  @Test func aNameIsABaseWithTransforms() {
    let name = CodecName("cbor+crc32c+expiring+deflate+crc32c")
    #expect(name.base == "cbor" && name.transforms == [.checksum, .expiry, .compression, .checksum])
    #expect(name.isReadable && name.isExpiring)
    #expect(name.withoutDeadlines == CodecName("cbor+crc32c+deflate+crc32c"))
    #expect(CodecName("json") == CodecName("json+expiring").withoutDeadlines)
    #expect(CodecName("raw+deflate").base == "raw" && !CodecName("raw+deflate").isReadable)
  }

  @Test func aSuffixCountsOnlyAtTheEnd() {
    #expect(CodecName("my+expiringly").base == "my+expiringly")
    #expect(CodecName("json+deflate:9").base == "json+deflate:9")
  }

  /// All uses of a name parse it in the same way.
  @Test func aStoreWithAnotherCodecOfASimilarNameIsRefused() throws {
    let choice = CodecChoice(makesExpiring: false, codecName: "myly")
    #expect(try choice.codec(named: "my+expiringly").name == "myly")
    #expect(choice.refusedName == "my+expiringly")
  }

  @Test func aSecondDeadlineMakesAnUnknownCodec() throws {
    let name = "json+expiring+expiring"
    #expect(CodecName(name).base == "json+expiring")
    let codec = try #require(try ValueCodecs().expiringCodec(named: name))
    #expect(codec.name == name)
    // Its values are bytes, and so are raw values.
    let value = try RawValue.value(of: [0xFF], codecName: name)
    #expect(value.description == #"{"$base64":"/w=="}"#)
    var bytes: [UInt8] = []
    try codec.encode(.init(value), into: &bytes)
    #expect(bytes.last == 0xFF)
  }
}
