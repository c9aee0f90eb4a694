/// A JSON value as text, which is validated but not decoded.
///
/// Use it in a program that passes JSON on, such as the command-line tool. Every digit of a number stays as it was
/// written. Only the whitespace between tokens is removed. Two texts are equal if they have the same bytes.
///
/// ```swift
/// let document = try JSONText(#"{"theme":"dark"}"#)
/// try await documents.setValue(document, forKey: "settings")
/// ```
public struct JSONText: Sendable, Hashable {
  /// The text in UTF-8, in one line.
  public let bytes: [UInt8]

  /// Creates a JSON value from its text.
  ///
  /// - Parameter text: JSON (RFC 8259) in UTF-8. It may have whitespace around it.
  /// - Throws: ``JSONSyntaxError`` if the text is not one JSON value, or nests more than 512 levels deep.
  public init(_ text: some Sequence<UInt8>) throws {
    var scanner = JSONScanner(Array(text)[...])
    let value = try scanner.value()
    try scanner.expectEnd()
    self.init(checked: value)
  }

  /// Creates a JSON value from its text.
  ///
  /// - Parameter text: JSON (RFC 8259). It may have whitespace around it.
  /// - Throws: ``JSONSyntaxError`` if the text is not one JSON value, or nests more than 512 levels deep.
  public init(_ text: String) throws {
    try self.init(text.utf8)
  }

  /// Creates a JSON string.
  ///
  /// ```swift
  /// let name = JSONText(string: "Ada")  // with quotes and escapes
  /// ```
  ///
  /// - Parameter text: The content of the string, without quotes and escapes.
  public init(string text: String) {
    var bytes: [UInt8] = []
    JSONText.append(string: text.utf8, to: &bytes)
    self.bytes = bytes
  }

  private init(checked text: ArraySlice<UInt8>) {
    var bytes: [UInt8] = []
    bytes.reserveCapacity(text.count)
    JSONText.append(compacted: text, to: &bytes)
    self.bytes = bytes
  }

  /// Creates a JSON value from a part of another one, which has no whitespace between its tokens.
  private init(part: ArraySlice<UInt8>) {
    bytes = Array(part)
  }

  /// Returns the content of a JSON string.
  ///
  /// ```swift
  /// let member = try JSONText(#"{"name":"Ada"}"#).members()?.first
  /// let name = try member?.value.string()  // "Ada"
  /// ```
  ///
  /// - Returns: The content, or `nil` if the value is not a string.
  /// - Throws: ``JSONSyntaxError``, but never in practice, because every text of this type is validated.
  public func string() throws -> String? {
    guard bytes.first == UInt8(ascii: "\"") else { return nil }
    var scanner = JSONScanner(bytes[...])
    return String(decoding: try scanner.string(), as: UTF8.self)
  }

  /// Returns the elements of a JSON array.
  ///
  /// - Returns: The elements, or `nil` if the value is not an array.
  /// - Throws: ``JSONSyntaxError``, but never in practice, because every text of this type is validated.
  public func elements() throws -> [JSONText]? {
    guard bytes.first == UInt8(ascii: "[") else { return nil }
    var scanner = JSONScanner(bytes[...])
    var elements: [JSONText] = []
    try scanner.forEachElement { elements.append(JSONText(part: try $0.value())) }
    return elements
  }

  /// Returns the members of a JSON object, in the order of the text.
  ///
  /// ```swift
  /// for member in try document.members() ?? [] { print(member.name, member.value) }
  /// ```
  ///
  /// - Returns: The members, or `nil` if the value is not an object.
  /// - Throws: ``JSONSyntaxError``, but never in practice, because every text of this type is validated.
  public func members() throws -> [Member]? {
    guard bytes.first == UInt8(ascii: "{") else { return nil }
    var scanner = JSONScanner(bytes[...])
    var members: [Member] = []
    try scanner.forEachMember { _, name, scanner in
      members.append(Member(name: String(decoding: name, as: UTF8.self), value: JSONText(part: try scanner.value())))
    }
    return members
  }

  /// A member of a JSON object.
  public struct Member: Sendable, Hashable {
    /// The name.
    public let name: String

    /// The value.
    public let value: JSONText
  }
}

extension JSONText: CustomStringConvertible {
  /// The text.
  public var description: String { String(decoding: bytes, as: UTF8.self) }
}

/// A codec that stores JSON text unchanged.
///
/// It reads the JSON that ``JSONCodec`` writes, and the other way round.
public struct JSONTextCodec: Codec {
  /// Creates the codec.
  public init() {}

  /// `json`.
  public var name: String { "json" }

  /// ``CodecFormat/json``.
  public var format: CodecFormat { .json }

  /// Appends the text.
  public func encode(_ value: JSONText, into bytes: inout [UInt8], context: ValueContext) {
    bytes.append(contentsOf: value.bytes)
  }

  /// Validates the text and returns a copy of it.
  ///
  /// - Throws: ``JSONSyntaxError``.
  public func decode(_ bytes: RawSpan, context: ValueContext) throws -> JSONText {
    try bytes.withUnsafeBytes { try JSONText($0) }
  }
}

extension Codec where Self == JSONTextCodec {
  /// A codec that stores JSON text unchanged; see ``JSONTextCodec``.
  ///
  /// ```swift
  /// let documents = try await SQLiteStore(path: "documents.sqlite", codec: .jsonText)
  /// ```
  public static var jsonText: JSONTextCodec { JSONTextCodec() }
}

/// An error that indicates where and why a text is not JSON.
public struct JSONSyntaxError: Error, Sendable, Hashable {
  /// The offset of the error in the text, in bytes.
  public let offset: Int

  /// The line of the error, starting from 1.
  public let line: Int

  /// The column of the error, in bytes and starting from 1.
  public let column: Int

  /// A text for people that says what is wrong, without any part of the JSON text.
  public let message: String

  /// Creates an error.
  ///
  /// - Parameters:
  ///   - message: A text for people that says what is wrong.
  ///   - offset: The offset of the error in the text, in bytes.
  ///   - text: The whole text.
  public init(_ message: String, at offset: Int, of text: some BidirectionalCollection<UInt8>) {
    self.offset = offset
    self.message = message
    let before = text.prefix(offset)
    let start = before.lastIndex(of: UInt8(ascii: "\n")).map { before.index(after: $0) } ?? before.startIndex
    line = 1 + before[..<start].count { $0 == UInt8(ascii: "\n") }
    column = 1 + before.distance(from: start, to: before.endIndex)
  }
}

extension JSONSyntaxError: CustomStringConvertible {
  /// The error as one line of text for people.
  public var description: String { "line \(line), column \(column): \(message)" }
}
