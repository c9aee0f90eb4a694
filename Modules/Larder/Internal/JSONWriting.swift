/// Functions that append JSON text to an array of bytes.
package enum JSONWriting {
  /// Appends text as a JSON string, in quotes.
  ///
  /// - Parameters:
  ///   - text: Well-formed UTF-8.
  ///   - bytes: The array to which the string is appended. Only characters that require it are escaped.
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

  /// Appends JSON text without the whitespace between its tokens, and otherwise byte for byte.
  ///
  /// - Parameters:
  ///   - json: Well-formed JSON text.
  ///   - bytes: The array to which the text is appended, in one line.
  package static func append(compacted json: ArraySlice<UInt8>, to bytes: inout [UInt8]) {
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

/// The representation of keys and of ranges of keys in JSON.
///
/// A key that is valid UTF-8 is written as that text. Any other key is written as `keyBytes:` followed by its bytes in
/// hexadecimal. So is a key that begins with `keyBytes:`, so that no two keys have the same text.
package enum JSONKey {
  private static let mark = StoreKey("keyBytes:")

  /// Appends a key as a JSON string.
  package static func append(_ key: StoreKey, to bytes: inout [UInt8]) {
    if key.string != nil, !key.hasPrefix(mark) {
      key.withUnsafeBytes { JSONWriting.append(string: $0, to: &bytes) }
    } else {
      JSONWriting.append(string: mark.bytes + Hexadecimal.digits(of: key.bytes), to: &bytes)
    }
  }

  /// Appends a range of keys as a JSON object, with a member `from` and, if the range has an upper bound, `upTo`.
  package static func append(_ range: KeyRange, to bytes: inout [UInt8]) {
    bytes.append(contentsOf: "{\"from\":".utf8)
    append(range.lowerBound, to: &bytes)
    if let upperBound = range.upperBound {
      bytes.append(contentsOf: ",\"upTo\":".utf8)
      append(upperBound, to: &bytes)
    }
    bytes.append(UInt8(ascii: "}"))
  }

  /// Reads a key from a JSON string.
  ///
  /// - Throws: ``JSONSyntaxError``.
  package static func key(from scanner: inout JSONScanner) throws -> StoreKey {
    guard let key = key(of: try scanner.string()) else {
      throw scanner.error("invalid key: expected hexadecimal digits after keyBytes:")
    }
    return key
  }

  /// Reads a range of keys from a JSON object.
  ///
  /// - Throws: ``JSONSyntaxError``.
  package static func range(from scanner: inout JSONScanner) throws -> KeyRange {
    var lowerBound: StoreKey?
    var upperBound: StoreKey?
    try scanner.forEachMember { _, name, scanner in
      switch String(decoding: name, as: UTF8.self) {
      case "from": lowerBound = try key(from: &scanner)
      case "upTo": upperBound = try key(from: &scanner)
      default: throw scanner.error("unknown member of a range: expected \"from\" or \"upTo\"")
      }
    }
    guard let lowerBound else { throw scanner.error("the member \"from\" of a range is missing") }
    return KeyRange(from: lowerBound, upTo: upperBound)
  }

  /// Returns the key for a text, or `nil` if the text begins with `keyBytes:` without valid hexadecimal digits after
  /// it.
  ///
  /// - Parameter text: The content of a JSON string, in UTF-8.
  package static func key(of text: [UInt8]) -> StoreKey? {
    let key = StoreKey(bytes: text)
    guard key.hasPrefix(mark) else { return key }
    return Hexadecimal.bytes(of: text.dropFirst(mark.count)).map { StoreKey(bytes: $0) }
  }
}
