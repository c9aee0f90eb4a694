import Foundation
import Larder
import LarderExpiry
import Testing

@testable import LarderCommand
@testable import StoreAccess

@Suite struct CodecNameTests {
  @Test func `a name is a base with transforms`() {
    let name = CodecName("cbor+crc32c+expiring+deflate+crc32c")
    #expect(name.base == "cbor" && name.transforms == [.checksum, .expiry, .compression, .checksum])
    #expect(name.isReadable && name.isExpiring)
    #expect(name.withoutDeadlines == CodecName("cbor+crc32c+deflate+crc32c"))
    #expect(CodecName("json") == CodecName("json+expiring").withoutDeadlines)
    #expect(CodecName("raw+deflate").base == "raw" && !CodecName("raw+deflate").isReadable)
  }

  @Test(arguments: ["json+expiring", "cbor+expiring", "json+expiring+crc32c", "cbor+crc32c+expiring", "x+expiring"])
  func `names of expiring values are recognized`(text: String) throws {
    let name = CodecName(text)
    #expect(name.isExpiring && name.withDeadlines == name && "\(name)" == text)
    #expect(ValueCodecs().expiringCodec(named: text)?.name == text)
    let codec = ValueCodecs().codec(named: text)
    #expect(codec.name == text)
    // The codec ignores the deadline.
    var bytes: [UInt8] = []
    let value = name.isReadable ? try JSONText("[1]") : try JSONText("{\"$base64\":\"AQID\"}")
    let expiring = try #require(ValueCodecs().expiringCodec(named: text))
    try expiring.encode(Expiring(value, deadline: ExpiryDeadline(.distantPast)), into: &bytes)
    #expect(try bytes.withUnsafeBytes { try codec.decode($0.bytes) } == value)
    bytes = []
    try codec.encode(value, into: &bytes)
    #expect(try bytes.withUnsafeBytes { try expiring.decode($0.bytes) } == Expiring(value))
  }

  @Test(arguments: ["json", "cbor", "json+crc32c", "raw", "expiring", "expiring+x"])
  func `other names stand for plain values`(text: String) {
    let name = CodecName(text)
    #expect(!name.isExpiring && "\(name.withDeadlines)" == "\(text)+expiring")
    #expect(name.withDeadlines.withoutDeadlines == name)
    #expect(ValueCodecs().expiringCodec(named: text) == nil)
    #expect(ValueCodecs().codec(named: text).name == text)
  }

  @Test func `a suffix counts only at the end`() {
    #expect(CodecName("my+expiringly").base == "my+expiringly")
    #expect(CodecName("json+deflate:9").base == "json+deflate:9")
  }

  @Test func `deadlines are inside the encryption`() {
    let name = CodecName("json+deflate+cose")
    #expect(name.isEncrypted && name.isReadable && name.transforms == [.compression, .encryption])
    #expect("\(name.withDeadlines)" == "json+deflate+expiring+cose" && name.withDeadlines.withoutDeadlines == name)
    #expect("\(CodecName("cbor+expiring").withEncryption)" == "cbor+expiring+cose" && name.withEncryption == name)
    #expect(ValueCodecs().codec(named: "json+expiring+cose").name == "json+expiring+cose")
  }

  @Test func `versions are interpreted beside the value`() {
    let name = CodecName("cbor+v2+expiring+deflate")
    #expect(name.base == "cbor" && name.version == 2 && name.isReadable && name.isExpiring)
    #expect("\(name.withoutDeadlines)" == "cbor+v2+deflate")
    for (text, base) in [
      ("raw+v1", "raw+v1"), ("mine+v1+crc32c", "mine+v1"), ("json+expiring+v12", "json+expiring+v12"),
      ("json+v1+v1", "json+v1+v1"), ("json+v0", "json+v0"), ("json+v", "json+v"),
      ("json+v99999999999999999999", "json+v99999999999999999999"),
    ] {
      let name = CodecName(text)
      #expect(name.base == base && name.version == nil && !name.isReadable && "\(name)" == text)
      #expect(ValueCodecs().codec(named: text).name == text)
    }
  }

  @Test func `a second deadline makes an unknown codec`() throws {
    let name = "json+expiring+expiring"
    #expect(CodecName(name).base == "json+expiring")
    let codec = try #require(ValueCodecs().expiringCodec(named: name))
    #expect(codec.name == name)
    // Its values are bytes, and so are raw values.
    let value = try RawValue.value(of: [0xFF], codecName: name)
    #expect(value.description == #"{"$base64":"/w=="}"#)
    var bytes: [UInt8] = []
    try codec.encode(.init(value), into: &bytes)
    #expect(bytes.last == 0xFF)
  }
}
