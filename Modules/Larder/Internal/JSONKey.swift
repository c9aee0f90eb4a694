/// How a key, or a range of keys, is written as JSON, where only text can be.
///
/// A key that is UTF-8 stands as that text. Any other stands as `keyBytes:` and its bytes in hexadecimal; so does a text
/// that itself begins with `keyBytes:`, so that no two keys are written alike.
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

  /// Appends a range of keys as a JSON object, without its upper bound where it has none.
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
    guard let key = key(of: try scanner.string()) else { throw scanner.error("a key makes no sense") }
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
      default: throw scanner.error("a bound of a range is unknown")
      }
    }
    guard let lowerBound else { throw scanner.error("a bound of a range is missing") }
    return KeyRange(from: lowerBound, upTo: upperBound)
  }

  /// The key that some text stands for, or `nil` where bytes are announced and none follow.
  ///
  /// - Parameter text: The content of a JSON string, in UTF-8.
  package static func key(of text: [UInt8]) -> StoreKey? {
    let key = StoreKey(bytes: text)
    guard key.hasPrefix(mark) else { return key }
    return Hexadecimal.bytes(of: text.dropFirst(mark.count)).map { StoreKey(bytes: $0) }
  }
}
