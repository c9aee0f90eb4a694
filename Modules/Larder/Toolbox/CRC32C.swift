/// The checksum CRC-32C (Castagnoli; RFC 3720, appendix B.4), computed with tables, eight bytes at a time.
public enum CRC32C {
  /// Eight consecutive tables of 256 checksums.
  ///
  /// Table n contains the checksum of each byte followed by n zero bytes.
  private static let tables: [UInt32] = {
    var tables: [UInt32] = []
    tables.reserveCapacity(8 * 256)
    for byte in UInt32(0)..<256 {
      var checksum = byte
      for _ in 0..<8 {
        checksum = checksum & 1 == 1 ? (checksum >> 1) ^ 0x82F6_3B78 : checksum >> 1
      }
      tables.append(checksum)
    }
    for index in 256..<8 * 256 {
      let previous = tables[index - 256]
      tables.append((previous >> 8) ^ tables[Int(previous & 0xFF)])
    }
    return tables
  }()

  /// Returns the checksum of a sequence of bytes.
  ///
  /// ```swift
  /// guard CRC32C.checksum(of: record.dropFirst(4)) == storedChecksum else { throw DamagedRecord() }
  /// ```
  ///
  /// - Parameter bytes: The bytes. For example, the checksum of "123456789" is 0xE3069283.
  public static func checksum(of bytes: some Sequence<UInt8>) -> UInt32 {
    let contiguous = bytes.withContiguousStorageIfAvailable { checksum(ofBuffer: UnsafeRawBufferPointer($0)) }
    return contiguous ?? Array(bytes).withUnsafeBytes { checksum(ofBuffer: $0) }
  }

  private static func checksum(ofBuffer bytes: UnsafeRawBufferPointer) -> UInt32 {
    tables.withUnsafeBufferPointer { tables in
      var checksum = UInt32.max
      var index = 0
      while bytes.count - index >= 8 {
        var word = UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: index, as: UInt64.self))
        word ^= UInt64(checksum)
        checksum = 0
        // Not a `for` loop, which in a debug build looks up types under a process-wide lock for each byte.
        var table = 7 * 256
        while table >= 0 {
          checksum ^= tables[table + Int(word & 0xFF)]
          word >>= 8
          table -= 256
        }
        index += 8
      }
      while index < bytes.count {
        checksum = (checksum >> 8) ^ tables[Int((checksum ^ UInt32(bytes[index])) & 0xFF)]
        index += 1
      }
      return ~checksum
    }
  }
}
