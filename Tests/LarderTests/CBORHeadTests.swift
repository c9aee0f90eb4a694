import Larder
import Testing

/// Checks the heads of CBOR data items.
struct CBORHeadTests {
  @Test(arguments: [0, 23, 24, 0xFF, 0x100, 0xFFFF, 0x1_0000, 0xFFFF_FFFF, 0x1_0000_0000, Int.max])
  func `a head is read as it was written`(_ number: Int) {
    var bytes: [UInt8] = [0xAA]
    CBORHead.append(CBORHead.byteString, number, to: &bytes)
    #expect(bytes.count == 1 + CBORHead.size(of: number))
    var offset = 1
    let read = bytes.withUnsafeBytes { CBORHead.read(CBORHead.byteString, in: $0, at: &offset) }
    #expect(read == number)
    #expect(offset == bytes.count)
  }

  @Test(
    arguments: [
      [0x58, 0x17], [0x59, 0x00, 0xFF], [0x5A, 0x00, 0x00, 0xFF, 0xFF], [0x5B, 0, 0, 0, 0, 0xFF, 0xFF, 0xFF, 0xFF],
      [0x58], [0x59, 0x01], [0x5B, 0x80, 0, 0, 0, 0, 0, 0, 0], [0x5C], [0x5F], [0x17], [],
    ] as [[UInt8]])
  func `a longer form and another head are refused`(_ bytes: [UInt8]) {
    var offset = 0
    #expect(bytes.withUnsafeBytes { CBORHead.read(CBORHead.byteString, in: $0, at: &offset) } == nil)
  }
}
