#if Compression
import CZlib

/// A compressor that produces raw deflate (RFC 1951, without a header), one piece of data after another.
///
/// Its memory is allocated once. With a dictionary, each piece begins with a copy of a state that already contains the
/// dictionary. This costs less than loading the dictionary again. Without one, each piece begins with a reset.
///
/// ```swift
/// var deflater = try ZlibDeflater(level: 9)
/// var output = [UInt8](repeating: 0, count: input.count)
/// let size = try input.withUnsafeBytes { input in
///   try output.withUnsafeMutableBytes { try deflater.deflate(input, into: $0) }
/// }
/// ```
public struct ZlibDeflater: ~Copyable, @unchecked Sendable {
  // Proof for @unchecked: the streams and their memory are private to this type, which cannot be copied and accesses
  // them in mutating methods and `deinit` only, so every access is exclusive. A stream is not bound to a thread.

  /// The maximum size of one piece, in bytes: the library counts them in 32 bits.
  static let maximumInputSize = Int(UInt32.max)

  /// The state that every piece begins with.
  private let primed: ZlibStream
  /// A copy of that state for the current piece, if there is a dictionary.
  private let copy: ZlibStream?
  private let memory: StreamMemory

  /// Creates a compressor.
  ///
  /// - Parameters:
  ///   - level: The compression level, from 0 (none) to 9 (smallest). Defaults to 6.
  ///   - windowBits: The size of the window in which repetitions are found, as a power of two from 9 to 15. Defaults to
  ///     15. The memory of a stream, and the time to copy it, grow in proportion.
  ///   - memoryLevel: The amount of memory for finding repetitions, from 1 to 9. Defaults to 8.
  ///   - dictionary: Bytes in which repetitions are found in addition to the data. If they are longer than the window,
  ///     the last ones count. Defaults to no dictionary.
  /// - Throws: ``ZlibError`` if there is not enough memory or a parameter is out of range.
  public init(
    level: Int = 6, windowBits: Int = 15, memoryLevel: Int = 8, dictionary: borrowing RawSpan = RawSpan()
  ) throws(ZlibError) {
    let memory = StreamMemory()
    primed = try Self.primedStream(
      in: memory, level: level, windowBits: windowBits, memoryLevel: memoryLevel, dictionary: dictionary)
    copy = dictionary.isEmpty ? nil : .allocateZeroed()
    self.memory = memory
  }

  private static func primedStream(
    in memory: StreamMemory, level: Int, windowBits: Int, memoryLevel: Int, dictionary: borrowing RawSpan
  ) throws(ZlibError) -> ZlibStream {
    let stream = ZlibStream.allocateZeroed()
    memory.serve(stream)
    do {
      // A negative number of bits selects deflate without a header.
      try ZlibError.check(
        deflateInit2_(
          stream, Int32(clamping: level), Z_DEFLATED, -Int32(clamping: windowBits), Int32(clamping: memoryLevel),
          Z_DEFAULT_STRATEGY, ZLIB_VERSION, Int32(MemoryLayout<z_stream>.size)))
      if !dictionary.isEmpty {
        let code = dictionary.withUnsafeBytes { bytes in
          deflateSetDictionary(
            stream, bytes.baseAddress?.assumingMemoryBound(to: UInt8.self), UInt32(clamping: bytes.count))
        }
        try ZlibError.check(code)
      }
    } catch {
      // A no-op if the stream was not created.
      _ = deflateEnd(stream)
      stream.deallocateInitialized()
      throw error
    }
    return stream
  }

  deinit {
    copy?.deallocateInitialized()
    // The result only says whether there was unfinished data, which does not matter here.
    _ = deflateEnd(primed)
    primed.deallocateInitialized()
  }

  /// Compresses a piece of data into existing memory.
  ///
  /// - Parameters:
  ///   - input: The data, at most `maximumInputSize` bytes.
  ///   - output: The memory for the compressed data. Compression stops when it is full.
  /// - Returns: The number of bytes written, or `nil` if they do not fit.
  /// - Throws: ``ZlibError`` if there is not enough memory.
  public mutating func deflate(
    _ input: UnsafeRawBufferPointer, into output: UnsafeMutableRawBufferPointer
  ) throws(ZlibError) -> Int? {
    guard input.count <= Self.maximumInputSize else { throw ZlibError(code: Z_BUF_ERROR) }
    let room = UnsafeMutableRawBufferPointer(rebasing: output.prefix(Self.maximumInputSize))
    guard !room.isEmpty else { return nil }
    let stream: ZlibStream
    if let copy {
      try ZlibError.check(deflateCopy(copy, primed))
      stream = copy
    } else {
      try ZlibError.check(deflateReset(primed))
      stream = primed
    }
    stream.use(input, room)
    var code = CZlib.deflate(stream, Z_FINISH)
    let written = room.count - Int(stream.pointee.avail_out)
    if code == Z_OK, written == room.count {
      // If the data fills the memory exactly, the library reports the end only when it is called again with more room.
      var spare: UInt8 = 0
      code = withUnsafeMutableBytes(of: &spare) { spare in
        stream.pointee.next_out = spare.baseAddress?.assumingMemoryBound(to: UInt8.self)
        stream.pointee.avail_out = 1
        let code = CZlib.deflate(stream, Z_FINISH)
        return stream.pointee.avail_out == 1 ? code : Z_BUF_ERROR
      }
    }
    stream.forgetBuffers()
    if copy != nil { _ = deflateEnd(stream) }
    switch code {
    case Z_STREAM_END: return written
    case Z_OK, Z_BUF_ERROR: return nil
    default: throw ZlibError(code: code)
    }
  }
}
#endif
