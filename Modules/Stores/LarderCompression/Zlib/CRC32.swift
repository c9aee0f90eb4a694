#if Compression
internal import CZlib

/// The checksum CRC-32 of gzip (RFC 1952, section 8), as the zlib library computes it.
enum CRC32 {
  /// The checksum of some bytes.
  ///
  /// - Parameters:
  ///   - bytes: The bytes; of "123456789" the checksum is 0xCBF43926.
  ///   - checksum: The checksum of what stands before them, where they are not the beginning.
  static func checksum(of bytes: UnsafeRawBufferPointer, continuing checksum: UInt32 = 0) -> UInt32 {
    // Without an address the library gives the checksum of nothing, and forgets that of what stands before.
    guard let start = bytes.baseAddress else { return checksum }
    return UInt32(truncatingIfNeeded: crc32_z(UInt(checksum), start.assumingMemoryBound(to: UInt8.self), bytes.count))
  }
}
#endif
