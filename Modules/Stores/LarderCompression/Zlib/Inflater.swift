#if Compression
internal import CZlib

/// Undoes raw deflate (RFC 1951, without any header), one piece of data after another.
///
/// Its memory is made once. It never writes more than the memory that it is given, so that the size which somebody
/// declared bounds what a small piece can grow to.
struct Inflater: ~Copyable, @unchecked Sendable {
  // Proof for @unchecked: it alone knows its stream, cannot be copied, and touches it in mutating methods and `deinit`
  // only, so whoever calls one has it to himself. A stream is not bound to a thread.

  /// How many bytes a byte of deflate can stand for, at most.
  ///
  /// A repetition of 258 bytes takes two bits or more (RFC 1951). A declared size above it is a lie that needs no memory to
  /// find out.
  static let maximumExpansion = 1032

  private let stream: ZlibStream

  /// Makes a decompressor.
  ///
  /// - Throws: ``ZlibError`` where there is no memory.
  init() throws(ZlibError) {
    let stream = ZlibStream.allocateZeroed()
    do {
      // Negative bits ask for deflate without a header; the widest window reads what any window wrote.
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
  ///   - input: The compressed data, all of it and nothing behind it; at most `UInt32.max` bytes.
  ///   - output: Where the data goes; at most `UInt32.max` bytes. It is filled, unless this throws.
  ///   - dictionary: The dictionary that the data was compressed with.
  /// - Throws: ``ZlibError``: ``ZlibError/damaged`` where the bytes are no deflate stream, or one of another size, or
  ///   something stands behind it.
  mutating func inflate(
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
    // The library wants memory even where there is nothing to write.
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
  ///   - input: The compressed data, all of it and nothing behind it.
  ///   - size: The size of the data. One that no piece of this size can have is refused before any memory is taken.
  ///   - dictionary: The dictionary that the data was compressed with.
  /// - Returns: The data.
  /// - Throws: ``ZlibError``: ``ZlibError/damaged`` where the bytes are no deflate stream, or one of another size, or
  ///   something stands behind it.
  mutating func inflate(
    _ input: UnsafeRawBufferPointer, size: Int, dictionary: borrowing RawSpan = RawSpan()
  ) throws(ZlibError) -> [UInt8] {
    guard size >= 0, size / Self.maximumExpansion <= input.count else { throw .damaged }
    guard size > 0 else {
      try inflate(input, into: UnsafeMutableRawBufferPointer(start: nil, count: 0), dictionary: dictionary)
      // Not from the initializer below: without room an array has the storage that all empty ones share, into which it
      // writes the count: a race that the thread sanitizer reports.
      return []
    }
    return try [UInt8](unsafeUninitializedCapacity: size) { buffer, count throws(ZlibError) in
      try inflate(input, into: UnsafeMutableRawBufferPointer(buffer), dictionary: dictionary)
      count = size
    }
  }
}
#endif
