#if Compression
import Larder

/// The text of a block.
enum BlockText {
  /// The most bytes that the text of a block may have, as BGZF has it.
  static let maximumSize = 1 << 16

  /// What a deflate stream begins with that is one stored block (RFC 1951, section 3.2.4), and how long that is.
  private static let storedMark: UInt8 = 1
  private static let storedHeaderSize = 5

  /// What is no text of a block, though the block is framed as one.
  struct Damage: Error {}

  /// Returns the text of a block whose bytes are known to be those that were written.
  ///
  /// - Parameters:
  ///   - block: All of the block.
  ///   - headerSize: The bytes before its body; defaults to those of the present format.
  ///   - inflaters: Decompress it.
  /// - Throws: ``Damage``; ``ZlibError`` where there is not enough memory.
  static func text(
    of block: UnsafeRawBufferPointer, headerSize: Int = BlockFrame.headerSize, by inflaters: StreamPool<Inflater>
  ) throws -> [UInt8] {
    guard block.count >= headerSize + BlockFrame.trailerSize else { throw Damage() }
    let size = Int(block.littleEndian(at: block.count - 4, as: UInt32.self))
    guard size <= maximumSize else { throw Damage() }
    let data = UnsafeRawBufferPointer(rebasing: block[headerSize..<(block.count - BlockFrame.trailerSize)])
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
      throw Damage()
    }
  }

  /// Returns the text of a block of which nothing is known, by the checksum of gzip.
  ///
  /// - Parameters:
  ///   - block: All that could be the block.
  ///   - headerSize: The bytes before its body; defaults to those of the present format.
  ///   - inflaters: Decompress it.
  /// - Throws: ``Damage``; ``ZlibError`` where there is not enough memory.
  static func checkedText(
    of block: UnsafeRawBufferPointer, headerSize: Int = BlockFrame.headerSize, by inflaters: StreamPool<Inflater>
  ) throws -> [UInt8] {
    let text = try text(of: block, headerSize: headerSize, by: inflaters)
    let checksum = block.littleEndian(at: block.count - BlockFrame.trailerSize, as: UInt32.self)
    guard text.withUnsafeBytes({ CRC32.checksum(of: $0) }) == checksum else { throw Damage() }
    return text
  }
}
#endif
