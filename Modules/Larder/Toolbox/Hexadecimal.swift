/// Conversion between bytes and hexadecimal digits, two for each byte.
///
/// ```swift
/// let text = Hexadecimal.text(of: key.bytes)
/// let bytes = Hexadecimal.bytes(of: text.utf8)
/// ```
public enum Hexadecimal {
  /// Returns the lower-case digits of a sequence of bytes, as text.
  ///
  /// - Parameter bytes: The bytes.
  public static func text(of bytes: some Sequence<UInt8>) -> String {
    String(decoding: digits(of: bytes), as: UTF8.self)
  }

  /// Returns the lower-case digits of a number, with leading zeros: two digits for each byte of its type.
  ///
  /// - Parameter number: The number.
  public static func text(of number: some FixedWidthInteger) -> String {
    withUnsafeBytes(of: number.bigEndian) { text(of: $0) }
  }

  /// Returns the lower-case digits of a sequence of bytes, in ASCII.
  ///
  /// - Parameter bytes: The bytes.
  public static func digits(of bytes: some Sequence<UInt8>) -> [UInt8] {
    let digits = Array("0123456789abcdef".utf8)
    return bytes.flatMap { [digits[Int($0 >> 4)], digits[Int($0 & 15)]] }
  }

  /// Returns the bytes for a sequence of digits, or `nil` if it does not consist of pairs of hexadecimal digits.
  ///
  /// - Parameter digits: The digits in ASCII, in upper or lower case.
  public static func bytes(of digits: some Collection<UInt8>) -> [UInt8]? {
    let values = digits.compactMap(value(of:))
    guard values.count == digits.count, values.count.isMultiple(of: 2) else { return nil }
    return stride(from: 0, to: values.count, by: 2).map { values[$0] << 4 | values[$0 + 1] }
  }

  /// Returns the number for two digits for each byte of its type, or `nil` if there are more, fewer or other digits.
  ///
  /// - Parameter digits: The digits in ASCII, in upper or lower case.
  public static func number<Number: FixedWidthInteger>(of digits: some Collection<UInt8>) -> Number? {
    guard digits.count == 2 * MemoryLayout<Number>.size else { return nil }
    return bytes(of: digits)?.reduce(0) { $0 << 8 | Number($1) }
  }

  private static func value(of digit: UInt8) -> UInt8? {
    switch digit {
    case UInt8(ascii: "0")...UInt8(ascii: "9"): digit - UInt8(ascii: "0")
    case UInt8(ascii: "a")...UInt8(ascii: "f"): digit - UInt8(ascii: "a") + 10
    case UInt8(ascii: "A")...UInt8(ascii: "F"): digit - UInt8(ascii: "A") + 10
    default: nil
    }
  }
}
