#if Compression
import CZlib

/// A decompressor of raw deflate (RFC 1951, without a header), one piece of data after another.
///
/// Its memory is allocated once. It never writes beyond the memory that it is given, so the declared size bounds the
/// growth of a small piece.
///
/// ```swift
/// var inflater = try ZlibInflater()
/// let text = try compressed.withUnsafeBytes { try inflater.inflate($0, size: 4096) }
/// ```
public struct ZlibInflater: ~Copyable, @unchecked Sendable {
  // Proof for @unchecked: the stream is private to this type, which cannot be copied and accesses it in mutating
  // methods and `deinit` only, so every access is exclusive. A stream is not bound to a thread.

  /// The maximum number of bytes that one byte of deflate can expand to.
  ///
  /// A repetition of 258 bytes takes at least two bits (RFC 1951). A declared size beyond this limit is refused without
  /// allocating memory.
  static let maximumExpansion = 1032

  private let stream: ZlibStream

  /// Creates a decompressor.
  ///
  /// - Throws: ``ZlibError`` if there is not enough memory.
  public init() throws(ZlibError) {
    let stream = ZlibStream.allocateZeroed()
    do {
      // A negative number of bits selects deflate without a header. The widest window reads data of every window size.
      try ZlibError.check(inflateInit2_(stream, -15, ZLIB_VERSION, Int32(MemoryLayout<z_stream>.size)))
    } catch {
      stream.deallocateInitialized()
      throw error
    }
    self.stream = stream
  }

  deinit {
    _ = inflateEnd(stream)
    stream.deallocateInitialized()
  }

  /// Decompresses a piece into memory of exactly its size.
  ///
  /// - Parameters:
  ///   - input: All of the compressed data and nothing else, at most `UInt32.max` bytes.
  ///   - output: The memory for the data, at most `UInt32.max` bytes. It is filled, unless this method throws.
  ///   - dictionary: The dictionary that the data was compressed with. Defaults to no dictionary.
  /// - Throws: ``ZlibError``. It is ``ZlibError/damaged`` if the input is not a deflate stream, has another size, or is
  ///   followed by other bytes.
  public mutating func inflate(
    _ input: UnsafeRawBufferPointer, into output: UnsafeMutableRawBufferPointer,
    dictionary: borrowing RawSpan = RawSpan()
  ) throws(ZlibError) {
    guard input.count <= UInt32.max, output.count <= UInt32.max else { throw .damaged }
    try ZlibError.check(inflateReset(stream))
    if !dictionary.isEmpty {
      let code = dictionary.withUnsafeBytes { bytes in
        inflateSetDictionary(
          stream, bytes.baseAddress?.assumingMemoryBound(to: UInt8.self), UInt32(clamping: bytes.count))
      }
      try ZlibError.check(code)
    }
    // The library requires memory even if there is nothing to write.
    var nothing: UInt8 = 0
    let code = withUnsafeMutableBytes(of: &nothing) { spare in
      stream.use(input, output.isEmpty ? UnsafeMutableRawBufferPointer(rebasing: spare.prefix(0)) : output)
      return CZlib.inflate(stream, Z_FINISH)
    }
    let isWhole = code == Z_STREAM_END && stream.pointee.avail_in == 0 && stream.pointee.avail_out == 0
    stream.forgetBuffers()
    switch code {
    case Z_STREAM_END where isWhole: return
    case Z_MEM_ERROR, Z_STREAM_ERROR: throw ZlibError(code: code)
    default: throw .damaged
    }
  }

  /// Decompresses a piece of a declared size.
  ///
  /// - Parameters:
  ///   - input: All of the compressed data and nothing else.
  ///   - size: The size of the data, in bytes. A size that the input cannot expand to is refused before memory is
  ///     allocated.
  ///   - dictionary: The dictionary that the data was compressed with. Defaults to no dictionary.
  /// - Returns: The data.
  /// - Throws: ``ZlibError``. It is ``ZlibError/damaged`` if the input is not a deflate stream, has another size, or is
  ///   followed by other bytes.
  public mutating func inflate(
    _ input: UnsafeRawBufferPointer, size: Int, dictionary: borrowing RawSpan = RawSpan()
  ) throws(ZlibError) -> [UInt8] {
    guard size >= 0, size / Self.maximumExpansion <= input.count else { throw .damaged }
    guard size > 0 else {
      try inflate(input, into: UnsafeMutableRawBufferPointer(start: nil, count: 0), dictionary: dictionary)
      // The initializer below would write the count into the storage that all empty arrays share, which is a race that
      // the thread sanitizer reports.
      return []
    }
    return try [UInt8](unsafeUninitializedCapacity: size) { buffer, count throws(ZlibError) in
      try inflate(input, into: UnsafeMutableRawBufferPointer(buffer), dictionary: dictionary)
      count = size
    }
  }
}
#endif
