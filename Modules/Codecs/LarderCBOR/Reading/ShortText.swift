/// Makes strings of a few ASCII characters as the standard library lays them out, several times as fast as it makes them.
///
/// Of up to 15 bytes Swift keeps the characters in the string itself, and the number of them, with a mark, in its last
/// byte. Whether that is so is found out once, by comparison with strings that the library made; where it is not, this
/// makes none.
@usableFromInline
enum ShortText {
  /// The most characters that fit.
  static let maximumCount = 15

  /// Whether strings are laid out as is thought.
  @usableFromInline static let isPossible: Bool = (0...maximumCount).allSatisfy { count in
    let bytes = (0..<readableCount).map { $0 < count ? UInt8(ascii: "a") + UInt8($0) : 0xFF }
    let string = String(decoding: bytes[..<count], as: UTF8.self)
    guard MemoryLayout<String>.size == MemoryLayout<(UInt64, UInt64)>.size,
      let made = bytes.withUnsafeBytes({ bytes in bytes.baseAddress.flatMap { words($0, count: count) } })
    else { return false }
    return made == unsafeBitCast(string, to: (UInt64, UInt64).self)
  }

  /// How many bytes must be readable where the characters are.
  static let readableCount = 16

  /// Makes a string, where ``isPossible`` says so; none of characters that are not ASCII.
  ///
  /// - Parameters:
  ///   - bytes: The characters; ``readableCount`` bytes are readable there.
  ///   - count: How many characters there are, at most ``maximumCount``.
  @inline(__always)
  static func string(_ bytes: UnsafeRawPointer, count: Int) -> String? {
    guard let words = words(bytes, count: count) else { return nil }
    return unsafeBitCast(words, to: String.self)
  }

  /// Makes a string as ``string(_:count:)`` does, where no more bytes are readable than there are characters.
  @inline(__always)
  static func string(only bytes: UnsafeRawPointer, count: Int) -> String? {
    var low: UInt64 = 0
    var high: UInt64 = 0
    let bitCount = UInt64(truncatingIfNeeded: count) &* 8
    // The last ones overlap those before.
    if count >= 8 {
      low = UInt64(littleEndian: bytes.loadUnaligned(as: UInt64.self))
      let last = UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: count &- 8, as: UInt64.self))
      // A shift by 64 gives 0.
      high = last >> (128 &- bitCount)
    } else if count >= 4 {
      let last = UInt32(littleEndian: bytes.loadUnaligned(fromByteOffset: count &- 4, as: UInt32.self))
      low = UInt64(UInt32(littleEndian: bytes.loadUnaligned(as: UInt32.self))) | UInt64(last) &<< (bitCount &- 32)
    } else {
      for index in 0..<count {
        low |= UInt64(bytes.load(fromByteOffset: index, as: UInt8.self)) &<< (UInt64(truncatingIfNeeded: index) &* 8)
      }
    }
    return words(low, high, count: count).map { unsafeBitCast($0, to: String.self) }
  }

  @inline(__always)
  private static func words(_ bytes: UnsafeRawPointer, count: Int) -> (UInt64, UInt64)? {
    // A shift by 64 gives 0, and so a mask of all bits.
    let bitCount = UInt64(truncatingIfNeeded: count) &* 8
    let lowMask = (1 as UInt64) << bitCount &- 1
    let highMask = (1 as UInt64) << (bitCount > 64 ? bitCount &- 64 : 0) &- 1
    let low = UInt64(littleEndian: bytes.loadUnaligned(as: UInt64.self)) & lowMask
    let high = UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: 8, as: UInt64.self)) & highMask
    return words(low, high, count: count)
  }

  /// The words of a string: its bytes, in their order from the lowest, then zeros; none where not all are ASCII.
  @inline(__always)
  private static func words(_ low: UInt64, _ high: UInt64, count: Int) -> (UInt64, UInt64)? {
    guard (low | high) & 0x8080_8080_8080_8080 == 0 else { return nil }
    return (low, high | (0xE0 | UInt64(truncatingIfNeeded: count)) &<< 56)
  }
}
