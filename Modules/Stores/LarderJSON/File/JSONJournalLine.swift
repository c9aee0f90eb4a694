import Larder

/// One line of the journal beside a document: the head, a batch of changes, or the mark behind the last batch.
///
/// ```
/// {"crc32c":"8929ff22","journal":2,"codec":"json","generation":17,"document":"31afc9d2"}
/// {"crc32c":"330ee77c","durable":87,"changes":[{"set":"a","value":1},{"remove":"b"},{"removeAll":{"from":"c","upTo":"d"}}]}
/// {"crc32c":"19f9e28b","durable":209}
/// ```
///
/// The checksum, CRC-32C in eight hexadecimal digits, is that of the bytes behind its comma up to the end of the line,
/// the line end left out. `durable` is how many bytes of the journal were known to be durable when the line was written.
///
/// A **mark** says that of the last batch, for which no later line can. It is not synchronized, so power loss may take it,
/// and the next batch overwrites it: every batch that is written where a mark stands is longer than the mark.
enum JSONJournalLine {
  static let version = 2

  /// What the first line says of the document that the journal continues.
  struct Head: Equatable {
    /// The codec of the values.
    var codecName: String
    /// The generation of the document; 0 if it has none, and in version 1 of the format.
    var generation: Int64 = 0
    /// The digest of the stamp of the document, or `nil` if it has none.
    var document: String?
  }

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
    /// The first line.
    case head(Head)
    /// A batch, and how many bytes of the journal were known to be durable when it was written.
    case batch(changes: [Change<ArraySlice<UInt8>>], durable: Int64)
    /// How many bytes of the journal are durable.
    case mark(durable: Int64)
  }

  private static let mark = Array("{\"crc32c\":\"".utf8)
  private static let digitCount = 8

  // MARK: Writing

  /// The bytes of a line, with the line end.
  static func bytes(of content: Content) -> [UInt8] {
    var rest: [UInt8] = []
    switch content {
    case .head(let head):
      rest.append(contentsOf: "\"journal\":\(version),\"codec\":".utf8)
      JSONWriting.append(string: head.codecName.utf8, to: &rest)
      rest.append(contentsOf: ",\"generation\":\(head.generation)".utf8)
      if let document = head.document { rest.append(contentsOf: ",\"document\":\"\(document)\"".utf8) }
    case .mark(let durable):
      rest.append(contentsOf: "\"durable\":\(durable)".utf8)
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
    Array(JSONStamp.text(of: CRC32C.checksum(of: rest)).utf8)
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
          guard let number = Int(version), (1...Self.version).contains(number) else {
            throw Problem.newerVersion(version)
          }
          content = .head(Head(codecName: ""))
        case "codec", "generation", "document":
          guard case .head(var head) = content else { throw Problem.malformed("\"journal\" is missing") }
          try readMember(name, of: &head, &scanner)
          content = .head(head)
        case "durable": content = .mark(durable: try number(&scanner))
        case "changes":
          guard case .mark(let durable) = content else { throw Problem.malformed("\"durable\" is missing") }
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

  private static func readMember(_ name: [UInt8], of head: inout Head, _ scanner: inout JSONScanner) throws {
    switch name.first {
    case UInt8(ascii: "c"): head.codecName = String(decoding: try scanner.string(), as: UTF8.self)
    case UInt8(ascii: "g"): head.generation = try number(&scanner)
    default: head.document = String(decoding: try scanner.string(), as: UTF8.self)
    }
  }

  private static func number(_ scanner: inout JSONScanner) throws -> Int64 {
    guard let number = Int64(String(decoding: try scanner.value(), as: UTF8.self)), number >= 0 else {
      throw Problem.malformed("a number is no whole one")
    }
    return number
  }

  /// The lines with a right checksum that a line which cannot be read ends in: if its line end was damaged, a line has
  /// swallowed the next one.
  static func linesSwallowed(by line: ArraySlice<UInt8>) -> [Content] {
    let starts = Set(line.indices.dropFirst().filter { line[$0] == mark[0] && line[$0...].starts(with: mark) })
    guard let first = starts.min() else { return [] }
    var contents: [Content] = []
    // One pass for all of them: values may hold what looks like the beginning of a line, thousands of times.
    CRC32C.forEachSuffix(of: line[first...]) { index, checksum in
      let start = index - mark.count - digitCount - 2
      guard starts.contains(start), line[(start + mark.count)...].starts(with: JSONStamp.text(of: checksum).utf8)
      else { return }
      do {
        contents.append(try content(of: line[start...]))
      } catch {
        // It has a right checksum by chance, or by someone's intent.
      }
    }
    return contents
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
