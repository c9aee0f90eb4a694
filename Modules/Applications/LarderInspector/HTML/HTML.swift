#if Inspector
/// Markup that is safe to send to a browser.
///
/// Only literals are markup. Every text that is interpolated is escaped, so that stored keys and values cannot become
/// markup. Attribute values must be in double quotes.
///
/// For example, the markup `"<td title=\"\(key)\">\(value)</td>"` is safe whatever the key and the value are.
struct HTML: Sendable, Hashable, ExpressibleByStringInterpolation {
  /// The markup.
  private(set) var text: String

  init(stringLiteral value: StaticString) {
    text = "\(value)"
  }

  init(stringInterpolation: StringInterpolation) {
    text = stringInterpolation.text
  }

  static func += (markup: inout HTML, other: HTML) {
    markup.text += other.text
  }

  struct StringInterpolation: StringInterpolationProtocol {
    fileprivate var text = ""

    init(literalCapacity: Int, interpolationCount: Int) {
      text.reserveCapacity(literalCapacity + 16 * interpolationCount)
    }

    mutating func appendLiteral(_ literal: StaticString) {
      text += "\(literal)"
    }

    mutating func appendInterpolation(_ content: String) {
      HTML.append(escaped: content, to: &text)
    }

    mutating func appendInterpolation(_ number: some BinaryInteger) {
      text += "\(number)"
    }

    mutating func appendInterpolation(_ markup: HTML?) {
      if let markup { text += markup.text }
    }

    mutating func appendInterpolation(_ parts: [HTML]) {
      for part in parts { text += part.text }
    }
  }

  /// Appends text in which no character ends an element or an attribute, or changes how others are shown.
  private static func append(escaped content: String, to text: inout String) {
    for scalar in content.unicodeScalars {
      switch scalar {
      case "&": text += "&amp;"
      case "<": text += "&lt;"
      case ">": text += "&gt;"
      case "\"": text += "&quot;"
      case "'": text += "&#39;"
      case _ where scalar.isInvisible: text += "\\u{\(String(scalar.value, radix: 16, uppercase: true))}"
      default: text.unicodeScalars.append(scalar)
      }
    }
  }
}

extension Unicode.Scalar {
  /// A Boolean value that indicates whether a page would not show the character, or would show others in another order
  /// because of it.
  var isInvisible: Bool {
    switch value {
    case 0x09, 0x0A: false
    case 0..<0x20, 0x7F..<0xA0: true
    // Marks of the direction, separators of lines, joiners and other characters without a width.
    case 0xAD, 0x061C, 0x180E, 0x200B...0x200F, 0x2028...0x202E, 0x2060...0x206F, 0xFEFF, 0xFFF9...0xFFFB: true
    case 0xE0000...0xE007F: true
    default: value & 0xFFFE == 0xFFFE || (0xFDD0...0xFDEF).contains(value)
    }
  }
}
#endif
