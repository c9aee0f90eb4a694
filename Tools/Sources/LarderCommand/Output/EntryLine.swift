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

  /// Appends `"key":"…"`, or `"keyBytes":"…"` in hexadecimal where the key is not UTF-8.
  private static func appendMember(of key: StoreKey, to bytes: inout [UInt8]) {
    let (name, text) = key.string.map { ("key", $0) } ?? ("keyBytes", HexadecimalText.text(of: key.bytes))
    bytes.append(contentsOf: "\"\(name)\":".utf8)
    bytes.append(contentsOf: JSONText(string: text).bytes)
  }
}
