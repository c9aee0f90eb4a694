#if Compression
import Larder

/// The frame of a block: a gzip member (RFC 1952) as BGZF has it (the SAM/BAM specification, section 4.1).
///
/// | Bytes | What stands there |
/// | --- | --- |
/// | 0–3 | `1f 8b 08 04` |
/// | 4–7 | the seal, in the field of gzip for a time |
/// | 8 | 0: the text begins with a ``BlockStart``; 1: it goes on with the line that the block before has begun |
/// | 9 | `ff` |
/// | 10–15 | `06 00 42 43 02 00`: the only extra subfield, `BC` |
/// | 16–17 | the size of the block, less 1 |
/// | 18–… | the deflated text |
/// | last 8 | the CRC-32 and the size of the text |
///
/// All numbers are little-endian. The seal is the CRC-32C of 20 bytes: the salt of the file (8), the offset of the block
/// in the file (8), and the CRC-32C of the block from byte 8 on (4). So no bit of a block can change unnoticed, and
/// bytes that were written elsewhere, or into a value by someone who does not know the salt, are no block.
enum BlockFrame {
  /// The most bytes that a block may have.
  static let maximumSize = 1 << 16

  /// The most bytes that the text of a block that Larder writes has: stored, it must fit, too.
  static let maximumTextSize = 65_000

  /// The bytes before the deflated text.
  static let headerSize = 18

  /// The bytes behind the deflated text.
  static let trailerSize = 8

  /// The bytes that begin every block.
  static let magic: [UInt8] = [0x1F, 0x8B, 0x08, 0x04]

  private static let extraField: [UInt8] = [0xFF, 6, 0, UInt8(ascii: "B"), UInt8(ascii: "C"), 2, 0]

  /// The block of BGZF that says that a file ends; it is the same in every file, so it has no seal.
  static let endOfFileMarker: [UInt8] = [
    0x1F, 0x8B, 0x08, 0x04, 0, 0, 0, 0, 0, 0xFF, 0x06, 0, 0x42, 0x43, 0x02, 0, 0x1B, 0, 0x03, 0, 0, 0, 0, 0, 0, 0, 0, 0,
  ]

  // MARK: Reading

  /// Returns how long a block says that it is, or `nil` if the bytes do not begin a block.
  ///
  /// - Parameter bytes: At least ``headerSize`` bytes, if there are so many.
  static func size(at bytes: UnsafeRawBufferPointer) -> Int? {
    guard bytes.count >= headerSize, bytes.starts(with: magic), bytes[8] <= 1, bytes[9...].starts(with: extraField)
    else { return nil }
    let size = Int(bytes.littleEndian(at: 16, as: UInt16.self)) + 1
    return size > headerSize + trailerSize ? size : nil
  }

  /// Returns whether the text of a block goes on with a line that a block before has begun.
  ///
  /// - Parameter block: The block; at least its header.
  static func isContinuation(_ block: UnsafeRawBufferPointer) -> Bool { block[8] == 1 }

  /// Returns whether a block has the seal of a file.
  ///
  /// - Parameters:
  ///   - block: All of the block.
  ///   - salt: The salt of the file.
  ///   - offset: Where in the file the block begins.
  static func isSealed(_ block: UnsafeRawBufferPointer, salt: UInt64, at offset: Int64) -> Bool {
    block.littleEndian(at: 4, as: UInt32.self) == seal(of: block, salt: salt, at: offset)
  }

  private static func seal(of block: UnsafeRawBufferPointer, salt: UInt64, at offset: Int64) -> UInt32 {
    let content = CRC32C.checksum(of: UnsafeRawBufferPointer(rebasing: block[8...]))
    let words = (salt.littleEndian, offset.littleEndian, UInt64(content).littleEndian)
    let seal = withUnsafeBytes(of: words) { CRC32C.checksum(of: UnsafeRawBufferPointer(rebasing: $0.prefix(20))) }
    // 0 is what other programs write there.
    return max(seal, 1)
  }

  // MARK: Writing

  /// Returns the bytes of a block.
  ///
  /// - Parameters:
  ///   - body: The deflated text and its trailer; with the header at most ``maximumSize`` bytes.
  ///   - isContinuation: Whether the text goes on with a line that the block before has begun.
  ///   - salt: The salt of the file.
  ///   - offset: Where in the file the block begins.
  static func block(with body: [UInt8], isContinuation: Bool, salt: UInt64, at offset: Int64) -> [UInt8] {
    var bytes: [UInt8] = []
    bytes.reserveCapacity(headerSize + body.count)
    bytes += magic
    bytes += [0, 0, 0, 0, isContinuation ? 1 : 0]
    bytes += extraField
    bytes.append(littleEndian: UInt16(truncatingIfNeeded: headerSize + body.count - 1))
    bytes += body
    let checksum = bytes.withUnsafeBytes { seal(of: $0, salt: salt, at: offset) }
    withUnsafeBytes(of: checksum.littleEndian) { bytes.replaceSubrange(4..<8, with: $0) }
    return bytes
  }
}
#endif
