#if HTTPCache
internal import HTTPTypes

/// The values of the request fields that `Vary` names, in the form in which they are compared (RFC 9111, section 4.1).
///
/// One stored response may have several sets of values: if the origin says, by 304 with a strong entity tag, that a
/// stored response is also the one for another request, the values of this request become a further set.
struct SelectingFields: Sendable, Equatable {
  /// One selecting field.
  struct Field: Sendable, Equatable {
    /// The name in lower case.
    var name: String

    /// The normalized value, or `nil` if the request didn't have the field.
    var value: [UInt8]?
  }

  /// The largest number of sets.
  ///
  /// The oldest one is forgotten.
  static let largestSetCount = 16

  /// The sets, of which a request must match one.
  ///
  /// Each is sorted by name; one without fields matches every request.
  var sets: [[Field]]

  /// The largest number of fields that `Vary` may name.
  static let largestFieldCount = 32

  init(sets: [[Field]]) {
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
  private var known: [String: [UInt8]?] = [:]

  init(_ fields: HTTPFields) {
    self.fields = fields
  }

  /// The normalized value of the field with a name in lower case, or `nil` if the request doesn't have it.
  subscript(name: String) -> [UInt8]? {
    mutating get {
      if let value = known[name] { return value }
      let lines = fields.lazy.filter { $0.name.canonicalName == name }.map(\.bytes)
      let value = lines.isEmpty ? nil : Self.normalized(Array(lines), of: name)
      known[name] = .some(value)
      return value
    }
  }

  /// The fields that aren't lists, so that a comma is an ordinary byte of their value.
  private static let singletons: Set = [
    "authorization", "cookie", "from", "host", "if-modified-since", "if-unmodified-since", "max-forwards", "origin",
    "proxy-authorization", "referer", "user-agent",
  ]

  /// The fields whose members have no order and no case.
  private static let preferences: Set = ["accept", "accept-encoding", "accept-language"]

  /// Returns the lines of a field in the form in which they are compared.
  static func normalized(_ lines: [[UInt8]], of name: String) -> [UInt8] {
    if singletons.contains(name) {
      let separator: [UInt8] = name == "cookie" ? Array("; ".utf8) : [UInt8(ascii: ",")]
      return Array(lines.map { Array($0.trimmed) }.joined(separator: separator))
    }
    var members = lines.flatMap { Self.members(of: $0) }
    if preferences.contains(name) {
      members = members.map(Self.comparable).sorted { $0.lexicographicallyPrecedes($1) }
    }
    return Array(members.joined(separator: [UInt8(ascii: ",")]))
  }

  /// Returns the members of a list without the whitespace around them and without empty ones.
  private static func members(of line: [UInt8]) -> [[UInt8]] {
    var scanner = FieldScanner(line)
    var members: [[UInt8]] = []
    while true {
      scanner.skipToMember()
      guard scanner.current != nil else { return members }
      let start = scanner.position
      _ = scanner.skipMember()
      members.append(Array(line[start..<scanner.position].trimmed))
    }
  }

  /// Returns a member of a preference without whitespace, in lower case except for the values of its parameters.
  private static func comparable(_ member: [UInt8]) -> [UInt8] {
    var result: [UInt8] = []
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
