#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

extension CBORReader {
  @usableFromInline
  mutating func readFloat(_ type: Any.Type) throws -> Double {
    if remainingCount > 8, next.load(as: UInt8.self) == 0xFB {
      next += 9
      return Double(bitPattern: UInt64(bigEndian: next.loadUnaligned(fromByteOffset: -8, as: UInt64.self)))
    }
    let (start, place) = (offset, next)
    if try readTag() == 4 {
      // As JSON has it: the nearest number to the digits.
      next = place
      let decimal = try Decimal(from: &self)
      guard let number = Double(decimal.description) else {
        throw corrupted("The number does not fit into \(type).", at: start)
      }
      return number
    }
    next = place
    let head = try readUntaggedHead(type)
    if let float = head.float { return float }
    // Others write whole numbers as integers.
    let number: Double?
    switch head.major {
    case .unsigned: number = Double(exactly: head.argument)
    case .negative: number = Double(exactly: Int128(-1) - Int128(head.argument))
    default: throw mismatch(type, head, at: start)
    }
    guard let number else { throw corrupted("The number does not fit into \(type).", at: start) }
    return number
  }
}

extension Double: CBORConvertible {
  /// Writes the number in the shortest form that keeps every bit.
  @inlinable @inline(__always)
  public func write(to writer: inout CBORWriter) {
    writer.putFloat(self)
  }

  /// Reads a floating-point number of any width, or an integer that is one exactly; a decimal fraction is rounded.
  ///
  /// - Throws: `DecodingError` where the item is none.
  @inlinable @inline(__always)
  public init(from reader: inout CBORReader) throws {
    self = try reader.readFloat(Double.self)
  }
}

extension Float: CBORConvertible {
  /// Writes the number in the shortest form that keeps every bit.
  @inlinable @inline(__always)
  public func write(to writer: inout CBORWriter) {
    writer.putFloat(self)
  }

  /// Reads a floating-point number of any width, or an integer that is one exactly; what a `Float` cannot hold exactly
  /// is rounded.
  ///
  /// - Throws: `DecodingError` where the item is none, or is too large.
  public init(from reader: inout CBORReader) throws {
    let start = reader.offset
    let number = try reader.readFloat(Float.self)
    if let single = Float(keepingBitsOf: number) {
      self = single
    } else {
      self = Float(number)
      if !isFinite, number.isFinite { throw reader.corrupted("The number does not fit into Float.", at: start) }
    }
  }
}

#if !((os(macOS) || targetEnvironment(macCatalyst)) && arch(x86_64))
extension Float16: CBORConvertible {
  /// Writes the number as 16 bits.
  public func write(to writer: inout CBORWriter) {
    writer.putFloat(Float(self))
  }

  /// Reads a floating-point number of any width, or an integer that is one exactly; what a `Float16` cannot hold exactly
  /// is rounded.
  ///
  /// - Throws: `DecodingError` where the item is none, or is too large.
  public init(from reader: inout CBORReader) throws {
    let start = reader.offset
    let number = try reader.readFloat(Float16.self)
    self = Float16(number)
    if !isFinite, number.isFinite { throw reader.corrupted("The number does not fit into Float16.", at: start) }
  }
}
#endif
