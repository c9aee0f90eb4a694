#if HTTPCache
import HTTPTypes

/// The values of the request fields that `Vary` names, in the form in which they are compared (RFC 9111, section 4.1).
///
/// One stored response may have several sets of values: if the origin says, by 304 with a strong entity tag, that a
/// stored response is also the one for another request, the values of this request become a further set.
///
/// The decisions create these values. A cache only stores them, and creates them again from what it has stored.
public struct SelectingFields: Sendable, Equatable {
  /// One selecting field.
  public struct Field: Sendable, Equatable {
    /// The name in lower case.
    public var name: String

    /// The normalized value, or `nil` if the request didn't have the field.
    public var value: [UInt8]?

    /// Creates a selecting field.
    ///
    /// - Parameters:
    ///   - name: The name in lower case.
    ///   - value: The normalized value, or `nil` if the request didn't have the field.
    public init(name: String, value: [UInt8]?) {
      self.name = name
      self.value = value
    }
  }

  /// The largest number of sets, 16.
  ///
  /// Beyond it, the oldest set is forgotten.
  public static let largestSetCount = 16

  /// The sets, of which a request must match one.
  ///
  /// Each is sorted by name; one without fields matches every request.
  public var sets: [[Field]]

  /// The largest number of fields that `Vary` may name, 32.
  ///
  /// A response that names more isn't stored.
  public static let largestFieldCount = 32

  /// Creates selecting fields, as a store has kept them.
  ///
  /// - Parameter sets: The sets, each sorted by name.
  public init(sets: [[Field]]) {
    self.sets = sets
  }

  /// Reads the values of a request for the names in `Vary`.
  init(names: [String], in values: inout RequestValues) {
    sets = [names.map { Field(name: $0, value: values[$0]) }]
  }

  /// Returns whether a request has the same values.
  func matches(_ values: inout RequestValues) -> Bool {
    for set in sets where set.allSatisfy({ $0.value == values[$0.name] }) { return true }
    return false
  }

  /// Adds the set of another request.
  mutating func add(_ other: SelectingFields) {
    for set in other.sets where !sets.contains(set) { sets.append(set) }
    if sets.count > Self.largestSetCount { sets.removeFirst(sets.count - Self.largestSetCount) }
  }
}

/// The normalized values of the fields of one request, each computed once.
struct RequestValues {
  private let fields: HTTPFields
  // There are few, so that searching them takes less time than hashing names.
  private var known: [(name: String, value: [UInt8]?)] = []

  init(_ fields: HTTPFields) {
    self.fields = fields
  }

  /// The normalized value of the field with a name in lower case, or `nil` if the request doesn't have it.
  subscript(name: String) -> [UInt8]? {
    mutating get {
      if let entry = known.first(where: { $0.name == name }) { return entry.value }
      var lines: [[UInt8]] = []
      for field in fields where field.name.canonicalName == name { lines.append(field.bytes) }
      let value = lines.isEmpty ? nil : Self.normalized(lines, of: name)
      known.append((name, value))
      return value
    }
  }

  /// Returns the lines of a field in the form in which they are compared.
  static func normalized(_ lines: [[UInt8]], of name: String) -> [UInt8] {
    switch name {
    case "cookie": joined(lines.map(\.trimmed), by: Array("; ".utf8))
    // They aren't lists, so that a comma is an ordinary byte of their value.
    case "authorization", "from", "host", "if-modified-since", "if-unmodified-since", "max-forwards", "origin",
      "proxy-authorization", "referer", "user-agent":
      joined(lines.map(\.trimmed), by: [UInt8(ascii: ",")])
    // Their members have no order and no case.
    case "accept", "accept-encoding", "accept-language":
      joined(
        lines.flatMap(members).map(comparable).sorted { $0.lexicographicallyPrecedes($1) }, by: [UInt8(ascii: ",")])
    default: joined(lines.flatMap(members), by: [UInt8(ascii: ",")])
    }
  }

  private static func joined(_ parts: [some Collection<UInt8>], by separator: [UInt8]) -> [UInt8] {
    var result: [UInt8] = []
    result.reserveCapacity(parts.reduce(0) { $0 + $1.count + separator.count })
    for (index, part) in parts.enumerated() {
      if index > 0 { result += separator }
      result += part
    }
    return result
  }

  /// Returns the members of a list without the whitespace around them and without empty ones.
  private static func members(of line: [UInt8]) -> [ArraySlice<UInt8>] {
    var scanner = FieldScanner(line)
    var members: [ArraySlice<UInt8>] = []
    while true {
      scanner.skipToMember()
      guard scanner.current != nil else { return members }
      let start = scanner.position
      _ = scanner.skipMember()
      members.append(line[start..<scanner.position].trimmed)
    }
  }

  /// Returns a member of a preference without whitespace, in lower case except for the values of its parameters.
  private static func comparable(_ member: ArraySlice<UInt8>) -> [UInt8] {
    var result: [UInt8] = []
    result.reserveCapacity(member.count)
    var isQuoted = false
    var isValue = false
    for byte in member {
      if byte == UInt8(ascii: "\"") { isQuoted.toggle() }
      if isQuoted {
        result.append(byte)
        continue
      }
      if byte == 0x20 || byte == 0x09 { continue }
      if byte == UInt8(ascii: "=") { isValue = true }
      if byte == UInt8(ascii: ";") { isValue = false }
      result.append(isValue ? byte : byte.lowercased)
    }
    return result
  }
}
#endif
