/// The checksums of PNG files and of zlib streams.
enum Checksum {
  /// Returns the CRC-32 of ISO 3309, which ends each chunk of a PNG file.
  static func crc32(of bytes: [UInt8]) -> UInt32 {
    var crc: UInt32 = 0xFFFF_FFFF
    for byte in bytes {
      crc ^= UInt32(byte)
      for _ in 0..<8 {
        crc = crc & 1 == 0 ? crc >> 1 : (crc >> 1) ^ 0xEDB8_8320
      }
    }
    return ~crc
  }

  /// Returns the Adler-32 of RFC 1950, which ends a zlib stream.
  static func adler32(of bytes: [UInt8]) -> UInt32 {
    var (sum, sumOfSums): (UInt32, UInt32) = (1, 0)
    for byte in bytes {
      sum = (sum + UInt32(byte)) % 65_521
      sumOfSums = (sumOfSums + sum) % 65_521
    }
    return sumOfSums << 16 | sum
  }
}
