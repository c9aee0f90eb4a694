import Larder
import LarderFiles

/// The document of a `JSONFileStore`: `{"larder":2,"generation":17,"entries":{…},"written":{…}}`, with `"codec"` before
/// the entries if the codec is not `json`.
///
/// The generation counts the folds of the document; see ``JSONFile``. The member `written` holds a ``JSONStamp``. A
/// document written by hand needs neither.
///
/// Values are kept as the text in the document, and are decoded when they are read.
struct JSONDocument {
  static let version: Int64 = 2

  private static let versionName = Array("larder".utf8)

  /// A reason why a text is not a document.
  enum Problem: Error {
    /// The text is not JSON or contains invalid content. The key is given if it is known.
    case damaged(JSONSyntaxError, key: StoreKey?)
    /// The text is JSON that Larder has not written.
    case foreign
    /// The document has another format version.
    case otherVersion(String)
  }

  var codecName: String
  var entries: SortedEntries<ArraySlice<UInt8>>

  /// The number of folds of the document, or `nil` if it states none.
  var generation: Int64?

  /// The checksums in the document.
  private(set) var stamp: JSONStamp?

  /// Creates a document.
  init(codecName: String, entries: SortedEntries<ArraySlice<UInt8>> = SortedEntries(), generation: Int64? = nil) {
    self.codecName = codecName
    self.entries = entries
    self.generation = generation
  }

  // MARK: Reading

  /// Parses a document.
  ///
  /// - Parameters:
  ///   - text: The content of the whole file.
  ///   - attributes: The attributes of the file. If they match the stamp of the document, its checksums must be right.
  ///     Defaults to `nil`, meaning that checksums are not checked.
  /// - Throws: ``Problem``.
  init(_ text: [UInt8], of attributes: FileAttributes? = nil) throws {
    do {
      try self.init(parsing: text)
    } catch let error as JSONSyntaxError {
      throw Problem.damaged(error, key: nil)
    }
    guard let stamp, let attributes, stamp.isStamp(of: attributes) else { return }
    if let damaged = stamp.damagedRanges(of: text).first {
      let message =
        "the checksum of the \(damaged.count) bytes from here on is wrong; if you know that the document is right, "
        + "remove its member \"written\""
      throw Problem.damaged(JSONSyntaxError(message, at: damaged.lowerBound, of: text), key: nil)
    }
  }

  private init(parsing text: [UInt8]) throws {
    codecName = "json"
    entries = SortedEntries()
    // Some editors write a byte order mark before UTF-8.
    let byteOrderMark: [UInt8] = [0xEF, 0xBB, 0xBF]
    var scanner = JSONScanner(text[...], from: text.starts(with: byteOrderMark) ? byteOrderMark.count : 0)
    scanner.skipWhitespace()
    guard scanner.current != nil else { throw scanner.error("the file is empty") }
    guard scanner.current == UInt8(ascii: "{") else {
      _ = try scanner.value()
      try scanner.expectEnd()
      throw Problem.foreign
    }

    var names: Set<[UInt8]> = []
    var unknown: JSONSyntaxError?
    var entriesPosition: Int?
    var areEntriesPending = false
    try scanner.forEachMember { place, name, scanner in
      guard names.insert(name).inserted else { throw scanner.error("this member appears twice", at: place) }
      switch String(decoding: name, as: UTF8.self) {
      case "larder":
        let version = String(decoding: try scanner.value(), as: UTF8.self)
        guard let number = Int64(version), number > 0 else { throw Problem.foreign }
        guard number == JSONDocument.version else { throw Problem.otherVersion(version) }
      case "codec":
        codecName = String(decoding: try scanner.string(), as: UTF8.self)
      case "generation":
        guard let number = Int64(String(decoding: try scanner.value(), as: UTF8.self)), number >= 0 else {
          throw scanner.error("the generation must be a whole number", at: place)
        }
        generation = number
      case "written":
        stamp = try JSONStamp(from: &scanner)
      case "entries" where names.contains(JSONDocument.versionName):
        entriesPosition = scanner.position
        try readEntries(of: &scanner)
      case "entries":
        // Entries are read only after the version has been checked. Each member is skipped separately, because the
        // nesting limit of a value counts from there.
        entriesPosition = scanner.position
        areEntriesPending = true
        try scanner.forEachMember { _, _, scanner in _ = try scanner.value() }
      default:
        unknown = unknown ?? scanner.error("a store has no member of this name", at: place)
        _ = try scanner.value()
      }
    }
    try scanner.expectEnd()

    guard names.contains(JSONDocument.versionName) else { throw Problem.foreign }
    if let unknown { throw unknown }
    guard let entriesPosition else { throw scanner.error("the member \"entries\" is missing", at: text.startIndex) }
    if areEntriesPending {
      scanner = JSONScanner(text[...], from: entriesPosition)
      try readEntries(of: &scanner)
    }
  }

  private mutating func readEntries(of scanner: inout JSONScanner) throws {
    try scanner.forEachMember { place, name, scanner in
      guard let key = JSONKey.key(of: name) else {
        throw scanner.error("\"keyBytes:\" must be followed by pairs of hexadecimal digits", at: place)
      }
      guard !key.isEmpty, key.count <= StoreKey.maximumLength else {
        throw scanner.error("a key must have 1 to \(StoreKey.maximumLength) bytes", at: place)
      }
      do {
        guard entries.setValue(try scanner.value(), forKey: key) == nil else {
          throw scanner.error("this key appears twice", at: place)
        }
      } catch let error as JSONSyntaxError {
        throw Problem.damaged(error, key: key)
      }
    }
  }

  // MARK: Writing

  /// Writes a document in pieces, with the keys in order and each entry on its own line.
  ///
  /// - Parameters:
  ///   - stamp: The stamp of the file that is written. It receives the checksums.
  ///   - write: A closure that receives the next piece.
  func write(stamping stamp: inout JSONStamp, _ write: ([UInt8]) throws -> Void) throws {
    var line: [UInt8] = Array("{\"larder\":\(JSONDocument.version),".utf8)
    if let generation { line.append(contentsOf: "\"generation\":\(generation),".utf8) }
    if codecName != "json" {
      line.append(contentsOf: "\"codec\":".utf8)
      JSONText.append(string: codecName.utf8, to: &line)
      line.append(UInt8(ascii: ","))
    }
    line.append(contentsOf: "\"entries\":{".utf8)
    var separator = "\n"
    try entries.forEach { key, value in
      line.append(contentsOf: separator.utf8)
      JSONKey.append(key, to: &line)
      line.append(UInt8(ascii: ":"))
      if value.contains(UInt8(ascii: "\n")) {
        // Formatted by hand: ``JSONRemains`` needs each entry on one line.
        JSONText.append(compacted: value, to: &line)
      } else {
        line.append(contentsOf: value)
      }
      stamp.add(line)
      try write(line)
      line.removeAll(keepingCapacity: true)
      separator = ",\n"
    }
    line.append(contentsOf: entries.count == 0 ? "}".utf8 : "\n}".utf8)
    stamp.add(line)
    stamp.finish()
    try write(line)
    try write(Array(",\"written\":".utf8) + stamp.text + Array("}\n".utf8))
  }
}

/// The readable part of a damaged document, in the layout that Larder writes: one entry per line, with the keys in
/// order.
///
/// A line that is unreadable or has a wrong checksum leaves a hole. The entries between its neighbors are unknown, and
/// may or may not exist.
struct JSONRemains {
  private(set) var document: JSONDocument

  /// The ranges of keys whose entries are unknown, in order.
  private(set) var holes: [KeyRange] = []
  /// The damaged parts of the document, with the numbers of their first lines, counted from 1.
  private(set) var damages: [(line: Int, message: String)] = []

  /// The lower bound of the hole at the end of the lines read so far, or `nil` if they end with an entry.
  private var openHole: StoreKey?

  /// Reads the lines of a document.
  ///
  /// - Parameters:
  ///   - text: The content of the whole file, with NUL in place of bytes that the disk could not read.
  ///   - attributes: The attributes of the file.
  /// - Returns: `nil` if the text does not have Larder's layout, or if its first line is damaged, because nothing can
  ///   be recovered then.
  init?(of text: [UInt8], _ attributes: FileAttributes) {
    let lines = text.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)
    guard let head = lines.first, let document = JSONRemains.document(Array(head) + Array("}}".utf8)) else {
      return nil
    }
    self.document = document
    let lastLine = lines.lastIndex { !$0.isEmpty } ?? 0
    let isComplete = lastLine > 0 && lines[lastLine].first == UInt8(ascii: "}")
    let end = isComplete ? JSONRemains.document(Array("{\"larder\":2,\"entries\":{".utf8) + lines[lastLine]) : nil
    let stamp = end?.stamp.flatMap { $0.isStamp(of: attributes) ? $0 : nil }
    let damagedRanges = stamp?.damagedRanges(of: text) ?? []

    var previous: StoreKey = ""
    var nextDamage = 0
    // A line without its end may be incomplete, such as the first digits of a number.
    for index in lines.indices.dropFirst().prefix(isComplete ? lastLine - 1 : max(0, lines.count - 2)) {
      let line = lines[index]
      while nextDamage < damagedRanges.count, damagedRanges[nextDamage].upperBound <= line.startIndex {
        nextDamage += 1
      }
      let isDoubtful = nextDamage < damagedRanges.count && damagedRanges[nextDamage].lowerBound <= line.endIndex
      guard !isDoubtful, let (key, value) = JSONRemains.entry(in: line) else {
        if openHole == nil {
          openHole = previous.isEmpty ? previous : previous.successor
          damages.append((index + 1, JSONRemains.message(isDoubtful: isDoubtful)))
        }
        continue
      }
      guard key > previous else { return nil }
      if let lower = openHole { holes.append(lower..<key) }
      openHole = nil
      previous = key
      _ = self.document.entries.setValue(value, forKey: key)
    }
    if !isComplete, openHole == nil {
      openHole = previous.isEmpty ? previous : previous.successor
      damages.append((lines.count, "the end of the document is missing"))
    }
    if let openHole { holes.append(openHole...) }
    if isComplete, end == nil {
      damages.append((lastLine + 1, "the member \"written\" cannot be read"))
    }
    guard !damages.isEmpty else { return nil }
  }

  private static func message(isDoubtful: Bool) -> String {
    isDoubtful
      ? "the checksum of this part of the document is wrong, so its entries are ignored"
      : "the entries up to the next readable line are damaged"
  }

  /// Returns the document that a text represents, or `nil` if it is invalid.
  private static func document(_ text: [UInt8]) -> JSONDocument? {
    do {
      return try JSONDocument(text)
    } catch {
      // The problem with the document was already determined before the recovery.
      return nil
    }
  }

  /// Returns the entry in a line, if the line is exactly as Larder writes it.
  private static func entry(in line: ArraySlice<UInt8>) -> (key: StoreKey, value: ArraySlice<UInt8>)? {
    do {
      var scanner = JSONScanner(line)
      guard scanner.current == UInt8(ascii: "\"") else { return nil }
      let name = try scanner.string()
      guard let key = JSONKey.key(of: name), !key.isEmpty, key.count <= StoreKey.maximumLength,
        scanner.current == UInt8(ascii: ":")
      else { return nil }
      try scanner.expect(UInt8(ascii: ":"))
      let start = scanner.position
      let value = try scanner.value()
      guard value.startIndex == start else { return nil }
      _ = scanner.skip(UInt8(ascii: ","))
      try scanner.expectEnd()
      return (key, value)
    } catch {
      return nil
    }
  }
}
