#if Compression
internal import CZlib

/// Compresses by raw deflate (RFC 1951, without any header), one piece of data after another.
///
/// Its memory is made once. A piece begins with a copy of the state that has the dictionary in it, which costs less than
/// to take the dictionary in again, or where there is no dictionary with a reset.
struct Deflater: ~Copyable, @unchecked Sendable {
  // Proof for @unchecked: it alone knows its streams and their memory, cannot be copied, and touches them in mutating
  // methods and `deinit` only, so whoever calls one has it to himself. A stream is not bound to a thread.

  /// The most that one piece may have, in bytes: what the library counts in 32 bits.
  static let maximumInputSize = Int(UInt32.max)

  /// The state that every piece begins with.
  private let primed: ZlibStream
  /// A copy of it, for one piece, where there is a dictionary.
  private let copy: ZlibStream?
  private let memory: StreamMemory

  /// Makes a compressor.
  ///
  /// - Parameters:
  ///   - level: From 0, no compression, to 9, the most.
  ///   - windowBits: How far back repetitions are looked for, as a power of two: from 9 to 15. A stream takes memory, and
  ///     time to copy, in proportion.
  ///   - memoryLevel: How much memory is spent on finding repetitions: from 1 to 9.
  ///   - dictionary: What repetitions are looked for in beside the data; the last bytes count where it is longer than
  ///     the window.
  /// - Throws: ``ZlibError`` where there is no memory or a parameter is outside its range.
  init(
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
      // Negative bits ask for deflate without a header.
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
      // Where the stream was not made this does nothing.
      _ = deflateEnd(stream)
      stream.deallocateInitialized()
      throw error
    }
    return stream
  }

  deinit {
    copy?.deallocateInitialized()
    // What it returns says whether there was unfinished data, which is nobody's loss.
    _ = deflateEnd(primed)
    primed.deallocateInitialized()
  }

  /// Compresses a piece of data into memory that is there.
  ///
  /// - Parameters:
  ///   - input: The data; at most `maximumInputSize` bytes.
  ///   - output: Where the compressed data goes; what does not fit is not compressed to its end.
  /// - Returns: How many bytes were written, or `nil` where they do not fit.
  /// - Throws: ``ZlibError`` where there is no memory.
  mutating func deflate(
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
      // Where the data fills the memory the library says that it has ended only when it is called again, with room.
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

  /// Compresses a piece of data behind what an array holds.
  ///
  /// - Parameters:
  ///   - input: The data; at most `maximumInputSize` bytes.
  ///   - bytes: Gets the compressed data.
  /// - Throws: ``ZlibError`` where there is no memory.
  mutating func deflate(_ input: UnsafeRawBufferPointer, appendingTo bytes: inout [UInt8]) throws(ZlibError) {
    let bound = Int(deflateBound(primed, UInt(input.count)))
    let compressed = try [UInt8](unsafeUninitializedCapacity: bound) { buffer, count throws(ZlibError) in
      guard let written = try deflate(input, into: UnsafeMutableRawBufferPointer(buffer)) else {
        throw ZlibError(code: Z_BUF_ERROR)
      }
      count = written
    }
    bytes.append(contentsOf: compressed)
  }
}
#endif
