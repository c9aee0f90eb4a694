/// Says why a text is not JSON, and where.
public struct JSONSyntaxError: Error, Sendable, Hashable {
  /// How many bytes of the text stand before the place.
  public let offset: Int

  /// The line of the place; the first line is 1.
  public let line: Int

  /// The column of the place, in bytes; the first column is 1.
  public let column: Int

  /// What is wrong there, for people to read, without anything of the text.
  public let message: String

  /// Describes what is wrong with a text.
  ///
  /// - Parameters:
  ///   - message: What is wrong.
  ///   - offset: How many bytes stand before the place.
  ///   - text: All of the text.
  package init(_ message: String, at offset: Int, of text: some Collection<UInt8>) {
    self.offset = offset
    self.message = message
    var line = 1
    var column = 1
    for byte in text.prefix(offset) {
      if byte == UInt8(ascii: "\n") {
        line += 1
        column = 1
      } else {
        column += 1
      }
    }
    self.line = line
    self.column = column
  }
}

extension JSONSyntaxError: CustomStringConvertible {
  /// The error for people to read, in one line.
  public var description: String { "line \(line), column \(column): \(message)" }
}
