import Larder

/// The content of a journal that was found when a store was opened.
///
/// See ``JSONJournalLine`` for its lines.
///
/// An unreadable line is the torn tail of a batch that was never completed, unless a later batch or mark states that
/// the line was durable. In that case, the file was damaged afterward, and an error is thrown.
struct JSONJournal {
  /// A reason why a journal cannot be used.
  enum Problem: Error, Equatable {
    /// A line was damaged after it was durable.
    case damaged(line: Int, reason: String)
    /// The journal has another format version.
    case otherVersion(String)
  }

  /// The content of the first line.
  let head: JSONJournalLine.Head

  /// The length of the first line with its line end.
  let headSize: Int

  /// The batches, in the order they were written.
  private(set) var batches: [[BatchChange<ArraySlice<UInt8>>]] = []

  /// The end of the last valid line.
  ///
  /// Anything after it is to be removed.
  private(set) var size: Int

  /// Parses a journal.
  ///
  /// - Parameter text: The content of the whole file.
  /// - Throws: ``Problem``.
  init(_ text: [UInt8]) throws {
    // Text without a line end is the beginning of a torn line.
    var lines = text.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false).dropLast()
    // The file is created as a whole, including its head, so no crash explains a missing or damaged head.
    guard let first = lines.popFirst(), let content = try JSONJournalLine.content(of: first, number: 1),
      case .head(let head) = content
    else {
      throw Problem.damaged(line: 1, reason: "it is not the first line of a journal")
    }
    self.head = head
    headSize = first.endIndex + 1
    size = headSize

    var firstBadLine: Int?
    for (number, line) in zip(2..., lines) {
      guard let content = try JSONJournalLine.content(of: line, number: number) else {
        firstBadLine = firstBadLine ?? number
        // If the line end was damaged, this line includes the next one, and the statement of that line counts.
        if let next = JSONJournalLine.lineSwallowed(by: line, number: number), next.durable > size {
          throw Problem.damaged(line: number, reason: "its line end is damaged")
        }
        continue
      }
      switch content {
      case .head: throw Problem.damaged(line: number, reason: "it is a first line in the wrong place")
      case .batch(let changes, _) where firstBadLine == nil:
        batches.append(changes)
        size = line.endIndex + 1
      case .batch, .mark:
        guard content.durable <= size else {
          throw Problem.damaged(
            line: firstBadLine ?? number, reason: "its checksum is wrong, or lines before it are missing")
        }
        // Lines after a mark were written after the content that was complete when the mark was written.
        firstBadLine = firstBadLine ?? number
      }
    }
  }
}

extension JSONJournalLine.Content {
  /// The number of bytes of the journal known to be durable when the line was written.
  fileprivate var durable: Int64 {
    switch self {
    case .head: 0
    case .batch(_, let durable), .mark(let durable): durable
    }
  }
}

/// A line of the journal beside a document: the head, a batch of changes, or the mark after the last batch.
///
/// ```
/// {"crc32c":"8929ff22","journal":2,"codec":"json","generation":17,"document":"31afc9d2"}
/// {"crc32c":"330ee77c","durable":87,"changes":[{"set":"a","value":1},{"remove":"b"},{"removeAll":{"from":"c","upTo":"d"}}]}
/// {"crc32c":"19f9e28b","durable":209}
/// ```
///
/// The checksum is a CRC-32C in eight hexadecimal digits. It covers the bytes after its comma up to the end of the
/// line, without the line end. `durable` is the number of bytes of the journal known to be durable when the line was
/// written.
///
/// A **mark** states that the last batch is durable, because no later line can. The mark is not synchronized, so power
/// loss may remove it, and the next batch overwrites it. Every batch that overwrites a mark is longer than the mark.
enum JSONJournalLine {
  static let version = 2

  /// The first line, which identifies the document that the journal continues.
  struct Head: Equatable {
    /// The name of the codec of the values.
    var codecName: String
    /// The generation of the document; 0 if there isn't one.
    var generation: Int64 = 0
    /// The digest of the stamp of the document, or `nil` if it doesn't have one.
    var document: String?
  }

  /// The content of a line.
  enum Content: Equatable {
    /// The first line.
    case head(Head)
    /// A batch, and the number of bytes of the journal known to be durable when it was written.
    case batch(changes: [BatchChange<ArraySlice<UInt8>>], durable: Int64)
    /// The number of bytes of the journal that are durable.
    case mark(durable: Int64)
  }

  private static let prefix = Array("{\"crc32c\":\"".utf8)
  private static let digitCount = 8

  // MARK: Writing

  /// Returns the bytes of a line, with the line end.
  static func bytes(of content: Content) -> [UInt8] {
    var rest: [UInt8] = []
    switch content {
    case .head(let head):
      rest.append(contentsOf: "\"journal\":\(version),\"codec\":".utf8)
      JSONText.append(string: head.codecName.utf8, to: &rest)
      rest.append(contentsOf: ",\"generation\":\(head.generation)".utf8)
      if let document = head.document { rest.append(contentsOf: ",\"document\":\"\(document)\"".utf8) }
    case .mark(let durable):
      rest.append(contentsOf: "\"durable\":\(durable)".utf8)
    case .batch(let changes, let durable):
      rest.append(contentsOf: "\"durable\":\(durable),\"changes\":[".utf8)
      for (index, change) in changes.enumerated() {
        if index > 0 { rest.append(UInt8(ascii: ",")) }
        JSONKey.append(change, to: &rest) { value, rest in
          rest.append(contentsOf: ",\"value\":".utf8)
          // A value written by hand may span several lines, which must be joined into one.
          JSONText.append(compacted: value, to: &rest)
        }
      }
      rest.append(UInt8(ascii: "]"))
    }
    rest.append(UInt8(ascii: "}"))
    return prefix + digits(of: rest) + "\",".utf8 + rest + [UInt8(ascii: "\n")]
  }

  private static func digits(of rest: some Sequence<UInt8>) -> [UInt8] {
    Array(Hexadecimal.text(of: CRC32C.checksum(of: rest)).utf8)
  }

  // MARK: Reading

  /// Returns the content of a line, or `nil` if its checksum is missing or wrong.
  ///
  /// - Parameters:
  ///   - line: The bytes of the line, without the line end.
  ///   - number: The number of the line, for errors.
  /// - Throws: ``JSONJournal/Problem`` if the checksum is right, but this version does not write such content.
  static func content(of line: ArraySlice<UInt8>, number lineNumber: Int) throws -> Content? {
    let rest = line.dropFirst(prefix.count + digitCount + 2)
    guard
      line.starts(with: prefix), line.dropFirst(prefix.count).starts(with: digits(of: rest)),
      line.dropFirst(prefix.count + digitCount).starts(with: "\",".utf8)
    else { return nil }
    do {
      var scanner = JSONScanner(line)
      var head: Head?
      var durable: Int64?
      var changes: [BatchChange<ArraySlice<UInt8>>]?
      try scanner.forEachMember { _, name, scanner in
        switch String(decoding: name, as: UTF8.self) {
        case "crc32c": _ = try scanner.string()
        case "journal":
          let version = String(decoding: try scanner.value(), as: UTF8.self)
          guard Int(version) == Self.version else { throw JSONJournal.Problem.otherVersion(version) }
          head = Head(codecName: "")
        case "codec":
          let name = String(decoding: try scanner.string(), as: UTF8.self)
          head?.codecName = name
        case "generation":
          let generation = try number(&scanner)
          head?.generation = generation
        case "document":
          let document = String(decoding: try scanner.string(), as: UTF8.self)
          head?.document = document
        case "durable": durable = try number(&scanner)
        case "changes":
          changes = []
          try scanner.forEachElement { changes?.append(try change(&$0)) }
        default: throw scanner.error("it has an unknown member")
        }
      }
      try scanner.expectEnd()
      if let head { return .head(head) }
      guard let durable else { throw scanner.error("\"journal\" and \"durable\" are missing") }
      return changes.map { .batch(changes: $0, durable: durable) } ?? .mark(durable: durable)
    } catch let error as JSONSyntaxError {
      // The checksum is right, so these bytes were written intentionally and not torn by a crash.
      throw JSONJournal.Problem.damaged(line: lineNumber, reason: error.message)
    }
  }

  private static func number(_ scanner: inout JSONScanner) throws -> Int64 {
    guard let number = Int64(String(decoding: try scanner.value(), as: UTF8.self)), number >= 0 else {
      throw scanner.error("a number is not a whole number")
    }
    return number
  }

  /// Returns the valid line that an unreadable line ends in, or `nil` if there isn't one.
  ///
  /// If its line end was damaged, a line includes the next one.
  static func lineSwallowed(by line: ArraySlice<UInt8>, number: Int) -> Content? {
    let starts = line.indices.dropFirst().reversed().lazy.filter {
      line[$0] == prefix[0] && line[$0...].starts(with: prefix)
    }
    // A value may contain the beginning of a line thousands of times. A mark, which follows the last durable batch,
    // contains none.
    for start in starts.prefix(16) {
      do {
        if let content = try content(of: line[start...], number: number) { return content }
      } catch {
        // These bytes are not a line.
      }
    }
    return nil
  }

  private static func change(_ scanner: inout JSONScanner) throws -> BatchChange<ArraySlice<UInt8>> {
    var setKey: StoreKey?
    var change: BatchChange<ArraySlice<UInt8>>?
    try scanner.forEachMember { _, name, scanner in
      switch String(decoding: name, as: UTF8.self) {
      case "set": setKey = try JSONKey.key(from: &scanner)
      case "value": change = .set(try required(setKey, scanner), try scanner.value())
      case "remove": change = .remove(try JSONKey.key(from: &scanner))
      case "removeAll": change = .removeAll(try JSONKey.range(from: &scanner))
      default: throw scanner.error("it has an unknown kind of change")
      }
    }
    return try required(change, scanner)
  }

  private static func required<Part>(_ part: Part?, _ scanner: JSONScanner) throws -> Part {
    guard let part else { throw scanner.error("a part of a change is missing") }
    return part
  }
}
