#if HTTPClient
import CZlib
import NIOCore

/// A decoder of a body in gzip (RFC 1952) or deflate (RFC 1950), one piece after another.
///
/// It returns at most ``largestPiece`` bytes from a call, so a small body that decodes to a large one needs no more
/// memory than its reader takes.
final class BodyDecoder {
  /// The largest number of bytes that one call returns.
  static let largestPiece = 65_536

  private let stream: UnsafeMutablePointer<z_stream>
  private var input = ByteBuffer()

  /// A Boolean value that indicates whether the last byte that was decoded ended the body, or one member of it.
  private var isAtEnd = false
  private var isEmpty = true

  /// A Boolean value that indicates whether zeros have followed the last member, which some programs add to fill a
  /// block.
  private var isPadded = false

  /// Creates a decoder.
  ///
  /// - Throws: ``HTTPBodyDecodingError`` if there is not enough memory.
  init() throws {
    stream = .allocate(capacity: 1)
    stream.initialize(to: z_stream())
    // The largest window, and 32 to recognize both formats by their headers, as AsyncHTTPClient does.
    let code = inflateInit2_(stream, 15 + 32, ZLIB_VERSION, Int32(MemoryLayout<z_stream>.size))
    guard code == Z_OK else { throw HTTPBodyDecodingError.outOfMemory }
  }

  deinit {
    // It does nothing for a stream that could not be initialized.
    _ = inflateEnd(stream)
    stream.deinitialize(count: 1)
    stream.deallocate()
  }

  /// Takes the next piece of the encoded body, after all of the one before was decoded.
  func append(_ bytes: ByteBuffer) {
    input = bytes
    if bytes.readableBytes > 0 { isEmpty = false }
  }

  /// Returns the next decoded bytes, or `nil` if that needs more of the encoded body.
  ///
  /// - Throws: ``HTTPBodyDecodingError``.
  func next() throws -> ByteBuffer? {
    while input.readableBytes > 0 || !isDrained {
      if isAtEnd {
        let padding = input.readableBytesView.prefix { $0 == 0 }.count
        if padding > 0 { isPadded = true }
        input.moveReaderIndex(forwardBy: padding)
        guard input.readableBytes > 0 else { return nil }
        // A body in gzip may have several members, each with a header.
        guard !isPadded, inflateReset(stream) == Z_OK else { throw HTTPBodyDecodingError.damaged }
        isAtEnd = false
      }
      let output = try inflate()
      if output.readableBytes > 0 { return output }
    }
    return nil
  }

  /// Checks that the body has ended.
  ///
  /// - Throws: ``HTTPBodyDecodingError`` if a part is missing. An empty body is whole.
  func finish() throws {
    guard isAtEnd || isEmpty else { throw HTTPBodyDecodingError.incomplete }
  }

  /// A Boolean value that indicates whether the decoder has returned everything that it could decode.
  private var isDrained = true

  private func inflate() throws -> ByteBuffer {
    var output = ByteBuffer()
    let code = input.readWithUnsafeMutableReadableBytes { bytes -> (Int, Int32) in
      stream.pointee.next_in = bytes.baseAddress?.assumingMemoryBound(to: UInt8.self)
      stream.pointee.avail_in = UInt32(clamping: bytes.count)
      var code = Z_OK
      output.writeWithUnsafeMutableBytes(minimumWritableBytes: Self.largestPiece) { memory in
        let count = min(memory.count, Self.largestPiece)
        stream.pointee.next_out = memory.baseAddress?.assumingMemoryBound(to: UInt8.self)
        stream.pointee.avail_out = UInt32(count)
        code = CZlib.inflate(stream, Z_NO_FLUSH)
        isDrained = stream.pointee.avail_out > 0 || code == Z_STREAM_END
        return count - Int(stream.pointee.avail_out)
      }
      let count = bytes.count - Int(stream.pointee.avail_in)
      (stream.pointee.next_in, stream.pointee.avail_in) = (nil, 0)
      (stream.pointee.next_out, stream.pointee.avail_out) = (nil, 0)
      return (count, code)
    }
    switch code {
    // The buffer error says that there was nothing to do: the memory was full exactly when the input ended.
    case Z_OK, Z_BUF_ERROR: break
    case Z_STREAM_END: isAtEnd = true
    case Z_MEM_ERROR: throw HTTPBodyDecodingError.outOfMemory
    default: throw HTTPBodyDecodingError.damaged
    }
    return output
  }
}
#endif
