import Foundation
import Larder

/// Shows bytes that the tool cannot read, those of the codec `raw` among them, as `{"$base64":"AQID"}`, and takes such.
struct OpaqueTextCodec: Codec {
  /// What a value has to be.
  struct NoBytes: ValueFreeError, CustomStringConvertible {
    let codecName: String

    var description: String {
      "the store was written with the codec \(codecName): a value has to be {\"$base64\":\"…\"}"
    }
  }

  /// How bytes stand as JSON.
  private struct Bytes: Codable {
    enum CodingKeys: String, CodingKey {
      case base64 = "$base64"
    }

    var base64: Data
  }

  let name: String
  var format: CodecFormat { .binary }

  func encode(_ value: JSONText, into bytes: inout [UInt8]) throws {
    do {
      bytes += try JSONDecoder().decode(Bytes.self, from: Data(value.bytes)).base64
    } catch {
      throw NoBytes(codecName: name)
    }
  }

  func decode(_ bytes: RawSpan) throws -> JSONText {
    let base64 = bytes.withUnsafeBytes { Data($0) }.base64EncodedString()
    return try JSONText("{\"$base64\":\"\(base64)\"}")
  }
}
