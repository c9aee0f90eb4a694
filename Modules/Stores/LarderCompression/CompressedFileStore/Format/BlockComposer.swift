#if Compression
/// Makes the bytes of blocks.
final class BlockComposer: Sendable {
  /// One stream, made when something is compressed first: it takes more memory than a small store needs otherwise.
  private let streams: StreamPool<Deflater>

  /// Makes a composer.
  ///
  /// - Parameter level: How much work goes into compression, from 1 to 9.
  init(level: Int) {
    streams = StreamPool(count: 1) { () throws(ZlibError) in try Deflater(level: level) }
  }

  /// Makes a block.
  ///
  /// - Parameters:
  ///   - text: Its text; at most ``BlockFrame/maximumTextSize`` bytes.
  ///   - isContinuation: Whether the text goes on with a line that the block before has begun.
  ///   - isCompressed: Whether the text is compressed, if that makes it smaller; else it is stored, which costs no time.
  ///   - salt: The salt of the file.
  ///   - offset: Where in the file the block begins.
  /// - Throws: ``ZlibError`` if there is no memory.
  func block(
    _ text: [UInt8], isContinuation: Bool = false, isCompressed: Bool, salt: UInt64, at offset: Int64
  ) throws(ZlibError) -> [UInt8] {
    let data = isCompressed && !text.isEmpty ? try compressed(text) : BlockComposer.stored(text)
    return BlockComposer.block(of: data, text: text, isContinuation: isContinuation, salt: salt, at: offset)
  }

  /// Makes a block whose text is stored.
  static func storedBlock(_ text: [UInt8], salt: UInt64, at offset: Int64) -> [UInt8] {
    block(of: stored(text), text: text, isContinuation: false, salt: salt, at: offset)
  }

  private static func block(
    of data: [UInt8], text: [UInt8], isContinuation: Bool, salt: UInt64, at offset: Int64
  ) -> [UInt8] {
    var body = data
    body.append(littleEndian: text.withUnsafeBytes { CRC32.checksum(of: $0) })
    body.append(littleEndian: UInt32(truncatingIfNeeded: text.count))
    return BlockFrame.block(with: body, isContinuation: isContinuation, salt: salt, at: offset)
  }

  /// How many bytes a stored block has beside its text.
  static let storedOverhead = BlockFrame.headerSize + 5 + BlockFrame.trailerSize

  /// The data of a block as one stored deflate block (RFC 1951, section 3.2.4).
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
        // What would not shrink does not fit.
        let written = try streams.withStream { deflater throws(ZlibError) in
          try deflater.deflate(UnsafeRawBufferPointer(text), into: UnsafeMutableRawBufferPointer(buffer))
        }
        count = written ?? 0
      }
    }
    return bytes.isEmpty ? BlockComposer.stored(text) : bytes
  }
}
#endif
