import Larder

/// What the tool prints of an entry: one line of JSON.
enum EntryLine {
  /// Appends the line of an entry, without its end.
  ///
  /// - Parameters:
  ///   - key: The key.
  ///   - value: The value; `nil` where only the key is printed.
  ///   - members: The names of further members, which need no escape, and their values as JSON.
  ///   - bytes: Gets the line.
  static func append(
    key: StoreKey, value: JSONText? = nil, _ members: [(name: String, json: String)] = [], to bytes: inout [UInt8]
  ) {
    bytes.append(UInt8(ascii: "{"))
    appendMember(of: key, to: &bytes)
    if let value {
      bytes.append(contentsOf: ",\"value\":".utf8)
      bytes.append(contentsOf: value.bytes)
    }
    for (name, json) in members {
      bytes.append(contentsOf: ",\"\(name)\":\(json)".utf8)
    }
    bytes.append(UInt8(ascii: "}"))
  }

  /// Appends the line of some damage, without its end.
  ///
  /// - Parameters:
  ///   - finding: The damage.
  ///   - bytes: Gets the line.
  static func append(_ finding: VerificationReport.Finding, to bytes: inout [UInt8]) {
    bytes.append(UInt8(ascii: "{"))
    if let key = finding.key {
      appendMember(of: key, to: &bytes)
    } else {
      bytes.append(contentsOf: "\"key\":null".utf8)
    }
    for (name, text) in [("place", finding.place), ("message", finding.message)] {
      bytes.append(contentsOf: ",\"\(name)\":".utf8)
      bytes.append(contentsOf: JSONText(string: text).bytes)
    }
    bytes.append(UInt8(ascii: "}"))
  }

  /// Appends the line of keys that cannot be read, without its end: of one key, or of a range with `null` for no bound.
  ///
  /// - Parameters:
  ///   - range: The keys.
  ///   - message: Why they cannot be read.
  ///   - bytes: Gets the line.
  static func append(_ range: KeyRange, message: String, to bytes: inout [UInt8]) {
    bytes.append(UInt8(ascii: "{"))
    if range == .only(range.lowerBound) {
      appendMember(of: range.lowerBound, to: &bytes)
    } else {
      append(range.lowerBound.isEmpty ? nil : range.lowerBound, as: "from", to: &bytes)
      bytes.append(UInt8(ascii: ","))
      append(range.upperBound, as: "upTo", to: &bytes)
    }
    bytes.append(contentsOf: ",\"message\":".utf8)
    bytes.append(contentsOf: JSONText(string: message).bytes)
    bytes.append(UInt8(ascii: "}"))
  }

  /// Appends a bound of a range, under a name that ends with `Bytes` if it is not UTF-8.
  private static func append(_ bound: StoreKey?, as name: String, to bytes: inout [UInt8]) {
    guard let bound else { return bytes.append(contentsOf: "\"\(name)\":null".utf8) }
    let (name, text) = bound.string.map { (name, $0) } ?? ("\(name)Bytes", HexadecimalText.text(of: bound.bytes))
    bytes.append(contentsOf: "\"\(name)\":".utf8)
    bytes.append(contentsOf: JSONText(string: text).bytes)
  }

  /// Appends `"key":"…"`, or `"keyBytes":"…"` in hexadecimal where the key is not UTF-8.
  private static func appendMember(of key: StoreKey, to bytes: inout [UInt8]) {
    append(key, as: "key", to: &bytes)
  }
}
