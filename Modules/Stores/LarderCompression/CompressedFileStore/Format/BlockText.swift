#if Compression
import Larder

/// The text of a block, checked.
enum BlockText {
  /// The most bytes that the text of a block may have, as BGZF has it.
  static let maximumSize = 1 << 16

  /// What cannot be told from the header and its checksums, or does not fit them.
  struct Damage: Error {}

  /// The text of a block whose header was read.
  ///
  /// - Parameters:
  ///   - parsed: The header.
  ///   - bytes: All of the block.
  ///   - inflaters: Decompress it.
  /// - Throws: ``Damage``.
  static func text(
    _ parsed: BlockHeader.Parsed, of bytes: UnsafeRawBufferPointer, by inflaters: StreamPool<Inflater>
  ) throws(Damage) -> [UInt8] {
    guard bytes.count == parsed.blockSize else { throw Damage() }
    let body = UnsafeRawBufferPointer(rebasing: bytes[parsed.size...])
    // This covers the compressed bytes, and with them the text: that need not be looked at, too.
    guard CRC32C.checksum(of: body) == parsed.bodyChecksum else { throw Damage() }
    return try inflate(body, by: inflaters)
  }

  /// The text of a block whose header is damaged, by the checksum of gzip alone.
  ///
  /// - Parameters:
  ///   - bytes: All that could be the block.
  ///   - inflaters: Decompress it.
  /// - Throws: ``Damage``.
  static func text(withoutHeader bytes: UnsafeRawBufferPointer, by inflaters: StreamPool<Inflater>) throws(Damage)
    -> [UInt8]
  {
    guard bytes.count <= BlockHeader.maximumBlockSize, bytes.count >= BlockHeader.lengthEnd else { throw Damage() }
    // The length of the header stands there twice.
    let lengths = [
      12 + Int(bytes.littleEndian(at: 10, as: UInt16.self)),
      BlockHeader.lengthEnd + Int(bytes.littleEndian(at: 20, as: UInt16.self)),
    ]
    for length in lengths where length + BlockHeader.trailerSize <= bytes.count {
      let body = UnsafeRawBufferPointer(rebasing: bytes[length...])
      do {
        let text = try inflate(body, by: inflaters)
        let checksum = body.littleEndian(at: body.count - BlockHeader.trailerSize, as: UInt32.self)
        if text.withUnsafeBytes({ CRC32.checksum(of: $0) }) == checksum { return text }
      } catch {
        // The other length may be the right one.
        continue
      }
    }
    throw Damage()
  }

  private static func inflate(
    _ body: UnsafeRawBufferPointer, by inflaters: StreamPool<Inflater>
  ) throws(Damage) -> [UInt8] {
    let size = Int(body.littleEndian(at: body.count - 4, as: UInt32.self))
    guard size <= maximumSize else { throw Damage() }
    let data = UnsafeRawBufferPointer(rebasing: body.dropLast(BlockHeader.trailerSize))
    do {
      return try inflaters.withStream { inflater throws(ZlibError) in try inflater.inflate(data, size: size) }
    } catch {
      throw Damage()
    }
  }
}
#endif
