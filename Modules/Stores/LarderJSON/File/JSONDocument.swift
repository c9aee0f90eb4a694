import Larder
import LarderFiles

/// The document of a `JSONFileStore`: `{"larder":2,"generation":17,"entries":{…},"written":{…}}`, with `"codec"` before
/// the entries if it is not `json`.
///
/// The generation counts how often the document was folded; see ``JSONFile``. ``JSONStamp`` is what `written` holds. A
/// document that someone wrote by hand, or in version 1 of the format, needs neither.
///
/// Values are kept as the text that stands in the document; they are decoded when they are read.
struct JSONDocument {
  static let version: Int64 = 2

  private static let versionName = Array("larder".utf8)

  /// Why a text is no document.
  enum Problem: Error {
    /// It is not JSON, or something in it makes no sense; with the key concerned, where that is known.
    case damaged(JSONSyntaxError, key: StoreKey?)
    /// It is JSON, but nothing that Larder has written.
    case foreign
    /// It is in a version of the format that came later.
    case newerVersion(String)
  }

  var codecName: String
  var entries: SortedMap<ArraySlice<UInt8>>

  /// How often the document was folded, or `nil` if it does not say so.
  var generation: Int64?

  /// What the document says of how it was written.
  private(set) var stamp: JSONStamp?

  /// Creates a document.
  init(codecName: String, entries: SortedMap<ArraySlice<UInt8>> = SortedMap(), generation: Int64? = nil) {
    self.codecName = codecName
    self.entries = entries
    self.generation = generation
  }

  // MARK: Reading

  /// Reads a document.
  ///
  /// - Parameters:
  ///   - text: All of the file.
  ///   - attributes: Those of the file: if they are the ones that the document was stamped with, its checksums must be right.
  ///     Defaults to `nil`, for no checksums.
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
        "the checksum of the \(damaged.count) bytes from here on is wrong; if you know the document to be right, remove its member \"written\""
      throw Problem.damaged(JSONSyntaxError(message, at: damaged.lowerBound, of: text), key: nil)
    }
  }

  private init(parsing text: [UInt8]) throws {
    codecName = "json"
    entries = SortedMap()
    // Some editors put a byte order mark before UTF-8.
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
      guard names.insert(name).inserted else { throw scanner.error("this member stands twice", at: place) }
      switch String(decoding: name, as: UTF8.self) {
      case "larder":
        try JSONDocument.checkVersion(String(decoding: try scanner.value(), as: UTF8.self))
      case "codec":
        codecName = String(decoding: try scanner.string(), as: UTF8.self)
      case "generation":
        guard let number = Int64(String(decoding: try scanner.value(), as: UTF8.self)), number >= 0 else {
          throw scanner.error("a generation is a whole number", at: place)
        }
        generation = number
      case "written":
        stamp = try JSONStamp(from: &scanner)
      case "entries" where names.contains(JSONDocument.versionName):
        entriesPosition = scanner.position
        try readEntries(of: &scanner)
      case "entries":
        // Read only once the version is known to be ours. Member by member: what a value may nest is counted from there.
        entriesPosition = scanner.position
        areEntriesPending = true
        try scanner.forEachMember { _, _, scanner in _ = try scanner.value() }
      default:
        unknown = unknown ?? scanner.error("there is no member of this name in a store", at: place)
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

  private static func checkVersion(_ text: String) throws {
    guard let number = Int64(text), number > 0 else { throw Problem.foreign }
    if number > version { throw Problem.newerVersion(text) }
  }

  private mutating func readEntries(of scanner: inout JSONScanner) throws {
    try scanner.forEachMember { place, name, scanner in
      guard let key = JSONKey.key(of: name) else {
        throw scanner.error("\"keyBytes:\" must be followed by pairs of hexadecimal digits", at: place)
      }
      guard !key.isEmpty, key.count <= StoreKey.maximumLength else {
        throw scanner.error("a key has 1 to \(StoreKey.maximumLength) bytes", at: place)
      }
      do {
        guard entries.setValue(try scanner.value(), forKey: key) == nil else {
          throw scanner.error("this key stands twice", at: place)
        }
      } catch let error as JSONSyntaxError {
        throw Problem.damaged(error, key: key)
      }
    }
  }

  // MARK: Writing

  /// Writes a document piece by piece: the keys in order, each entry on a line.
  ///
  /// - Parameters:
  ///   - stamp: The stamp of the file that is written to, in which it gets the checksums.
  ///   - write: Takes the next piece.
  func write(stamping stamp: inout JSONStamp, _ write: ([UInt8]) throws -> Void) throws {
    var block = JSONStamp.Block()
    var line: [UInt8] = Array("{\"larder\":\(JSONDocument.version),".utf8)
    if let generation { line.append(contentsOf: "\"generation\":\(generation),".utf8) }
    if codecName != "json" {
      line.append(contentsOf: "\"codec\":".utf8)
      JSONWriting.append(string: codecName.utf8, to: &line)
      line.append(UInt8(ascii: ","))
    }
    line.append(contentsOf: "\"entries\":{".utf8)
    var separator = "\n"
    try entries.forEach { key, value in
      line.append(contentsOf: separator.utf8)
      JSONKey.append(key, to: &line)
      line.append(UInt8(ascii: ":"))
      if value.contains(UInt8(ascii: "\n")) {
        // Laid out by hand: ``JSONRemains`` needs each entry in one line.
        JSONWriting.append(compacted: value, to: &line)
      } else {
        line.append(contentsOf: value)
      }
      block.add(line, to: &stamp)
      try write(line)
      line.removeAll(keepingCapacity: true)
      separator = ",\n"
    }
    line.append(contentsOf: entries.count == 0 ? "}".utf8 : "\n}".utf8)
    block.add(line, to: &stamp)
    block.finish(&stamp)
    try write(line)
    try write(Array(",\"written\":".utf8) + stamp.text + Array("}\n".utf8))
  }
}
