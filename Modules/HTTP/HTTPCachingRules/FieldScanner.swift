#if HTTPCache
import HTTPTypes

/// A cursor over the bytes of a field value, with the productions that the parsers share (RFC 9110, section 5.6).
///
/// Each method moves forward only, so every parser is linear in its input.
struct FieldScanner {
  /// The bytes of the value.
  let bytes: [UInt8]

  /// The index of the next byte.
  private(set) var position = 0

  init(_ bytes: [UInt8]) {
    self.bytes = bytes
  }

  /// The next byte, or `nil` at the end.
  var current: UInt8? { position < bytes.count ? bytes[position] : nil }

  /// Skips spaces and tabs.
  mutating func skipWhitespace() {
    while let byte = current, byte == 0x20 || byte == 0x09 { position += 1 }
  }

  /// Skips spaces, tabs and commas, and so the empty members of a list.
  mutating func skipToMember() {
    while let byte = current, byte == 0x20 || byte == 0x09 || byte == UInt8(ascii: ",") { position += 1 }
  }

  /// Skips one byte if it is the next one.
  mutating func skip(_ byte: UInt8) -> Bool {
    guard current == byte else { return false }
    position += 1
    return true
  }

  /// Reads a token, or returns `nil` if the next byte cannot start a token.
  mutating func token() -> ArraySlice<UInt8>? {
    let start = position
    while let byte = current, byte.isTokenCharacter { position += 1 }
    return start == position ? nil : bytes[start..<position]
  }

  /// Reads digits, or returns `nil` if the next byte is not a digit.
  ///
  /// A value above 2^53 becomes 2^53.
  mutating func number() -> Int64? {
    let start = position
    var value: Int64 = 0
    while let byte = current, byte.isDigit {
      value = min(value * 10 + Int64(byte &- UInt8(ascii: "0")), Int64(1) << 53)
      position += 1
    }
    return start == position ? nil : value
  }

  /// Reads a quoted string and removes its backslashes.
  ///
  /// Returns `nil` if the next byte starts none, or if it has no end; then the rest is skipped.
  mutating func quotedString() -> [UInt8]? {
    guard skip(UInt8(ascii: "\"")) else { return nil }
    var content: [UInt8] = []
    while let byte = current {
      position += 1
      if byte == UInt8(ascii: "\"") { return content }
      if byte == UInt8(ascii: "\\"), let escaped = current {
        content.append(escaped)
        position += 1
      } else {
        content.append(byte)
      }
    }
    return nil
  }

  /// Skips the rest of a member of a list, up to the next comma outside quotes.
  ///
  /// - Returns: A Boolean value that indicates whether only whitespace was skipped.
  mutating func skipMember() -> Bool {
    var isEmpty = true
    while let byte = current, byte != UInt8(ascii: ",") {
      if byte == UInt8(ascii: "\"") {
        _ = quotedString()
        isEmpty = false
      } else {
        if byte != 0x20 && byte != 0x09 { isEmpty = false }
        position += 1
      }
    }
    return isEmpty
  }
}

extension UInt8 {
  /// A Boolean value that indicates whether the byte is a digit.
  var isDigit: Bool { self >= 0x30 && self <= 0x39 }

  /// The letter in lower case, or the byte itself if it is no letter.
  var lowercased: UInt8 { self >= 0x41 && self <= 0x5A ? self | 0x20 : self }

  /// A Boolean value that indicates whether the byte can be in a token (RFC 9110, section 5.6.2).
  var isTokenCharacter: Bool {
    switch self {
    case 0x21, 0x23...0x27, 0x2A, 0x2B, 0x2D, 0x2E, 0x30...0x39, 0x41...0x5A, 0x5E...0x7A, 0x7C, 0x7E: true
    default: false
    }
  }
}

extension Collection<UInt8> {
  /// The bytes as text, letters in lower case.
  var lowercasedText: String { String(decoding: map(\.lowercased), as: UTF8.self) }
}

extension BidirectionalCollection<UInt8> {
  /// The bytes without spaces and tabs at both ends.
  var trimmed: SubSequence {
    var rest = self[...]
    while let byte = rest.first, byte == 0x20 || byte == 0x09 { rest = rest.dropFirst() }
    while let byte = rest.last, byte == 0x20 || byte == 0x09 { rest = rest.dropLast() }
    return rest
  }
}

extension HTTPField {
  /// The bytes of the value.
  var bytes: [UInt8] { withUnsafeBytesOfValue { Array($0) } }
}
#endif
