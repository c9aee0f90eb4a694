import Foundation

extension CBORReader {
  mutating func readText() throws -> String {
    let start = next
    if end - start > ShortText.readableCount, makesShortText {
      let first = start.load(as: UInt8.self)
      if first & 0xF0 == 0x60, let short = ShortText.string(start + 1, count: Int(first & 0x0F)) {
        next = start + 1 + Int(first & 0x0F)
        return short
      }
    }
    return try readLongText()
  }

  // Separate from the function above, so that the compiler reserves few registers there.
  @inline(never)
  private mutating func readLongText() throws -> String {
    let start = next
    if start < end {
      let first = start.load(as: UInt8.self)
      if first >= 0x60, first < 0x78, case let count = Int(first &- 0x60), count < end - start {
        next += count + 1
        // Common at the end of a value, where fewer than `readableCount` bytes are readable.
        if count <= ShortText.maximumCount, makesShortText, let short = ShortText.string(only: start + 1, count: count)
        {
          return short
        }
        return try string(UnsafeRawBufferPointer(start: start + 1, count: count), at: start - base)
      }
      if first == 0x78, end - start > 2, case let count = Int(start.load(fromByteOffset: 1, as: UInt8.self)),
        count <= end - start - 2
      {
        next += count + 2
        return try string(UnsafeRawBufferPointer(start: start + 2, count: count), at: start - base)
      }
    }
    return try readOtherText()
  }

  @inline(never)
  private mutating func readOtherText() throws -> String {
    let start = offset
    let tag = try readTag()
    let head = try readHead()
    if tag == 37, head.major == .bytes, !head.isIndefinite, head.argument == 16 {
      // The text form that the `Codable` conformance of `UUID` reads.
      return UUID(uuid: try content(head).loadUnaligned(as: uuid_t.self)).uuidString
    }
    guard head.major == .text else { throw mismatch(String.self, tag: tag, head, at: start) }
    if !head.isIndefinite { return try string(try content(head), at: start) }
    // Each chunk has been checked, and no chunk may end within a character.
    return String(decoding: try readChunks(.text), as: UTF8.self)
  }

  @inline(__always)
  mutating func string(_ bytes: UnsafeRawBufferPointer, at start: Int) throws -> String {
    let string = String(decoding: bytes, as: UTF8.self)
    // Invalid UTF-8 was replaced. ASCII is always valid.
    if !isASCII(bytes), !string.utf8.elementsEqual(bytes) { throw corrupted("the text is not valid UTF-8", at: start) }
    return string
  }
}

/// Creates strings of a few ASCII characters from their memory layout, several times as fast as the standard library
/// does.
///
/// Swift stores up to 15 bytes in the string itself, and their count, with a flag, in its last byte. This layout is
/// verified once, by comparison with strings that the library created. If it differs, this type creates no strings.
enum ShortText {
  /// The maximum number of characters.
  static let maximumCount = 15

  /// A Boolean value that indicates whether strings have the expected layout.
  static let isPossible: Bool = (0...maximumCount).allSatisfy { count in
    let bytes = (0..<readableCount).map { $0 < count ? UInt8(ascii: "a") + UInt8($0) : 0xFF }
    let string = String(decoding: bytes[..<count], as: UTF8.self)
    guard MemoryLayout<String>.size == MemoryLayout<(UInt64, UInt64)>.size,
      let made = bytes.withUnsafeBytes({ bytes in bytes.baseAddress.flatMap { words($0, count: count) } })
    else { return false }
    return made == unsafeBitCast(string, to: (UInt64, UInt64).self)
  }

  /// The number of bytes that must be readable at the address of the characters.
  static let readableCount = 16

  /// Creates a string, or returns `nil` if not all characters are ASCII.
  ///
  /// ``isPossible`` must be `true`.
  ///
  /// - Parameters:
  ///   - bytes: The address of the characters. At least ``readableCount`` bytes must be readable there.
  ///   - count: The number of characters, at most ``maximumCount``.
  @inline(__always)
  static func string(_ bytes: UnsafeRawPointer, count: Int) -> String? {
    guard let words = words(bytes, count: count) else { return nil }
    return unsafeBitCast(words, to: String.self)
  }

  /// Creates a string as ``string(_:count:)`` does, but reads no bytes after the characters.
  @inline(__always)
  static func string(only bytes: UnsafeRawPointer, count: Int) -> String? {
    var low: UInt64 = 0
    var high: UInt64 = 0
    let bitCount = UInt64(truncatingIfNeeded: count) &* 8
    // The last load overlaps the first.
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
    // A shift by 64 gives 0, and therefore a mask of all bits.
    let bitCount = UInt64(truncatingIfNeeded: count) &* 8
    let lowMask = (1 as UInt64) << bitCount &- 1
    let highMask = (1 as UInt64) << (bitCount > 64 ? bitCount &- 64 : 0) &- 1
    let low = UInt64(littleEndian: bytes.loadUnaligned(as: UInt64.self)) & lowMask
    let high = UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: 8, as: UInt64.self)) & highMask
    return words(low, high, count: count)
  }

  /// Returns the words of a string, or `nil` if not all bytes are ASCII.
  ///
  /// The bytes start at the lowest and are padded with zeros.
  @inline(__always)
  private static func words(_ low: UInt64, _ high: UInt64, count: Int) -> (UInt64, UInt64)? {
    guard (low | high) & 0x8080_8080_8080_8080 == 0 else { return nil }
    return (low, high | (0xE0 | UInt64(truncatingIfNeeded: count)) &<< 56)
  }
}
