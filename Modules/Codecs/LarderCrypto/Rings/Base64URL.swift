#if Crypto
import Foundation

/// Conversion between bytes and base64url without padding (RFC 4648, section 5; RFC 7515, section 2).
enum Base64URL {
  /// Returns the text of bytes.
  static func text(of bytes: UnsafeRawBufferPointer) -> String {
    let text = Data(bytes).base64EncodedString()
    return String(
      decoding: text.utf8.lazy.filter { $0 != UInt8(ascii: "=") }.map { byte in
        switch byte {
        case UInt8(ascii: "+"): UInt8(ascii: "-")
        case UInt8(ascii: "/"): UInt8(ascii: "_")
        default: byte
        }
      }, as: UTF8.self)
  }

  /// Returns the bytes of a text, or `nil` if ``text(of:)`` does not return the text for any bytes.
  static func bytes(of text: String) -> [UInt8]? {
    var base64 = text.utf8.map { byte in
      switch byte {
      case UInt8(ascii: "-"): UInt8(ascii: "+")
      case UInt8(ascii: "_"): UInt8(ascii: "/")
      default: byte
      }
    }
    base64 += repeatElement(UInt8(ascii: "="), count: (4 - base64.count % 4) % 4)
    guard let data = Data(base64Encoded: Data(base64)) else { return nil }
    let bytes = [UInt8](data)
    // The same bytes have other texts, for example with padding or with unused bits at the end.
    return bytes.withUnsafeBytes { Base64URL.text(of: $0) } == text ? bytes : nil
  }
}
#endif
