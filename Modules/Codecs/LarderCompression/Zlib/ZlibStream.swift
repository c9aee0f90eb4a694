#if Compression
import CZlib
public import Larder

/// A `z_stream` at a fixed address for its lifetime, since the library keeps the address.
typealias ZlibStream = UnsafeMutablePointer<z_stream>

extension UnsafeMutablePointer<z_stream> {
  /// Returns zeroed memory for a stream, with which the library uses its own allocator by default.
  static func allocateZeroed() -> ZlibStream {
    let stream = ZlibStream.allocate(capacity: 1)
    stream.initialize(to: z_stream())
    return stream
  }

  /// Deallocates the stream.
  ///
  /// The memory that the library has allocated must be freed first.
  func deallocateInitialized() {
    deinitialize(count: 1)
    deallocate()
  }

  /// Sets the memory that the next call reads and writes.
  ///
  /// - Parameters:
  ///   - input: At most `UInt32.max` bytes. They must stay valid until the call returns.
  ///   - output: At most `UInt32.max` bytes. They must stay valid until the call returns.
  func use(_ input: UnsafeRawBufferPointer, _ output: UnsafeMutableRawBufferPointer) {
    // The library only reads its input, but does not declare it `const`.
    pointee.next_in = UnsafeMutableRawPointer(mutating: input.baseAddress)?.assumingMemoryBound(to: UInt8.self)
    pointee.avail_in = UInt32(truncatingIfNeeded: input.count)
    pointee.next_out = output.baseAddress?.assumingMemoryBound(to: UInt8.self)
    pointee.avail_out = UInt32(truncatingIfNeeded: output.count)
  }

  /// Clears the pointers to the memory of the last call.
  func forgetBuffers() {
    use(UnsafeRawBufferPointer(start: nil, count: 0), UnsafeMutableRawBufferPointer(start: nil, count: 0))
  }
}

/// The allocator for the states of a ``ZlibDeflater``, which reuses memory for the next state of the same size.
///
/// A state is copied and freed for every piece of data. The system's allocator would return its memory, up to 270 KB,
/// to the kernel each time and obtain it again page by page. This can take longer than compressing.
final class StreamMemory {
  /// A state has five blocks, so a linear search is fast enough.
  private var blocks: [(memory: UnsafeMutableRawPointer, size: Int, isFree: Bool)] = []

  deinit {
    for block in blocks { block.memory.deallocate() }
  }

  /// Directs a stream to allocate its memory here.
  ///
  /// Call this before the library initializes the stream.
  ///
  /// The stream does not retain this object, so you must end the stream first.
  func serve(_ stream: ZlibStream) {
    stream.pointee.opaque = Unmanaged.passUnretained(self).toOpaque()
    stream.pointee.zalloc = { memory, count, size in
      guard let memory else { return nil }
      return Unmanaged<StreamMemory>.fromOpaque(memory).takeUnretainedValue().allocate(Int(count) * Int(size))
    }
    stream.pointee.zfree = { memory, block in
      guard let memory, let block else { return }
      Unmanaged<StreamMemory>.fromOpaque(memory).takeUnretainedValue().free(block)
    }
  }

  private func allocate(_ size: Int) -> UnsafeMutableRawPointer {
    if let index = blocks.firstIndex(where: { $0.isFree && $0.size == size }) {
      blocks[index].isFree = false
      return blocks[index].memory
    }
    let memory = UnsafeMutableRawPointer.allocate(byteCount: size, alignment: 16)
    blocks.append((memory, size, isFree: false))
    return memory
  }

  private func free(_ memory: UnsafeMutableRawPointer) {
    guard let index = blocks.firstIndex(where: { $0.memory == memory }) else { return }
    blocks[index].isFree = true
  }
}

/// An error of the zlib library.
///
/// Stores throw it as the `StoreError.underlying` error of a `StoreError`.
public struct ZlibError: RedactedError, Hashable {
  /// The error code, a negative number that `zlib.h` lists.
  public let code: Int32

  /// Creates an error from an error code.
  ///
  /// - Parameter code: The code that the library returned.
  public init(code: Int32) {
    self.code = code
  }

  /// Throws an error if a code is not `Z_OK`.
  ///
  /// - Parameter code: The code that the library returned.
  static func check(_ code: Int32) throws(ZlibError) {
    if code != Z_OK { throw ZlibError(code: code) }
  }

  /// The error for bytes that are not a deflate stream of the expected size.
  public static let damaged = ZlibError(code: Z_DATA_ERROR)
}

extension ZlibError: CustomStringConvertible {
  /// The library's message, followed by the code.
  public var description: String {
    "\(zError(code).map { String(cString: $0) } ?? "unknown") (\(code))"
  }
}

/// The checksum CRC-32 of gzip (RFC 1952, section 8), computed by zlib.
public enum ZlibCRC32 {
  /// Returns the checksum of some bytes.
  ///
  /// ```swift
  /// let checksum = input.withUnsafeBytes { ZlibCRC32.checksum(of: $0) }
  /// ```
  ///
  /// - Parameters:
  ///   - bytes: The bytes. For example, the checksum of "123456789" is 0xCBF43926.
  ///   - checksum: The checksum of the preceding bytes. Defaults to 0, for no preceding bytes.
  public static func checksum(of bytes: UnsafeRawBufferPointer, continuing checksum: UInt32 = 0) -> UInt32 {
    // Without an address the library returns the checksum of no bytes and ignores the preceding ones.
    guard let start = bytes.baseAddress else { return checksum }
    return UInt32(truncatingIfNeeded: crc32_z(UInt(checksum), start.assumingMemoryBound(to: UInt8.self), bytes.count))
  }
}
#endif
