import Larder
import StoreAccess

/// The lines of JSON that the tool prints for entries, changes and damage.
enum EntryLine {
  /// Appends the line of an entry, without its end.
  ///
  /// - Parameters:
  ///   - key: The key.
  ///   - value: The value. Defaults to `nil`, to print the key only.
  ///   - members: The names of further members, which must need no escaping, and their values as JSON.
  ///   - bytes: The destination of the line.
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

  /// Appends the line of a finding of damage, without its end.
  ///
  /// - Parameters:
  ///   - finding: The finding.
  ///   - bytes: The destination of the line.
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

  /// Appends the line of a key or a range that cannot be read, without its end.
  ///
  /// A missing bound of a range is `null`.
  ///
  /// - Parameters:
  ///   - range: The keys.
  ///   - message: The reason why they cannot be read.
  ///   - bytes: The destination of the line.
  static func append(_ range: KeyRange, message: String, to bytes: inout [UInt8]) {
    bytes.append(UInt8(ascii: "{"))
    if range == .only(range.lowerBound) {
      appendMember(of: range.lowerBound, to: &bytes)
    } else {
      appendBounds(of: range, to: &bytes)
    }
    bytes.append(contentsOf: ",\"message\":".utf8)
    bytes.append(contentsOf: JSONText(string: message).bytes)
    bytes.append(UInt8(ascii: "}"))
  }

  /// Appends the line of a change, without its end.
  ///
  /// - Parameters:
  ///   - change: The change.
  ///   - bytes: The destination of the line.
  static func append(_ change: ObservedChange, to bytes: inout [UInt8]) {
    func append(_ key: StoreKey, _ name: String, _ member: String? = nil, _ json: [UInt8] = []) {
      bytes.append(UInt8(ascii: "{"))
      appendMember(of: key, to: &bytes)
      bytes.append(contentsOf: ",\"change\":\"\(name)\"".utf8)
      if let member {
        bytes.append(contentsOf: ",\"\(member)\":".utf8)
        bytes.append(contentsOf: json)
      }
      bytes.append(UInt8(ascii: "}"))
    }
    switch change {
    case .set(let key, let value): append(key, "set", "value", value.bytes)
    case .setUnreadable(let key, let message): append(key, "set", "message", JSONText(string: message).bytes)
    case .removed(let key): append(key, "removed")
    case .range(let range):
      bytes.append(UInt8(ascii: "{"))
      appendBounds(of: range, to: &bytes)
      bytes.append(contentsOf: ",\"change\":\"range changed\"}".utf8)
    }
  }

  /// Appends the bounds of a range, of which a missing one is `null`.
  private static func appendBounds(of range: KeyRange, to bytes: inout [UInt8]) {
    append(range.lowerBound.isEmpty ? nil : range.lowerBound, as: "from", to: &bytes)
    bytes.append(UInt8(ascii: ","))
    append(range.upperBound, as: "upTo", to: &bytes)
  }

  /// Appends a bound of a range, in hexadecimal and under a name that ends with `Bytes` if it is not UTF-8.
  private static func append(_ bound: StoreKey?, as name: String, to bytes: inout [UInt8]) {
    guard let bound else { return bytes.append(contentsOf: "\"\(name)\":null".utf8) }
    let (name, text) = bound.string.map { (name, $0) } ?? ("\(name)Bytes", bound.hexadecimal)
    bytes.append(contentsOf: "\"\(name)\":".utf8)
    bytes.append(contentsOf: JSONText(string: text).bytes)
  }

  /// Appends `"key":"…"`, or `"keyBytes":"…"` in hexadecimal if the key is not UTF-8.
  private static func appendMember(of key: StoreKey, to bytes: inout [UInt8]) {
    append(key, as: "key", to: &bytes)
  }
}
