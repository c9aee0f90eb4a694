#if Compression
import Larder

/// The streams that a ``CompressedCodec`` and its copies work with, whatever the type of their values.
final class CompressionStreams: Sendable {
  /// Values of at most so many bytes get a stream of just the window that they need: it takes less time to prepare.
  private static let smallSize = 2048

  /// How far before the end of its window deflate finds repetitions: `MIN_LOOKAHEAD` of zlib's `deflate.h`.
  private static let windowMargin = 262

  /// The dictionaries that values are compressed with.
  let dictionaries: CompressionDictionaries

  private let current: CompressionDictionary?
  private let smallDeflaters: StreamPool<Deflater>
  private let largeDeflaters: StreamPool<Deflater>
  private let inflaters: StreamPool<Inflater>

  /// Makes streams, when they are needed.
  ///
  /// - Parameters:
  ///   - level: From 1 to 9.
  ///   - dictionaries: The current one compresses, all of them decompress.
  init(level: Int, dictionaries: CompressionDictionaries) {
    self.dictionaries = dictionaries
    let current = dictionaries.current
    self.current = current
    let dictionary = current?.bytes ?? []
    let smallWindowBits = Self.windowBits(for: dictionary.count + Self.smallSize)
    smallDeflaters = StreamPool { () throws(ZlibError) in
      try Deflater(
        level: level, windowBits: smallWindowBits, memoryLevel: smallWindowBits - 8, dictionary: dictionary.span.bytes)
    }
    largeDeflaters = StreamPool { () throws(ZlibError) in
      try Deflater(level: level, dictionary: dictionary.span.bytes)
    }
    inflaters = StreamPool { () throws(ZlibError) in try Inflater() }
  }

  /// The smallest window from whose end everything is in reach, as a power of two; from 10 to 15.
  static func windowBits(for size: Int) -> Int {
    (10...15).first { size + windowMargin <= 1 << $0 } ?? 15
  }

  /// Compresses a value in place, unless that makes it no smaller.
  ///
  /// - Parameter bytes: The mark of a value that is stored as it is, and the value. Unless the result is 0 they are
  ///   replaced by a header and the compressed value, which are shorter.
  /// - Returns: How many bytes at the end are of no use any more.
  /// - Throws: ``ZlibError`` where there is no memory.
  func compress(_ bytes: UnsafeMutableRawBufferPointer) throws -> Int {
    let value = UnsafeRawBufferPointer(rebasing: bytes[1...])
    let pool = value.count <= Self.smallSize ? smallDeflaters : largeDeflaters
    return try withUnsafeTemporaryAllocation(byteCount: value.count, alignment: 1) { content in
      let contentSize = try pool.withStream { (stream) throws(ZlibError) in try stream.deflate(value, into: content) }
      guard let contentSize else { return 0 }
      let checksum = CRC32.checksum(of: value, continuing: current?.checksum ?? 0)
      let header = CompressedValueHeader(dictionaryID: current?.id, size: value.count, checksum: checksum)
        .bytes(contentSize: contentSize)
      guard header.count + contentSize < bytes.count else { return 0 }
      bytes.copyBytes(from: header)
      UnsafeMutableRawBufferPointer(rebasing: bytes[header.count...])
        .copyMemory(from: UnsafeRawBufferPointer(rebasing: content[..<contentSize]))
      return bytes.count - header.count - contentSize
    }
  }

  /// Decompresses a value.
  ///
  /// - Parameters:
  ///   - content: The compressed value.
  ///   - header: What stands before it.
  ///   - value: Memory of the size that the header says. It is filled, unless this throws.
  /// - Throws: ``MissingDictionaryError``; ``CompressedFormatError`` or `ChecksumError` where the bytes are damaged;
  ///   ``ZlibError`` where there is no memory.
  func decompress(
    _ content: UnsafeRawBufferPointer, header: CompressedValueHeader, into value: UnsafeMutableRawBufferPointer
  ) throws {
    var dictionary: CompressionDictionary?
    if let id = header.dictionaryID {
      dictionary = dictionaries[id]
      if dictionary == nil { throw MissingDictionaryError(id: id, availableIDs: dictionaries.all.map(\.id)) }
    }
    do throws(ZlibError) {
      try inflaters.withStream { (stream) throws(ZlibError) in
        if let dictionary {
          try stream.inflate(content, into: value, dictionary: dictionary.bytes.span.bytes)
        } else {
          try stream.inflate(content, into: value)
        }
      }
    } catch {
      throw error == .damaged ? CompressedFormatError("the compressed bytes are damaged") : error
    }
    let checksum = CRC32.checksum(of: UnsafeRawBufferPointer(value), continuing: dictionary?.checksum ?? 0)
    guard checksum == header.checksum else { throw ChecksumError(byteCount: value.count) }
  }
}
#endif
