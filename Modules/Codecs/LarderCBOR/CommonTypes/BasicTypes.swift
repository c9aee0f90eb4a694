import Foundation

extension Bool: CBORConvertible {
  /// Writes `true` or `false`.
  @inline(__always)
  func write(to writer: inout CBORWriter) {
    writer.put(self)
  }

  /// Reads `true` or `false`.
  ///
  /// - Throws: `DecodingError` if the item is neither.
  @inline(__always)
  init(from reader: inout CBORReader) throws {
    self = try reader.readBool()
  }
}

extension CBORReader {
  mutating func readBool() throws -> Bool {
    let start = offset
    let head = try readUntaggedHead(Bool.self)
    guard head.major == .simple, head.information == 20 || head.information == 21 else {
      throw mismatch(Bool.self, head, at: start)
    }
    return head.information == 21
  }
}

extension CBORWriter {
  @inline(__always)
  mutating func put(_ value: Bool) {
    reserve(1)
    putByte(value ? 0xF5 : 0xF4)
    itemCount &+= 1
  }
  mutating func put(text: String) {
    let isDone: Void? = text.utf8.withContiguousStorageIfAvailable { putString(0x60, UnsafeRawBufferPointer($0)) }
    if isDone == nil {
      // A bridged string, which is copied first.
      var copy = text
      copy.withUTF8 { putString(0x60, UnsafeRawBufferPointer($0)) }
    }
    itemCount &+= 1
  }

  /// Writes a key of a map.
  @inline(__always)
  mutating func put(key: String) {
    put(text: key)
    let count = key.utf8.count
    noteKey(next - count, count: count)
  }
}

extension String: CBORConvertible {
  /// Writes the text as UTF-8.
  @inline(__always)
  func write(to writer: inout CBORWriter) {
    writer.put(text: self)
  }

  /// Reads text of definite or indefinite length.
  ///
  /// - Throws: `DecodingError` if the item is not text, or is not UTF-8.
  @inline(__always)
  init(from reader: inout CBORReader) throws {
    self = try reader.readText()
  }
}

extension CBORReader {
  mutating func readFloat(_ type: Any.Type) throws -> Double {
    if remainingCount > 8, next.load(as: UInt8.self) == 0xFB {
      next += 9
      return Double(bitPattern: UInt64(bigEndian: next.loadUnaligned(fromByteOffset: -8, as: UInt64.self)))
    }
    let (start, place) = (offset, next)
    if try readTag() == 4 {
      // Rounded like JSON numbers, to the floating-point number nearest to the decimal digits.
      next = place
      let decimal = try Decimal(from: &self)
      guard let number = Double(decimal.description) else {
        throw corrupted("the number does not fit in \(type)", at: start)
      }
      return number
    }
    next = place
    let head = try readUntaggedHead(type)
    if let float = head.float { return float }
    // Other encoders write whole numbers as integers.
    let number: Double?
    switch head.major {
    case .unsigned: number = Double(exactly: head.argument)
    case .negative: number = Double(exactly: Int128(-1) - Int128(head.argument))
    default: throw mismatch(type, head, at: start)
    }
    guard let number else { throw corrupted("the number does not fit in \(type)", at: start) }
    return number
  }
}

extension Double: CBORConvertible {
  /// Writes the number in the shortest form that keeps every bit.
  @inline(__always)
  func write(to writer: inout CBORWriter) {
    writer.putFloat(self)
  }

  /// Reads a floating-point number of any width, or an integer that a `Double` represents exactly.
  ///
  /// A decimal fraction is rounded.
  ///
  /// - Throws: `DecodingError` if the item is not such a number.
  @inline(__always)
  init(from reader: inout CBORReader) throws {
    self = try reader.readFloat(Double.self)
  }
}

extension Float: CBORConvertible {
  /// Writes the number in the shortest form that keeps every bit.
  @inline(__always)
  func write(to writer: inout CBORWriter) {
    writer.putFloat(self)
  }

  /// Reads a floating-point number of any width, or an integer that a `Double` represents exactly, and rounds it to a
  /// `Float`.
  ///
  /// - Throws: `DecodingError` if the item is not such a number, or is too large.
  init(from reader: inout CBORReader) throws {
    let start = reader.offset
    let number = try reader.readFloat(Float.self)
    if let single = Float(keepingBitsOf: number) {
      self = single
    } else {
      self = Float(number)
      if !isFinite, number.isFinite { throw reader.corrupted("the number does not fit in Float", at: start) }
    }
  }
}

#if !((os(macOS) || targetEnvironment(macCatalyst)) && arch(x86_64))
extension Float16: CBORConvertible {
  /// Writes the number in 16 bits.
  func write(to writer: inout CBORWriter) {
    // Not as a `Float`, because that conversion changes a signaling NaN.
    writer.putFloat(HalfPrecision(bitPattern: bitPattern))
  }

  /// Reads a floating-point number of any width, or an integer that a `Double` represents exactly, and rounds it to a
  /// `Float16`.
  ///
  /// - Throws: `DecodingError` if the item is not such a number, or is too large.
  init(from reader: inout CBORReader) throws {
    let start = reader.offset
    let number = try reader.readFloat(Float16.self)
    if let single = Float(keepingBitsOf: number), let half = HalfPrecision(keepingBitsOf: single) {
      self.init(bitPattern: half.bitPattern)
      return
    }
    self.init(number)
    if !isFinite, number.isFinite { throw reader.corrupted("the number does not fit in Float16", at: start) }
  }
}
#endif
