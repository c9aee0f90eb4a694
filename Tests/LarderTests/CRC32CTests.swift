import Foundation
import Larder
import LarderTesting
import Testing

@Suite struct CRC32CTests {
  /// Computes the checksum bit by bit, according to its definition.
  private static func reference(_ bytes: some Sequence<UInt8>) -> UInt32 {
    var checksum = UInt32.max
    for byte in bytes {
      checksum ^= UInt32(byte)
      for _ in 0..<8 {
        checksum = checksum & 1 == 1 ? (checksum >> 1) ^ 0x82F6_3B78 : checksum >> 1
      }
    }
    return ~checksum
  }

  @Test func `has the check value`() {
    #expect(CRC32C.checksum(of: "123456789".utf8) == 0xE306_9283)
    #expect(CRC32C.checksum(of: [UInt8]()) == 0)
  }

  @Test func `agrees with the examples of RFC3720`() {
    // Appendix B.4 shows the checksums as bytes in transmission order, the lowest byte first.
    #expect(CRC32C.checksum(of: [UInt8](repeating: 0x00, count: 32)) == 0x8A91_36AA)
    #expect(CRC32C.checksum(of: [UInt8](repeating: 0xFF, count: 32)) == 0x62A8_AB43)
    #expect(CRC32C.checksum(of: (0..<32).map { UInt8($0) }) == 0x46DD_794E)
    #expect(CRC32C.checksum(of: (0..<32).reversed().map { UInt8($0) }) == 0x113F_DB5C)
    let command: [UInt8] = [
      0x01, 0xC0, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
      0x14, 0x00, 0x00, 0x00, 0x00, 0x00, 0x04, 0x00, 0x00, 0x00, 0x00, 0x14, 0x00, 0x00, 0x00, 0x18,
      0x28, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x02, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
    ]
    #expect(CRC32C.checksum(of: command) == 0xD996_3A56)
  }

  @Test(arguments: 0...64) func `agrees with its definition`(_ count: Int) {
    var random = SeededGenerator("CRC32C \(count)")
    let bytes = random.bytes(count: count + 9)
    // Every alignment within a word.
    for start in 0...8 {
      let slice = bytes[start..<start + count]
      let expected = CRC32CTests.reference(slice)
      #expect(CRC32C.checksum(of: slice) == expected)
      #expect(CRC32C.checksum(of: Data(bytes)[start..<start + count]) == expected)
      #expect(CRC32C.checksum(of: AnySequence(slice)) == expected)
    }
  }

  @Test func `every flipped bit changes the checksum`() {
    var random = SeededGenerator()
    var bytes = random.bytes(count: 40)
    let checksum = CRC32C.checksum(of: bytes)
    for bit in 0..<bytes.count * 8 {
      bytes[bit / 8] ^= 1 << (bit % 8)
      #expect(CRC32C.checksum(of: bytes) != checksum)
      bytes[bit / 8] ^= 1 << (bit % 8)
    }
  }
}
