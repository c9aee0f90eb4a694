/// The heads of CBOR data items (RFC 8949, section 3), with definite lengths in their shortest form, for codecs that put
/// bytes of another codec into an item.
///
/// ```swift
/// func byteString(_ bytes: [UInt8]) -> [UInt8] {
///   var item: [UInt8] = []
///   CBORHead.append(CBORHead.byteString, bytes.count, to: &item)
///   return item + bytes
/// }
/// ```
public enum CBORHead {
  /// The major type of unsigned integers, in the upper three bits of a head.
  public static var unsigned: UInt8 { 0x00 }

  /// The major type of byte strings, in the upper three bits of a head.
  public static var byteString: UInt8 { 0x40 }

  /// The major type of text strings, in the upper three bits of a head.
  public static var textString: UInt8 { 0x60 }

  /// The item `null`.
  public static var null: UInt8 { 0xF6 }

  /// The maximum size of a head, in bytes.
  public static var maximumSize: Int { 9 }

  /// Returns the size of a head, in bytes.
  ///
  /// - Parameter argument: The length of a string, or an unsigned integer. It must not be negative.
  public static func size(of argument: Int) -> Int {
    switch argument {
    case ..<24: 1
    case ...0xFF: 2
    case ...0xFFFF: 3
    case ...0xFFFF_FFFF: 5
    default: 9
    }
  }

  /// Appends a head.
  ///
  /// - Parameters:
  ///   - majorType: The major type.
  ///   - argument: The length of a string, or an unsigned integer. It must not be negative.
  ///   - bytes: The bytes.
  public static func append(_ majorType: UInt8, _ argument: Int, to bytes: inout [UInt8]) {
    let number = UInt64(argument)
    func append(_ information: UInt8, _ argument: some FixedWidthInteger) {
      bytes.append(majorType | information)
      withUnsafeBytes(of: argument.bigEndian) { bytes.append(contentsOf: $0) }
    }
    switch number {
    case ..<24: bytes.append(majorType | UInt8(number))
    case ...0xFF: append(24, UInt8(number))
    case ...0xFFFF: append(25, UInt16(number))
    case ...0xFFFF_FFFF: append(26, UInt32(number))
    default: append(27, number)
    }
  }

  /// Reads a head of a major type, and moves the offset after it.
  ///
  /// - Parameters:
  ///   - majorType: The major type.
  ///   - bytes: The bytes.
  ///   - offset: The offset of the head. It stays if there is no such head.
  /// - Returns: The number that the head states, which may be a length that exceeds the number of bytes; `nil` for any
  ///   other head, or a head that is truncated or not in its shortest form.
  public static func read(_ majorType: UInt8, in bytes: UnsafeRawBufferPointer, at offset: inout Int) -> Int? {
    guard offset < bytes.count, bytes[offset] & 0xE0 == majorType else { return nil }
    let information = bytes[offset] & 0x1F
    guard information >= 24 else {
      offset += 1
      return Int(information)
    }
    guard information <= 27 else { return nil }
    let size = 1 << Int(information - 24)
    guard bytes.count - offset > size else { return nil }
    let argument = bytes[offset + 1..<offset + 1 + size].reduce(0 as UInt64) { $0 << 8 | UInt64($1) }
    let smallest: UInt64 = information == 24 ? 24 : 1 << (4 * UInt64(size))
    guard argument >= smallest, let number = Int(exactly: argument) else { return nil }
    offset += 1 + size
    return number
  }
}
