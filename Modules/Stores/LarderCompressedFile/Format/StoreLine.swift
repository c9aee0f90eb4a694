#if Compression
import Larder

/// A line in the text of a compressed file that represents one change.
///
/// ```
/// {"set":"user:1","value":{"name":"Ada"}}
/// {"set":"picture","base64":"iVBORw0KGgo="}
/// {"remove":"user:2"}
/// {"removeAll":{"from":"a","upTo":"b"}}
/// ```
enum StoreLine {
  /// The version of the format that Larder writes.
  static let version = 2

  /// The reason why a line with sound bytes cannot be read.
  struct Problem: RedactedError, CustomStringConvertible {
    let message: String
    var description: String { message }
  }

  // MARK: Writing

  /// Returns the line of a change.
  ///
  /// - Parameters:
  ///   - change: The change, with the JSON text of the value.
  ///   - format: The format of the codec. Values of a binary codec are stored as base64.
  static func bytes(of change: BatchChange<ArraySlice<UInt8>>, format: CodecFormat) -> [UInt8] {
    var line: [UInt8] = []
    if case .set(let key, let value) = change { line.reserveCapacity(value.count + key.count + 32) }
    JSONKey.append(change, to: &line) { value, line in
      line.append(contentsOf: (format == .json ? ",\"value\":" : ",\"base64\":").utf8)
      line.append(contentsOf: value)
    }
    line.append(UInt8(ascii: "\n"))
    return line
  }

  // MARK: Reading

  /// The beginning of almost every line.
  private static let setStart = Array("{\"set\":".utf8)

  /// Returns the change that a line represents, without its value.
  ///
  /// - Parameter line: The line. If it sets a key, a prefix that includes the key is enough.
  /// - Throws: ``Problem`` if the line is not a change.
  static func change(_ line: ArraySlice<UInt8>) throws -> BatchChange<Void> {
    try reading {
      if line.starts(with: setStart) {
        var scanner = JSONScanner(line, from: line.startIndex + setStart.count)
        return .set(try JSONKey.key(from: &scanner), ())
      }
      var scanner = JSONScanner(line)
      try scanner.expect(UInt8(ascii: "{"))
      let name = try scanner.string()
      try scanner.expect(UInt8(ascii: ":"))
      switch String(decoding: name, as: UTF8.self) {
      case "set": return .set(try JSONKey.key(from: &scanner), ())
      case "remove": return .remove(try JSONKey.key(from: &scanner))
      case "removeAll": return .removeAll(try JSONKey.range(from: &scanner))
      default: throw Problem(message: "unknown kind of change")
      }
    }
  }

  /// Returns the value in the line that sets a key.
  ///
  /// - Parameters:
  ///   - line: The whole line.
  ///   - key: The key.
  /// - Returns: The JSON text of the value, or of a string with its base64.
  /// - Throws: ``Problem`` if the line does not set this key.
  static func value(_ line: ArraySlice<UInt8>, ofKey key: StoreKey) throws -> ArraySlice<UInt8> {
    try reading {
      var scanner = JSONScanner(line)
      var found: StoreKey?
      var value: ArraySlice<UInt8>?
      try scanner.forEachMember { _, name, scanner in
        switch String(decoding: name, as: UTF8.self) {
        case "set": found = try JSONKey.key(from: &scanner)
        case "value", "base64": value = try scanner.value()
        default: throw Problem(message: "unknown member")
        }
      }
      guard found == key, let value else { throw Problem(message: "the line does not set the key of the entry") }
      return value
    }
  }

  private static func reading<Result>(_ body: () throws -> Result) throws -> Result {
    do {
      return try body()
    } catch let error as JSONSyntaxError {
      throw Problem(message: error.message)
    }
  }
}

/// Functions for the lines in the text of a block.
enum StoreText {
  /// Returns the offset after the next newline, or `nil` if there isn't one.
  static func lineEnd(in text: [UInt8], from start: Int) -> Int? {
    text.withUnsafeBufferPointer { $0[start...].firstIndex(of: UInt8(ascii: "\n")).map { $0 + 1 } }
  }

  /// Returns the offset of the first change of a block, after its start and its notes.
  ///
  /// - Parameters:
  ///   - text: The text of the block.
  ///   - startEnd: The offset where its first line ends.
  static func changesStart(in text: [UInt8], after startEnd: Int) -> Int {
    guard BlockNotes.range(in: text, at: startEnd) != nil else { return startEnd }
    return lineEnd(in: text, from: startEnd) ?? text.count
  }

  /// Calls a closure with each change of a block.
  ///
  /// - Parameters:
  ///   - text: The text of the block.
  ///   - start: The offset of the first change.
  ///   - body: A closure that receives a change, the range of its line, and whether the line ends in this block.
  /// - Throws: ``StoreLine/Problem`` if a line is not a change; any error of `body`.
  static func forEachChange(
    in text: [UInt8], from start: Int, _ body: (BatchChange<Void>, Range<Int>, _ isWhole: Bool) throws -> Void
  ) throws {
    var start = start
    while start < text.count {
      let end = lineEnd(in: text, from: start)
      let range = start..<(end ?? text.count)
      try body(try StoreLine.change(text[range]), range, end != nil)
      start = range.upperBound
    }
  }
}

extension JSONValueCoder {
  /// Returns the text of the value in the line of a key.
  ///
  /// - Throws: ``StoreError`` with `corrupted`.
  func text(
    ofLine line: ArraySlice<UInt8>, forKey key: StoreKey, during operation: StoreOperation
  ) throws -> ArraySlice<UInt8> {
    do {
      return try StoreLine.value(line, ofKey: key)
    } catch {
      throw StoreError(
        .corrupted, during: operation, store: store, key: key, message: "the line of the entry cannot be read",
        underlying: error)
    }
  }
}
#endif
