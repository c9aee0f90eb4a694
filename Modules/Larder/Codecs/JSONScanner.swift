/// A scanner that validates JSON text (RFC 8259) and finds its parts without decoding them.
///
/// The scanner is strict. Any other JSON parser accepts the text that it accepts. It reads every byte at most twice,
/// keeps one byte for each open array or object, and rejects text that nests deeper than ``maximumDepth`` levels.
///
/// ```swift
/// var scanner = JSONScanner(Array(#"{"id": 7, "tags": ["a", "b"]}"#.utf8)[...])
/// try scanner.forEachMember { _, name, scanner in
///   print(String(decoding: name, as: UTF8.self), try scanner.value().count)
/// }
/// try scanner.expectEnd()
/// ```
public struct JSONScanner {
  /// The maximum depth of nested arrays and objects: that of Foundation's decoder.
  public static let maximumDepth = 512

  /// The text.
  public let text: ArraySlice<UInt8>

  /// The current position, as an index of ``text``.
  public private(set) var position: Int

  /// Creates a scanner.
  ///
  /// - Parameters:
  ///   - text: The text.
  ///   - position: The index of the text at which the scanner starts. Defaults to the first index.
  public init(_ text: ArraySlice<UInt8>, from position: Int? = nil) {
    self.text = text
    self.position = position ?? text.startIndex
  }

  // MARK: Tokens

  /// The byte at the current position, or `nil` at the end.
  public var current: UInt8? {
    position < text.endIndex ? text[position] : nil
  }

  /// Returns an error for an index of the text.
  ///
  /// Defaults to the current position.
  public func error(_ message: String, at index: Int? = nil) -> JSONSyntaxError {
    JSONSyntaxError(message, at: (index ?? position) - text.startIndex, of: text)
  }

  /// Skips whitespace.
  public mutating func skipWhitespace() {
    while position < text.endIndex, JSONScanner.isWhitespace(text[position]) {
      position += 1
    }
  }

  /// Skips whitespace and, if it follows, a given byte.
  ///
  /// - Returns: A Boolean value that indicates whether the byte followed.
  public mutating func skip(_ byte: UInt8) -> Bool {
    skipWhitespace()
    guard current == byte else { return false }
    position += 1
    return true
  }

  /// Skips whitespace and a given byte.
  ///
  /// - Throws: ``JSONSyntaxError`` if the byte does not follow.
  public mutating func expect(_ byte: UInt8) throws(JSONSyntaxError) {
    guard skip(byte) else {
      let found = position < text.endIndex ? "" : ", but the text ends"
      throw error("expected \"\(Character(UnicodeScalar(byte)))\"\(found)")
    }
  }

  /// Skips whitespace and checks that the text ends.
  ///
  /// - Throws: ``JSONSyntaxError`` if the text does not end.
  public mutating func expectEnd() throws(JSONSyntaxError) {
    skipWhitespace()
    guard position == text.endIndex else { throw error("expected the end of the text") }
  }

  private static func isWhitespace(_ byte: UInt8) -> Bool {
    byte == UInt8(ascii: " ") || byte == UInt8(ascii: "\n") || byte == UInt8(ascii: "\r") || byte == UInt8(ascii: "\t")
  }

  // MARK: Strings

  /// Skips whitespace and a string, and returns the content of the string in UTF-8.
  ///
  /// - Throws: ``JSONSyntaxError`` if no well-formed string follows. An unpaired surrogate in an escape is rejected,
  ///   because it does not represent a character.
  public mutating func string() throws(JSONSyntaxError) -> [UInt8] {
    try expect(UInt8(ascii: "\""))
    var content: [UInt8]? = []
    try skipRestOfString(collecting: &content)
    return content ?? []
  }

  /// Skips the rest of a string after its opening quote.
  ///
  /// - Parameter content: Receives the content of the string in UTF-8, unless it is `nil`.
  private mutating func skipRestOfString(collecting content: inout [UInt8]?) throws(JSONSyntaxError) {
    while true {
      let start = position
      while position < text.endIndex, JSONScanner.isPlain(text[position]) { position += 1 }
      content?.append(contentsOf: text[start..<position])
      guard position < text.endIndex else { throw error("unterminated string") }
      switch text[position] {
      case UInt8(ascii: "\""):
        position += 1
        return
      case UInt8(ascii: "\\"):
        try escape(into: &content)
      case 0x80...:
        let start = position
        try skipMultibyteScalar()
        content?.append(contentsOf: text[start..<position])
      default:
        throw error("a control character in a string must be escaped")
      }
    }
  }

  /// Returns whether a byte in a string is an unescaped ASCII character.
  private static func isPlain(_ byte: UInt8) -> Bool {
    byte >= 0x20 && byte < 0x80 && byte != UInt8(ascii: "\"") && byte != UInt8(ascii: "\\")
  }

  private mutating func escape(into content: inout [UInt8]?) throws(JSONSyntaxError) {
    let start = position
    position += 1
    guard let character = current else { throw error("unterminated string") }
    position += 1
    switch character {
    case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"): content?.append(character)
    case UInt8(ascii: "b"): content?.append(0x08)
    case UInt8(ascii: "f"): content?.append(0x0C)
    case UInt8(ascii: "n"): content?.append(0x0A)
    case UInt8(ascii: "r"): content?.append(0x0D)
    case UInt8(ascii: "t"): content?.append(0x09)
    case UInt8(ascii: "u"):
      let unit = try hexadecimalUnit(from: start)
      var scalar = UInt32(unit)
      if UTF16.isLeadSurrogate(unit), current == UInt8(ascii: "\\"),
        text.dropFirst(position - text.startIndex + 1).first == UInt8(ascii: "u")
      {
        position += 2
        let trail = try hexadecimalUnit(from: start)
        guard UTF16.isTrailSurrogate(trail) else { throw error("unpaired surrogate in an escape", at: start) }
        scalar = 0x10000 + (UInt32(unit) - 0xD800) << 10 + (UInt32(trail) - 0xDC00)
      }
      guard let scalar = UnicodeScalar(scalar) else {
        throw error("unpaired surrogate in an escape", at: start)
      }
      content?.append(contentsOf: UTF8.encode(scalar).map(Array.init) ?? [])
    default:
      throw error("unknown escape", at: start)
    }
  }

  private mutating func hexadecimalUnit(from start: Int) throws(JSONSyntaxError) -> UInt16 {
    guard text.endIndex - position >= 4, let bytes = Hexadecimal.bytes(of: text[position..<position + 4]) else {
      throw error("expected four hexadecimal digits after \\u", at: start)
    }
    position += 4
    return UInt16(bytes[0]) << 8 | UInt16(bytes[1])
  }

  /// Skips a character of two to four bytes, which must be well-formed UTF-8 (The Unicode Standard, table 3-7).
  private mutating func skipMultibyteScalar() throws(JSONSyntaxError) {
    func at(_ distance: Int) -> UInt8 {
      position + distance < text.endIndex ? text[position + distance] : 0
    }
    func isContinuation(_ byte: UInt8) -> Bool { byte & 0xC0 == 0x80 }
    let length: Int
    switch (text[position], at(1)) {
    case (0xC2...0xDF, 0x80...0xBF): length = 2
    case (0xE0, 0xA0...0xBF), (0xE1...0xEC, 0x80...0xBF), (0xED, 0x80...0x9F), (0xEE...0xEF, 0x80...0xBF): length = 3
    case (0xF0, 0x90...0xBF), (0xF1...0xF3, 0x80...0xBF), (0xF4, 0x80...0x8F): length = 4
    default: throw error("invalid UTF-8")
    }
    if length > 2, !isContinuation(at(2)) || length > 3 && !isContinuation(at(3)) {
      throw error("invalid UTF-8")
    }
    position += length
  }

  private mutating func skipString() throws(JSONSyntaxError) {
    position += 1
    var ignored: [UInt8]?
    try skipRestOfString(collecting: &ignored)
  }

  // MARK: Whole values

  /// Skips whitespace and a value of any kind.
  ///
  /// - Returns: The text of the value, without the whitespace around it.
  /// - Throws: ``JSONSyntaxError`` if no well-formed value follows.
  public mutating func value() throws(JSONSyntaxError) -> ArraySlice<UInt8> {
    skipWhitespace()
    let start = position
    // A list instead of recursion, so that hostile text cannot overflow the stack.
    var openContainers: [UInt8] = []
    while true {
      skipWhitespace()
      guard let byte = current else { throw error("expected a value, but the text ends") }
      switch byte {
      case UInt8(ascii: "{"), UInt8(ascii: "["):
        position += 1
        guard openContainers.count < JSONScanner.maximumDepth else {
          throw error("arrays and objects must nest at most \(JSONScanner.maximumDepth) levels deep")
        }
        let close = byte == UInt8(ascii: "{") ? UInt8(ascii: "}") : UInt8(ascii: "]")
        if skip(close) { break }
        openContainers.append(close)
        if byte == UInt8(ascii: "{") { try skipName() }
        continue
      case UInt8(ascii: "\""): try skipString()
      case UInt8(ascii: "-"), UInt8(ascii: "0")...UInt8(ascii: "9"): try skipNumber()
      case UInt8(ascii: "t"): try skipLiteral("true")
      case UInt8(ascii: "f"): try skipLiteral("false")
      case UInt8(ascii: "n"): try skipLiteral("null")
      default: throw error("expected a value")
      }
      // After a value, close the arrays and objects that end with it, up to a comma.
      while let close = openContainers.last {
        if skip(UInt8(ascii: ",")) {
          if close == UInt8(ascii: "}") { try skipName() }
          break
        }
        try expect(close)
        openContainers.removeLast()
      }
      if openContainers.isEmpty { return text[start..<position] }
    }
  }

  private mutating func skipName() throws(JSONSyntaxError) {
    skipWhitespace()
    guard current == UInt8(ascii: "\"") else { throw error("expected the name of a member") }
    try skipString()
    try expect(UInt8(ascii: ":"))
  }

  private mutating func skipLiteral(_ literal: StaticString) throws(JSONSyntaxError) {
    let matches = literal.withUTF8Buffer { text[position...].starts(with: $0) }
    guard matches else { throw error("expected a value") }
    position += literal.utf8CodeUnitCount
  }

  private mutating func skipNumber() throws(JSONSyntaxError) {
    if current == UInt8(ascii: "-") { position += 1 }
    if current == UInt8(ascii: "0") {
      position += 1
    } else {
      try skipDigits()
    }
    if current == UInt8(ascii: ".") {
      position += 1
      try skipDigits()
    }
    if current == UInt8(ascii: "e") || current == UInt8(ascii: "E") {
      position += 1
      if current == UInt8(ascii: "+") || current == UInt8(ascii: "-") { position += 1 }
      try skipDigits()
    }
  }

  private mutating func skipDigits() throws(JSONSyntaxError) {
    let start = position
    while let byte = current, byte >= UInt8(ascii: "0"), byte <= UInt8(ascii: "9") { position += 1 }
    guard position > start else { throw error("expected a digit") }
  }

  /// Skips whitespace and an object, and calls a closure for each member.
  ///
  /// - Parameter body: A closure that receives the index and the name of a member, in UTF-8, and the scanner at the
  ///   value of the member. The closure must skip the value.
  /// - Throws: The error that `body` throws; ``JSONSyntaxError`` if no well-formed object follows.
  public mutating func forEachMember(_ body: (Int, [UInt8], inout JSONScanner) throws -> Void) throws {
    try expect(UInt8(ascii: "{"))
    guard !skip(UInt8(ascii: "}")) else { return }
    repeat {
      skipWhitespace()
      let index = position
      guard current == UInt8(ascii: "\"") else { throw error("expected the name of a member") }
      let name = try string()
      try expect(UInt8(ascii: ":"))
      try body(index, name, &self)
    } while skip(UInt8(ascii: ","))
    try expect(UInt8(ascii: "}"))
  }

  /// Skips whitespace and an array, and calls a closure before each element.
  ///
  /// ```swift
  /// var scanner = JSONScanner(Array("[1, 2, 3]".utf8)[...])
  /// try scanner.forEachElement { scanner in print(try scanner.value().count) }
  /// ```
  ///
  /// - Parameter body: A closure that must skip the element.
  /// - Throws: The error that `body` throws; ``JSONSyntaxError`` if no well-formed array follows.
  public mutating func forEachElement(_ body: (inout JSONScanner) throws -> Void) throws {
    try expect(UInt8(ascii: "["))
    guard !skip(UInt8(ascii: "]")) else { return }
    repeat {
      skipWhitespace()
      try body(&self)
    } while skip(UInt8(ascii: ","))
    try expect(UInt8(ascii: "]"))
  }
}
