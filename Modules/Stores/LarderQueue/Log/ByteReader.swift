import Larder
import LarderFiles

/// A reader of numbers and bytes that returns `nil` at the end of the bytes.
struct ByteReader {
  private var rest: ArraySlice<UInt8>

  init(_ bytes: ArraySlice<UInt8>) {
    rest = bytes
  }

  var isAtEnd: Bool { rest.isEmpty }

  /// The index of the next byte in the underlying array.
  var position: Int { rest.startIndex }

  mutating func read<Number: FixedWidthInteger>(_: Number.Type) -> Number? {
    let size = Number.bitWidth / 8
    guard rest.count >= size else { return nil }
    let number = rest.withUnsafeBytes { Number(littleEndian: $0.loadUnaligned(as: Number.self)) }
    rest = rest.dropFirst(size)
    return number
  }

  mutating func read(count: Int) -> ArraySlice<UInt8>? {
    guard rest.count >= count else { return nil }
    defer { rest = rest.dropFirst(count) }
    return rest.prefix(count)
  }

  /// Reads a variable-length number with seven bits per byte, lowest bits first; `nil` also if it has more than 64
  /// bits.
  mutating func readVariable() -> UInt64? {
    var number: UInt64 = 0
    for shift in stride(from: UInt64(0), to: 64, by: 7) {
      guard let byte = rest.popFirst() else { return nil }
      let bits = UInt64(byte & 0x7F)
      guard shift < 63 || bits <= 1 else { return nil }
      number |= bits << shift
      if byte & 0x80 == 0 { return number }
    }
    return nil
  }

  /// Reads a variable-length number that fits into a type.
  mutating func readVariable<Number: FixedWidthInteger>(as _: Number.Type) -> Number? {
    readVariable().flatMap { Number(exactly: $0) }
  }

  /// Reads a variable-length number as a length, and then that many bytes.
  mutating func readBytes(upTo limit: Int) -> ArraySlice<UInt8>? {
    guard let length = readVariable(as: Int.self), length <= limit else { return nil }
    return read(count: length)
  }
}

extension [UInt8] {
  /// Replaces bytes with those of a number in little-endian order.
  mutating func replace(at offset: Int, littleEndian number: some FixedWidthInteger) {
    Swift.withUnsafeBytes(of: number.littleEndian) { replaceSubrange(offset..<offset + $0.count, with: $0) }
  }

  /// Appends the variable-length length of a key, and the key.
  mutating func append(key: StoreKey) {
    append(variable: UInt64(key.count))
    key.withUnsafeBytes { append(contentsOf: $0) }
  }
}
