/// Writes the parts of JSON text that stand around values.
package enum JSONWriting {
  /// Appends text as a JSON string, in quotes.
  ///
  /// - Parameters:
  ///   - text: Well-formed UTF-8.
  ///   - bytes: Gets the string. Only what must be escaped is.
  package static func append(string text: some Sequence<UInt8>, to bytes: inout [UInt8]) {
    bytes.append(UInt8(ascii: "\""))
    for byte in text {
      switch byte {
      case UInt8(ascii: "\""), UInt8(ascii: "\\"): bytes += [UInt8(ascii: "\\"), byte]
      case 0x0A: bytes.append(contentsOf: "\\n".utf8)
      case 0x0D: bytes.append(contentsOf: "\\r".utf8)
      case 0x09: bytes.append(contentsOf: "\\t".utf8)
      case ..<0x20:
        bytes.append(contentsOf: "\\u00".utf8)
        bytes.append(contentsOf: Hexadecimal.digits(of: CollectionOfOne(byte)))
      default: bytes.append(byte)
      }
    }
    bytes.append(UInt8(ascii: "\""))
  }

  /// Appends JSON text without the white space between its parts; everything else stays byte for byte.
  ///
  /// - Parameters:
  ///   - json: Well-formed JSON text.
  ///   - bytes: Gets the text, in one line.
  package static func append(compacted json: ArraySlice<UInt8>, to bytes: inout [UInt8]) {
    // Most text has no such white space; then one look and one copy do.
    var isWithinString = false
    var isEscaped = false
    var start = json.startIndex
    for index in json.indices {
      let byte = json[index]
      if isWithinString {
        if isEscaped {
          isEscaped = false
        } else if byte == UInt8(ascii: "\\") {
          isEscaped = true
        } else if byte == UInt8(ascii: "\"") {
          isWithinString = false
        }
      } else if byte == UInt8(ascii: "\"") {
        isWithinString = true
      } else if byte <= UInt8(ascii: " ") {
        bytes.append(contentsOf: json[start..<index])
        start = index + 1
      }
    }
    bytes.append(contentsOf: json[start...])
  }
}
