#if Compression
import Larder
import LarderFiles
import LarderCompression

/// The frame of a block: a gzip member (RFC 1952) in the form of BGZF (the SAM/BAM specification, section 4.1).
///
/// | Bytes | Content |
/// | --- | --- |
/// | 0–3 | `1f 8b 08 04` |
/// | 4–7 | the seal, in gzip's field for a time |
/// | 8 | 0 if the text begins with a ``BlockStart``; 1 if it continues a line that the previous block began |
/// | 9 | `ff` |
/// | 10–15 | `06 00 42 43 02 00`: the only extra subfield, `BC` |
/// | 16–17 | the size of the block, minus 1 |
/// | 18–… | the deflated text |
/// | last 8 | the CRC-32 and the size of the text |
///
/// All numbers are little-endian. The seal is the CRC-32C of 20 bytes: the salt of the file (8), the offset of the
/// block in the file (8), and the CRC-32C of the block from byte 8 on (4). The seal detects every changed bit of a
/// block. It also rejects bytes that were copied from elsewhere, or that were put into a value without knowledge of the
/// salt.
enum BlockFrame {
  /// The maximum size of a block, in bytes.
  static let maximumSize = 1 << 16

  /// The maximum size, in bytes, of the text that Larder writes to a block, which also fits uncompressed.
  static let maximumTextSize = 65_000

  /// The number of bytes before the deflated text.
  static let headerSize = 18

  /// The number of bytes after the deflated text.
  static let trailerSize = 8

  /// The first bytes of every block.
  static let magic: [UInt8] = [0x1F, 0x8B, 0x08, 0x04]

  private static let extraField: [UInt8] = [0xFF, 6, 0, UInt8(ascii: "B"), UInt8(ascii: "C"), 2, 0]

  /// The block that marks the end of a file in BGZF, which is the same in every file and has no seal.
  static let endOfFileMarker: [UInt8] = [
    0x1F, 0x8B, 0x08, 0x04, 0, 0, 0, 0, 0, 0xFF, 0x06, 0, 0x42, 0x43, 0x02, 0, 0x1B, 0, 0x03, 0, 0, 0, 0, 0, 0, 0, 0, 0,
  ]

  // MARK: Reading

  /// Returns the size that a block states, or `nil` if the bytes do not begin a block.
  ///
  /// - Parameter bytes: The bytes: at least ``headerSize`` of them, if the file has that many.
  static func size(at bytes: UnsafeRawBufferPointer) -> Int? {
    guard bytes.count >= headerSize, bytes.starts(with: magic), bytes[8] <= 1, bytes[9...].starts(with: extraField)
    else { return nil }
    let size = Int(bytes.littleEndian(at: 16, as: UInt16.self)) + 1
    return size > headerSize + trailerSize ? size : nil
  }

  /// Returns whether the text of a block continues a line that a previous block began.
  ///
  /// - Parameter block: The block, or at least its header.
  static func isContinuation(_ block: UnsafeRawBufferPointer) -> Bool { block[8] == 1 }

  /// Returns whether a block has the seal of a file.
  ///
  /// - Parameters:
  ///   - block: The whole block.
  ///   - salt: The salt of the file.
  ///   - offset: The offset of the block in the file.
  static func isSealed(_ block: UnsafeRawBufferPointer, salt: UInt64, at offset: Int64) -> Bool {
    block.littleEndian(at: 4, as: UInt32.self) == seal(of: block, salt: salt, at: offset)
  }

  private static func seal(of block: UnsafeRawBufferPointer, salt: UInt64, at offset: Int64) -> UInt32 {
    let content = CRC32C.checksum(of: UnsafeRawBufferPointer(rebasing: block[8...]))
    let words = (salt.littleEndian, offset.littleEndian, UInt64(content).littleEndian)
    let seal = withUnsafeBytes(of: words) { CRC32C.checksum(of: UnsafeRawBufferPointer(rebasing: $0.prefix(20))) }
    // Other programs write 0 there.
    return max(seal, 1)
  }

  // MARK: Writing

  /// Returns the bytes of a block.
  ///
  /// - Parameters:
  ///   - text: The text.
  ///   - data: The deflated text. With the header and the trailer, it must have at most ``maximumSize`` bytes.
  ///   - isContinuation: A Boolean value that indicates whether the text continues a line that the previous block
  ///     began.
  ///   - salt: The salt of the file.
  ///   - offset: The offset of the block in the file.
  static func block(
    of text: [UInt8], deflatedTo data: [UInt8], isContinuation: Bool, salt: UInt64, at offset: Int64
  ) -> [UInt8] {
    var bytes: [UInt8] = []
    let size = headerSize + data.count + trailerSize
    bytes.reserveCapacity(size)
    bytes += magic
    bytes += [0, 0, 0, 0, isContinuation ? 1 : 0]
    bytes += extraField
    bytes.append(littleEndian: UInt16(truncatingIfNeeded: size - 1))
    bytes += data
    bytes.append(littleEndian: text.withUnsafeBytes { ZlibCRC32.checksum(of: $0) })
    bytes.append(littleEndian: UInt32(truncatingIfNeeded: text.count))
    let checksum = bytes.withUnsafeBytes { seal(of: $0, salt: salt, at: offset) }
    withUnsafeBytes(of: checksum.littleEndian) { bytes.replaceSubrange(4..<8, with: $0) }
    return bytes
  }
}

/// A sound block of a file.
struct Block: Equatable, Sendable {
  /// The offset of the block in the file, and that of the next one.
  var offset: Int64
  var end: Int64
  /// A Boolean value that indicates whether the text continues a line that the previous block began.
  var isContinuation = false
  var text: [UInt8]
}

extension Block {
  /// Reads a block, or returns `nil` if the bytes do not begin with one that has the seal of the file.
  ///
  /// - Parameters:
  ///   - bytes: The block, and possibly bytes after it.
  ///   - salt: The salt of the file.
  ///   - offset: The offset of the block in the file.
  ///   - inflaters: The streams that decompress the text.
  /// - Throws: ``ZlibError`` if there is not enough memory.
  init?(_ bytes: UnsafeRawBufferPointer, salt: UInt64, at offset: Int64, by inflaters: StreamPool<ZlibInflater>) throws
  {
    guard let size = BlockFrame.size(at: bytes), size <= bytes.count else { return nil }
    let block = UnsafeRawBufferPointer(rebasing: bytes[..<size])
    guard BlockFrame.isSealed(block, salt: salt, at: offset) else { return nil }
    guard let text = try BlockText.text(of: block, by: inflaters) else { return nil }
    self.text = text
    self.offset = offset
    end = offset + Int64(size)
    isContinuation = BlockFrame.isContinuation(block)
  }
}

/// A composer of blocks that compresses their texts.
final class BlockComposer: Sendable {
  /// A single stream, created on first use, because its memory exceeds everything else that a small store needs.
  private let streams: StreamPool<ZlibDeflater>

  /// Creates a composer.
  ///
  /// - Parameter level: The compression level, from 1 to 9.
  init(level: Int) {
    streams = StreamPool(count: 1) { () throws(ZlibError) in try ZlibDeflater(level: level) }
  }

  /// Returns the bytes of a block.
  ///
  /// - Parameters:
  ///   - text: The text, at most ``BlockFrame/maximumTextSize`` bytes.
  ///   - isContinuation: A Boolean value that indicates whether the text continues a line that the previous block
  ///     began. Defaults to `false`.
  ///   - isCompressed: A Boolean value that indicates whether to compress the text, if that makes it smaller. Otherwise
  ///     it is stored. This takes no time.
  ///   - salt: The salt of the file.
  ///   - offset: The offset of the block in the file.
  /// - Throws: ``ZlibError`` if there is not enough memory.
  func block(
    _ text: [UInt8], isContinuation: Bool = false, isCompressed: Bool, salt: UInt64, at offset: Int64
  ) throws(ZlibError) -> [UInt8] {
    let data = isCompressed && !text.isEmpty ? try compressed(text) : BlockComposer.stored(text)
    return BlockFrame.block(of: text, deflatedTo: data, isContinuation: isContinuation, salt: salt, at: offset)
  }

  /// Returns the bytes of a block whose text is stored uncompressed.
  static func storedBlock(_ text: [UInt8], salt: UInt64, at offset: Int64) -> [UInt8] {
    BlockFrame.block(of: text, deflatedTo: stored(text), isContinuation: false, salt: salt, at: offset)
  }

  /// The number of bytes that a stored block has in addition to its text.
  static let storedOverhead = BlockFrame.headerSize + 5 + BlockFrame.trailerSize

  /// Returns the text as one stored deflate block (RFC 1951, section 3.2.4).
  private static func stored(_ text: [UInt8]) -> [UInt8] {
    var bytes: [UInt8] = [1]
    bytes.reserveCapacity(text.count + 16)
    bytes.append(littleEndian: UInt16(truncatingIfNeeded: text.count))
    bytes.append(littleEndian: ~UInt16(truncatingIfNeeded: text.count))
    bytes += text
    return bytes
  }

  private func compressed(_ text: [UInt8]) throws(ZlibError) -> [UInt8] {
    let bytes = try text.withUnsafeBufferPointer { text throws(ZlibError) in
      try [UInt8](unsafeUninitializedCapacity: text.count) { buffer, count throws(ZlibError) in
        // Text that would not shrink does not fit.
        let written = try streams.withStream { deflater throws(ZlibError) in
          try deflater.deflate(UnsafeRawBufferPointer(text), into: UnsafeMutableRawBufferPointer(buffer))
        }
        count = written ?? 0
      }
    }
    return bytes.isEmpty ? BlockComposer.stored(text) : bytes
  }
}

/// The text of a block.
enum BlockText {
  /// The maximum size of the text of a block, in bytes, as BGZF defines it.
  static let maximumSize = 1 << 16

  /// The first byte of a deflate stream that is one stored block (RFC 1951, section 3.2.4), and the size of its header.
  private static let storedMark: UInt8 = 1
  private static let storedHeaderSize = 5

  /// Returns the text of a block whose bytes are known to be sound, or `nil` if it has no valid text.
  ///
  /// - Parameters:
  ///   - block: The whole block.
  ///   - inflaters: The streams that decompress the text.
  /// - Throws: ``ZlibError`` if there is not enough memory.
  static func text(
    of block: UnsafeRawBufferPointer, by inflaters: StreamPool<ZlibInflater>
  ) throws(ZlibError) -> [UInt8]? {
    guard block.count >= BlockFrame.headerSize + BlockFrame.trailerSize else { return nil }
    let size = Int(block.littleEndian(at: block.count - 4, as: UInt32.self))
    guard size <= maximumSize else { return nil }
    let data = UnsafeRawBufferPointer(rebasing: block[BlockFrame.headerSize..<(block.count - BlockFrame.trailerSize)])
    if data.count == storedHeaderSize + size, data[0] == storedMark,
      Int(data.littleEndian(at: 1, as: UInt16.self)) == size,
      Int(~data.littleEndian(at: 3, as: UInt16.self)) == size
    {
      return Array(data[storedHeaderSize...])
    }
    do throws(ZlibError) {
      return try inflaters.withStream { inflater throws(ZlibError) in try inflater.inflate(data, size: size) }
    } catch {
      guard error == .damaged else { throw error }
      return nil
    }
  }

  /// Returns the text of bytes that may be a block, after checking gzip's checksum, or `nil` if they are damaged.
  ///
  /// - Parameters:
  ///   - block: The bytes that may be a block.
  ///   - inflaters: The streams that decompress the text.
  /// - Throws: ``ZlibError`` if there is not enough memory.
  static func checkedText(
    of block: UnsafeRawBufferPointer, by inflaters: StreamPool<ZlibInflater>
  ) throws(ZlibError) -> [UInt8]? {
    guard let text = try text(of: block, by: inflaters) else { return nil }
    let checksum = block.littleEndian(at: block.count - BlockFrame.trailerSize, as: UInt32.self)
    return text.withUnsafeBytes { ZlibCRC32.checksum(of: $0) } == checksum ? text : nil
  }
}

extension UnsafeRawBufferPointer {
  /// Returns the number at an offset, all of whose bytes must be in the buffer.
  func littleEndian<Number: FixedWidthInteger & BitwiseCopyable>(at offset: Int, as type: Number.Type) -> Number {
    Number(littleEndian: loadUnaligned(fromByteOffset: offset, as: type))
  }
}
#endif
