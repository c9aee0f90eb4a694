/// A JSON value as text, checked but not decoded: every digit of a number stays as it was written.
///
/// It is for programs that hand JSON on, like the command-line tool. Only the white space between the parts is dropped.
/// Two texts are equal where they are the same byte for byte.
public struct JSONText: Sendable, Hashable {
  /// The text, in UTF-8, in one line.
  public let bytes: [UInt8]

  /// Takes the text of one value.
  ///
  /// - Parameter text: JSON (RFC 8259) in UTF-8; white space around it is fine.
  /// - Throws: ``JSONSyntaxError`` where it is not one JSON value, or nests more than 512 deep.
  public init(_ text: some Sequence<UInt8>) throws {
    var scanner = JSONScanner(Array(text)[...])
    let value = try scanner.value()
    try scanner.expectEnd()
    self.init(checked: value)
  }

  /// Takes the text of one value.
  ///
  /// - Parameter text: JSON (RFC 8259); white space around it is fine.
  /// - Throws: ``JSONSyntaxError`` where it is not one JSON value, or nests more than 512 deep.
  public init(_ text: String) throws {
    try self.init(text.utf8)
  }

  /// Makes a JSON string of text.
  ///
  /// - Parameter text: The content of the string, without quotes or escapes.
  public init(string text: String) {
    var bytes: [UInt8] = []
    JSONWriting.append(string: text.utf8, to: &bytes)
    self.bytes = bytes
  }

  private init(checked text: ArraySlice<UInt8>) {
    var bytes: [UInt8] = []
    bytes.reserveCapacity(text.count)
    JSONWriting.append(compacted: text, to: &bytes)
    self.bytes = bytes
  }

  /// The content of a JSON string.
  ///
  /// - Returns: The content, or `nil` where the value is of another kind.
  /// - Throws: ``JSONSyntaxError``; never for text that this type has checked, which is all there is.
  public func string() throws -> String? {
    guard bytes.first == UInt8(ascii: "\"") else { return nil }
    var scanner = JSONScanner(bytes[...])
    return String(decoding: try scanner.string(), as: UTF8.self)
  }

  /// The members of a JSON object, in the order in which they stand.
  ///
  /// - Returns: The members, or `nil` where the value is of another kind.
  /// - Throws: ``JSONSyntaxError``; never for text that this type has checked, which is all there is.
  public func members() throws -> [Member]? {
    guard bytes.first == UInt8(ascii: "{") else { return nil }
    var scanner = JSONScanner(bytes[...])
    var members: [Member] = []
    try scanner.forEachMember { _, name, scanner in
      members.append(Member(name: String(decoding: name, as: UTF8.self), value: JSONText(checked: try scanner.value())))
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
