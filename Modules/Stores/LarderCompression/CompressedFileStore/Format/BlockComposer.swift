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

  /// The data of a block as one stored deflate block (RFC 1951, section 3.2.4), or as an empty one.
  private static func stored(_ text: [UInt8]) -> [UInt8] {
    guard !text.isEmpty else { return [3, 0] }
    var bytes: [UInt8] = [1]
    bytes.append(littleEndian: UInt16(truncatingIfNeeded: text.count))
    bytes.append(littleEndian: ~UInt16(truncatingIfNeeded: text.count))
    return bytes + text
  }

  /// Makes a block.
  ///
  /// - Parameters:
  ///   - header: What its header says; the notes are added.
  ///   - piece: Its text and notes, no more than ``BlockCutter/maximumContent``.
  ///   - isCompressed: Whether the text is compressed, where it shrinks; else it is stored, which costs no time.
  /// - Throws: ``ZlibError`` where there is no memory.
  func block(_ header: BlockHeader, piece: BlockCutter.Piece, isCompressed: Bool) throws(ZlibError) -> [UInt8] {
    var header = header
    for note in piece.notes { note.append(to: &header.notes) }
    if piece.beginsWithinLine { header.flags.insert(.beginsWithinLine) }
    var body = isCompressed && !piece.text.isEmpty ? try compressed(piece.text) : BlockComposer.stored(piece.text)
    body.append(littleEndian: piece.text.withUnsafeBytes { CRC32.checksum(of: $0) })
    body.append(littleEndian: UInt32(truncatingIfNeeded: piece.text.count))
    return header.block(with: body)
  }

  /// Makes the first block of a file.
  ///
  /// - Parameters:
  ///   - codecName: The name of the codec of the values.
  ///   - batch: The last batch that the base holds.
  ///   - hasBase: Whether a base follows.
  /// - Throws: ``ZlibError`` where there is no memory.
  func head(codecName: String, batch: UInt64, hasBase: Bool) throws(ZlibError) -> [UInt8] {
    let header = BlockHeader(
      kind: .head, flags: hasBase ? [] : .isLast, batch: batch, durableBatch: batch, number: 0, notes: [])
    let piece = BlockCutter.Piece(text: StoreLine.head(codecName: codecName), notes: [.codec(name: codecName)])
    return try block(header, piece: piece, isCompressed: false)
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
