import Foundation

extension Data: CBORConvertible {
  /// Writes a byte string.
  func write(to writer: inout CBORWriter) {
    withUnsafeBytes { writer.put(bytes: $0) }
  }

  /// Reads a byte string of definite or indefinite length.
  ///
  /// - Throws: `DecodingError` if the item is not a byte string.
  init(from reader: inout CBORReader) throws {
    let start = reader.offset
    let head = try reader.readUntaggedHead(Data.self)
    guard head.major == .bytes else { throw reader.mismatch(Data.self, head, at: start) }
    self = head.isIndefinite ? Data(try reader.readChunks(.bytes)) : Data(try reader.content(head))
  }
}

extension UUID: CBORConvertible {
  /// Writes a byte string of 16 bytes with tag 37.
  func write(to writer: inout CBORWriter) throws {
    try writer.checkDepth(1)
    writer.reserve(19)
    writer.putByte(0xD8)
    writer.putByte(37)
    writer.putByte(0x50)
    withUnsafeBytes(of: uuid) { bytes in
      writer.next.copyMemory(from: bytes.baseAddress.unsafelyUnwrapped, byteCount: 16)
    }
    writer.next += 16
    writer.itemCount &+= 1
  }

  /// Reads a byte string of 16 bytes, or text, which the `Codable` conformance of `UUID` writes.
  ///
  /// - Throws: `DecodingError` if the item is neither.
  init(from reader: inout CBORReader) throws {
    let (start, place) = (reader.offset, reader.next)
    let head = try reader.readUntaggedHead(UUID.self)
    if head.major == .text {
      reader.next = place
      guard let uuid = UUID(uuidString: try reader.readText()) else {
        throw reader.corrupted("the text is not a UUID", at: start)
      }
      self = uuid
      return
    }
    guard head.major == .bytes else { throw reader.mismatch(UUID.self, head, at: start) }
    guard !head.isIndefinite, head.argument == 16 else {
      throw reader.corrupted("a UUID must have 16 bytes", at: start)
    }
    self.init(uuid: try reader.content(head).loadUnaligned(as: uuid_t.self))
  }
}

extension URL: CBORConvertible {
  /// Writes the text of the URL with tag 32.
  ///
  /// A URL relative to another one becomes a map of `base` and `relative`.
  func write(to writer: inout CBORWriter) throws {
    if baseURL != nil { return try EncodingState.encode(self, with: &writer, inOwnForm: true) }
    try writer.put(tag: 32) { $0.put(text: absoluteString) }
  }

  /// Reads a URL.
  ///
  /// - Throws: `DecodingError` if the item is not a URL.
  init(from reader: inout CBORReader) throws {
    let start = reader.offset
    _ = try reader.readTag()
    if reader.isNextAMap {
      self = try DecodingState.decode(URL.self, with: &reader, inOwnForm: true)
      return
    }
    guard let url = URL(string: try reader.readText()) else {
      throw reader.corrupted("the text is not a URL", at: start)
    }
    self = url
  }
}

extension CBORReader {
  /// A Boolean value that indicates whether the next item is a map without a tag.
  var isNextAMap: Bool { next < end && next.load(as: UInt8.self) &>> 5 == 5 }

  /// A Boolean value that indicates whether the next item is an array without a tag.
  var isNextAnArray: Bool { next < end && next.load(as: UInt8.self) &>> 5 == 4 }
}

extension Decimal: CBORConvertible {
  /// Writes a decimal fraction (tag 4), an exponent of ten and an integer.
  ///
  /// NaN is written as a floating-point NaN.
  func write(to writer: inout CBORWriter) throws {
    guard !isNaN else { return writer.putFloat(Double.nan) }
    guard let digits = UInt128(significand.magnitude.description) else {
      throw writer.invalid("the significand of a decimal number has more than 128 bits")
    }
    try writer.put(tag: 4) { writer in
      let outerCount = try writer.openCollection(0x80, count: 2)
      writer.putInteger(Int64(exponent))
      let isNegative = sign == .minus && digits > 0
      try writer.putBignum(isNegative: isNegative, isNegative ? digits - 1 : digits)
      writer.closeCollection(outerCount: outerCount)
    }
  }

  /// Reads a decimal fraction, an integer, a floating-point number, or the map that the `Codable` conformance of
  /// `Decimal` writes.
  ///
  /// A floating-point number gives the digits that JSON would show.
  ///
  /// - Throws: `DecodingError` if the item is none of these, or does not fit.
  init(from reader: inout CBORReader) throws {
    let start = reader.offset
    let (exponent, digits): (Int, String)
    if try reader.isNextADecimalFraction() {
      (exponent, digits) = try reader.readDecimalFraction(Decimal.self)
    } else if reader.isNextASimpleValue {
      let binary = try reader.readFloat(Decimal.self)
      guard let value = binary.isNaN ? .nan : Decimal(string: binary.description), value.isNaN == binary.isNaN else {
        throw reader.corrupted("the number does not fit in Decimal", at: start)
      }
      self = value
      return
    } else if reader.isNextAMap {
      self = try DecodingState.decode(Decimal.self, with: &reader, inOwnForm: true)
      return
    } else {
      (exponent, digits) = (0, try reader.readDigits(Decimal.self))
    }
    // Foundation keeps exponents in eight bits. With the largest exponents and a significand that ends in zeros, it
    // returns NaN if the number is computed, but not if its text is parsed.
    guard (-128...127).contains(exponent), let value = Decimal(string: "\(digits)e\(exponent)"), !value.isNaN else {
      throw reader.corrupted("the number does not fit in Decimal", at: start)
    }
    self = value
  }
}

extension CBORReader {
  /// A Boolean value that indicates whether the next item is a floating-point number or another simple value.
  fileprivate var isNextASimpleValue: Bool { next < end && next.load(as: UInt8.self) &>> 5 == 7 }

  /// Skips the tags of a decimal fraction, and returns whether one is the next item.
  fileprivate mutating func isNextADecimalFraction() throws -> Bool {
    let start = next
    guard try readTag() == 4 else {
      next = start
      return false
    }
    return true
  }

  /// Reads the content of tag 4, an exponent of ten and an integer.
  mutating func readDecimalFraction(_ type: Any.Type) throws -> (exponent: Int, digits: String) {
    let start = offset
    guard try openArray() == 2 else { throw corrupted("a fraction must have an exponent and an integer", at: start) }
    let fraction = (try readInteger(Int.self), try readDigits(type))
    depth -= 1
    return fraction
  }

  /// Reads an integer of at most 128 bits as its decimal digits.
  fileprivate mutating func readDigits(_ type: Any.Type) throws -> String {
    let start = offset
    let (isNegative, argument) = try readBignum(type)
    guard isNegative else { return "\(argument)" }
    guard argument < .max else { throw corrupted("the number does not fit in \(type)", at: start) }
    return "-\(argument + 1)"
  }
}
