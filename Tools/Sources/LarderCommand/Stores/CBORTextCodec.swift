import Larder
import LarderCBOR

/// Shows CBOR as JSON, and makes CBOR of JSON.
struct CBORTextCodec: Codec {
  var name: String { "cbor" }
  var format: CodecFormat { .binary }

  func encode(_ value: JSONText, into bytes: inout [UInt8]) throws {
    bytes += try CBORItem(value).bytes
  }

  func decode(_ bytes: RawSpan) throws -> JSONText {
    try CBORItemCodec().decode(bytes).json()
  }
}
