import Larder

/// Formats CBOR in diagnostic notation (RFC 8949, section 8).
enum CBORDiagnostics {
  /// Returns the notation of one item.
  ///
  /// Malformed bytes end the text with a note.
  static func text(of bytes: UnsafeRawBufferPointer) -> String {
    var reader = CBORReader(bytes)
    reader.findsPaths = false
    var text = ""
    do {
      try append(&reader, to: &text)
    } catch {
      text += " / malformed CBOR /"
    }
    return text
  }

  /// Returns the text of a key in a path: the string of a text key, or the diagnostic notation of any other key.
  static func key(_ bytes: UnsafeRawBufferPointer) -> String {
    var reader = CBORReader(bytes)
    reader.findsPaths = false
    do {
      return try reader.readText()
    } catch {
      return text(of: bytes)
    }
  }

  private static func append(_ reader: inout CBORReader, to text: inout String) throws {
    let head = try reader.readHead()
    switch head.major {
    case .unsigned: text += "\(head.argument)"
    case .negative: text += "\(-1 - Int128(head.argument))"
    case .bytes, .text:
      guard head.isIndefinite else { return appendString(head.major, try reader.content(head), to: &text) }
      // A string without chunks has a notation of its own, because no chunk shows its kind.
      if try reader.readBreak() { return text += head.major == .bytes ? "''_" : "\"\"_" }
      text += "(_"
      var separator = " "
      repeat {
        text += separator
        separator = ", "
        let chunk = try reader.readHead()
        appendString(head.major, try reader.content(chunk), to: &text)
      } while try !reader.readBreak()
      text += ")"
    case .array:
      try appendElements(head, "[", "]", &reader, to: &text) { try append(&$0, to: &$1) }
    case .map:
      try appendElements(head, "{", "}", &reader, to: &text) { reader, text in
        try append(&reader, to: &text)
        text += ": "
        try append(&reader, to: &text)
      }
    case .tag:
      if let number = try reader.bignum(tag: head.argument) {
        text += number
        return
      }
      try reader.descend()
      text += "\(head.argument)("
      try append(&reader, to: &text)
      text += ")"
      reader.depth -= 1
    case .simple:
      if let float = head.float { text += self.text(of: float) } else { text += simple(head) }
    }
  }

  private static func appendElements(
    _ head: ItemHead, _ open: String, _ close: String, _ reader: inout CBORReader, to text: inout String,
    _ append: (inout CBORReader, inout String) throws -> Void
  ) throws {
    try reader.descend()
    text += open
    var remaining = head.isIndefinite ? -1 : Int(clamping: head.argument)
    if head.isIndefinite { text += "_ " }
    var isFirst = true
    while try reader.hasElement(&remaining) {
      if !isFirst { text += ", " }
      isFirst = false
      try append(&reader, &text)
    }
    text += close
    reader.depth -= 1
  }

  private static func appendString(_ major: ItemHead.Major, _ content: UnsafeRawBufferPointer, to text: inout String) {
    if major == .bytes {
      text += "h'\(Hexadecimal.text(of: content))'"
    } else {
      var json: [UInt8] = []
      JSONWriting.append(string: content, to: &json)
      text += String(decoding: json, as: UTF8.self)
    }
  }

  /// Returns the name of a simple value.
  static func simple(_ head: ItemHead) -> String {
    switch head.argument {
    case 20: "false"
    case 21: "true"
    case 22: "null"
    case 23: "undefined"
    default: "simple(\(head.argument))"
    }
  }

  /// Returns a number as JSON writes it, with a point or an exponent, or the word for a number that is not finite.
  static func text(of number: Double) -> String {
    if number.isNaN { return "NaN" }
    if number.isInfinite { return number < 0 ? "-Infinity" : "Infinity" }
    return number.description
  }
}

extension CBORReader {
  /// Returns the digits of a bignum of at most 128 bits, if its tag has been read and its bytes follow.
  mutating func bignum(tag: UInt64) throws -> String? {
    guard tag == 2 || tag == 3, next < end, (0x49...0x50).contains(next.load(as: UInt8.self)) else { return nil }
    let start = next
    let bytes = try content(try readHead())
    let argument = bytes.reduce(0 as UInt128) { $0 << 8 | UInt128($1) }
    if bytes.first != 0 {
      if tag == 2 { return "\(argument)" }
      // The smallest value is -1 - UInt128.max.
      if argument < .max { return "-\(argument + 1)" }
    }
    next = start
    return nil
  }
}
