extension JSONText {
  /// Appends text as a JSON string, in quotes.
  ///
  /// - Parameters:
  ///   - text: Well-formed UTF-8.
  ///   - bytes: The array that the string is appended to. Only characters that require it are escaped.
  public static func append(string text: some Sequence<UInt8>, to bytes: inout [UInt8]) {
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

  /// Appends JSON text without the whitespace between its tokens, and otherwise byte for byte.
  ///
  /// - Parameters:
  ///   - json: Well-formed JSON text.
  ///   - bytes: The array that the text is appended to, in one line.
  public static func append(compacted json: ArraySlice<UInt8>, to bytes: inout [UInt8]) {
    // Most text has no such whitespace, in which case there is a single copy at the end.
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
