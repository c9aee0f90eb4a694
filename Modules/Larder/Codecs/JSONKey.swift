/// The representation of keys and of ranges of keys in JSON.
///
/// A key that is valid UTF-8 is written as that text. Any other key is written as `keyBytes:` followed by its bytes in
/// hexadecimal. So is a key that begins with `keyBytes:`, so no two keys have the same text.
public enum JSONKey {
  private static let mark = StoreKey("keyBytes:")

  /// Appends a key as a JSON string.
  public static func append(_ key: StoreKey, to bytes: inout [UInt8]) {
    if key.string != nil, !key.hasPrefix(mark) {
      key.withUnsafeBytes { JSONText.append(string: $0, to: &bytes) }
    } else {
      JSONText.append(string: mark.bytes + Hexadecimal.digits(of: key.bytes), to: &bytes)
    }
  }

  /// Appends a range of keys as a JSON object, with a member `from` and, if the range has an upper bound, `upTo`.
  public static func append(_ range: KeyRange, to bytes: inout [UInt8]) {
    bytes.append(contentsOf: "{\"from\":".utf8)
    append(range.lowerBound, to: &bytes)
    if let upperBound = range.upperBound {
      bytes.append(contentsOf: ",\"upTo\":".utf8)
      append(upperBound, to: &bytes)
    }
    bytes.append(UInt8(ascii: "}"))
  }

  /// Appends a change as a JSON object with a member `set`, `remove` or `removeAll`.
  ///
  /// - Parameters:
  ///   - change: The change.
  ///   - bytes: The array that receives the object.
  ///   - appendValue: A closure that appends the member with the value that is set, such as `,"value":7`.
  public static func append(
    _ change: BatchChange<ArraySlice<UInt8>>, to bytes: inout [UInt8],
    value appendValue: (_ value: ArraySlice<UInt8>, _ bytes: inout [UInt8]) -> Void
  ) {
    switch change {
    case .set(let key, let value):
      bytes.append(contentsOf: "{\"set\":".utf8)
      append(key, to: &bytes)
      appendValue(value, &bytes)
    case .remove(let key):
      bytes.append(contentsOf: "{\"remove\":".utf8)
      append(key, to: &bytes)
    case .removeAll(let range):
      bytes.append(contentsOf: "{\"removeAll\":".utf8)
      append(range, to: &bytes)
    }
    bytes.append(UInt8(ascii: "}"))
  }

  /// Reads a key from a JSON string.
  ///
  /// - Throws: ``JSONSyntaxError``.
  public static func key(from scanner: inout JSONScanner) throws -> StoreKey {
    guard let key = key(of: try scanner.string()) else {
      throw scanner.error("invalid key: expected hexadecimal digits after keyBytes:")
    }
    return key
  }

  /// Reads a range of keys from a JSON object.
  ///
  /// - Throws: ``JSONSyntaxError``.
  public static func range(from scanner: inout JSONScanner) throws -> KeyRange {
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
  public static func key(of text: [UInt8]) -> StoreKey? {
    let key = StoreKey(bytes: text)
    guard key.hasPrefix(mark) else { return key }
    return Hexadecimal.bytes(of: text.dropFirst(mark.count)).map { StoreKey(bytes: $0) }
  }
}
