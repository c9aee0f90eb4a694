import Larder

/// The form in which `get` and `list` print JSON.
package enum JSONStyle: Equatable {
  /// One line, byte for byte as in a pipe.
  case plain
  /// Indented lines with colors, for people at a terminal.
  case terminal

  /// Chooses the form for an output.
  ///
  /// - Parameters:
  ///   - isTerminal: A Boolean value that indicates whether the output is a terminal.
  ///   - environment: The variables of the environment. `NO_COLOR` and a terminal without capabilities lead to plain lines.
  package init(isTerminal: Bool, environment: [String: String]) {
    let hasColors = environment["NO_COLOR", default: ""].isEmpty && environment["TERM"] != "dumb"
    self = isTerminal && hasColors ? .terminal : .plain
  }

  /// Appends JSON in this form.
  ///
  /// - Parameters:
  ///   - line: The JSON in one line.
  ///   - bytes: The destination, without the end of the last line.
  package func append(_ line: [UInt8], to bytes: inout [UInt8]) {
    guard self == .terminal, let json = try? JSONText(line) else {
      bytes += line
      return
    }
    json.forEachPart { part, text in
      guard let color = Self.color(of: part) else {
        bytes += text
        return
      }
      bytes.append(contentsOf: "\u{1B}[\(color)m".utf8)
      bytes.append(contentsOf: Self.visible(String(decoding: text, as: UTF8.self)).utf8)
      bytes.append(contentsOf: "\u{1B}[0m".utf8)
    }
  }

  private static func color(of part: JSONText.Part) -> String? {
    switch part {
    case .name: "34;1"
    case .string: "32"
    case .number, .literal: "33"
    case .punctuation, .whitespace: nil
    }
  }

  /// Returns a string of JSON in which the characters that control a terminal or the direction of text are escaped.
  private static func visible(_ text: String) -> String {
    var result = ""
    for scalar in text.unicodeScalars {
      switch scalar.value {
      case 0x7F...0x9F, 0x200E, 0x200F, 0x2028...0x202E, 0x2066...0x2069:
        result += "\\u" + Hexadecimal.text(of: UInt16(scalar.value))
      default: result.unicodeScalars.append(scalar)
      }
    }
    return result
  }
}

extension ByteOutput {
  /// Adds a line of JSON, which is indented and colored at a terminal.
  ///
  /// - Parameter append: Appends the JSON in one line, without its end, to the buffer that it receives.
  /// - Throws: ``BrokenOutput`` if the buffer is full and cannot be written.
  package func writeJSON(_ append: (inout [UInt8]) -> Void) throws(BrokenOutput) {
    guard style == .terminal else { return try writeLine(append) }
    var line: [UInt8] = []
    append(&line)
    try writeLine { style.append(line, to: &$0) }
  }
}
