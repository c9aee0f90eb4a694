import Larder

/// One line of the journal beside a document: the head, or a batch of changes.
///
/// ```
/// {"crc32c":"28a40537","journal":1,"codec":"json"}
/// {"crc32c":"0eee2f8f","durable":49,"changes":[{"set":"a","value":1},{"remove":"b"},{"removeAll":{"from":"c","upTo":"d"}}]}
/// ```
///
/// The checksum, CRC-32C in eight hexadecimal digits, is that of the bytes behind its comma up to the end of the line,
/// the line end left out. `durable` is how many bytes of the journal were known to be durable when the line was written.
enum JSONJournalLine {
  static let version = 1

  /// Why a line cannot be read.
  enum Problem: Error {
    /// The checksum is missing or wrong.
    case damaged
    /// The checksum is right, but what it covers is not what this version writes.
    case malformed(String)
    /// The journal is in a version of the format that came later.
    case newerVersion(String)
  }

  /// What a line says.
  enum Content: Equatable {
    /// The first line: the codec of the values.
    case head(codecName: String)
    /// A batch, and how many bytes of the journal were known to be durable when it was written.
    case batch(changes: [Change<ArraySlice<UInt8>>], durable: Int64)
  }

  private static let mark = Array("{\"crc32c\":\"".utf8)
  private static let digitCount = 8

  // MARK: Writing

  /// The bytes of a line, with the line end.
  static func bytes(of content: Content) -> [UInt8] {
    var rest: [UInt8] = []
    switch content {
    case .head(let codecName):
      rest.append(contentsOf: "\"journal\":\(version),\"codec\":".utf8)
      JSONWriting.append(string: codecName.utf8, to: &rest)
    case .batch(let changes, let durable):
      rest.append(contentsOf: "\"durable\":\(durable),\"changes\":[".utf8)
      for (index, change) in changes.enumerated() {
        if index > 0 { rest.append(UInt8(ascii: ",")) }
        append(change, to: &rest)
      }
      rest.append(UInt8(ascii: "]"))
    }
    rest.append(UInt8(ascii: "}"))
    return mark + digits(of: rest) + "\",".utf8 + rest + [UInt8(ascii: "\n")]
  }

  private static func append(_ change: Change<ArraySlice<UInt8>>, to bytes: inout [UInt8]) {
    switch change {
    case .set(let key, let value):
      bytes.append(contentsOf: "{\"set\":".utf8)
      JSONKey.append(key, to: &bytes)
      bytes.append(contentsOf: ",\"value\":".utf8)
      // A value that was written by hand over several lines must become one.
      JSONWriting.append(compacted: value, to: &bytes)
    case .remove(let key):
      bytes.append(contentsOf: "{\"remove\":".utf8)
      JSONKey.append(key, to: &bytes)
    case .removeAll(let range):
      bytes.append(contentsOf: "{\"removeAll\":".utf8)
      JSONKey.append(range, to: &bytes)
    }
    bytes.append(UInt8(ascii: "}"))
  }

  private static func digits(of rest: some Sequence<UInt8>) -> [UInt8] {
    Hexadecimal.digits(of: withUnsafeBytes(of: CRC32C.checksum(of: rest).bigEndian, Array.init))
  }

  // MARK: Reading

  /// Reads a line.
  ///
  /// - Parameter line: The bytes without the line end.
  /// - Throws: ``Problem``.
  static func content(of line: ArraySlice<UInt8>) throws -> Content {
    let rest = line.dropFirst(mark.count + digitCount + 2)
    guard
      line.starts(with: mark), line.dropFirst(mark.count).starts(with: digits(of: rest)),
      line.dropFirst(mark.count + digitCount).starts(with: "\",".utf8)
    else { throw Problem.damaged }
    do {
      var scanner = JSONScanner(line)
      var content: Content?
      try scanner.forEachMember { _, name, scanner in
        switch String(decoding: name, as: UTF8.self) {
        case "crc32c": _ = try scanner.string()
        case "journal":
          let version = String(decoding: try scanner.value(), as: UTF8.self)
          guard version == String(Self.version) else { throw Problem.newerVersion(version) }
          content = .head(codecName: "")
        case "codec": content = .head(codecName: String(decoding: try scanner.string(), as: UTF8.self))
        case "durable":
          let text = String(decoding: try scanner.value(), as: UTF8.self)
          guard let durable = Int64(text) else { throw Problem.malformed("\"durable\" is not a number of bytes") }
          content = .batch(changes: [], durable: durable)
        case "changes":
          guard case .batch(_, let durable) = content else { throw Problem.malformed("\"durable\" is missing") }
          content = .batch(changes: try changes(&scanner), durable: durable)
        default: throw Problem.malformed("a member is unknown")
        }
      }
      try scanner.expectEnd()
      guard let content else { throw Problem.malformed("it says nothing") }
      return content
    } catch let error as JSONSyntaxError {
      throw Problem.malformed(error.message)
    }
  }

  /// What could be lines of their own within a line that cannot be read.
  static func parts(of line: ArraySlice<UInt8>) -> [ArraySlice<UInt8>] {
    line.indices.dropFirst().filter { line[$0] == mark[0] && line[$0...].starts(with: mark) }.map { line[$0...] }
  }

  private static func changes(_ scanner: inout JSONScanner) throws -> [Change<ArraySlice<UInt8>>] {
    var changes: [Change<ArraySlice<UInt8>>] = []
    try scanner.expect(UInt8(ascii: "["))
    guard !scanner.skip(UInt8(ascii: "]")) else { return changes }
    repeat {
      changes.append(try change(&scanner))
    } while scanner.skip(UInt8(ascii: ","))
    try scanner.expect(UInt8(ascii: "]"))
    return changes
  }

  private static func change(_ scanner: inout JSONScanner) throws -> Change<ArraySlice<UInt8>> {
    var setKey: StoreKey?
    var change: Change<ArraySlice<UInt8>>?
    try scanner.forEachMember { _, name, scanner in
      switch String(decoding: name, as: UTF8.self) {
      case "set": setKey = try JSONKey.key(from: &scanner)
      case "value": change = .set(try required(setKey), try scanner.value())
      case "remove": change = .remove(try JSONKey.key(from: &scanner))
      case "removeAll": change = .removeAll(try JSONKey.range(from: &scanner))
      default: throw Problem.malformed("a kind of change is unknown")
      }
    }
    return try required(change)
  }

  private static func required<Part>(_ part: Part?) throws -> Part {
    guard let part else { throw Problem.malformed("a part of a change is missing") }
    return part
  }
}
