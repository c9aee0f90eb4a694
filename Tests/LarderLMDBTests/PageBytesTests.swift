#if LMDB
import Testing

@testable import LarderLMDB

@Suite struct PageBytesTests {
  @Test func `integers are read at any offset but not beyond the end`() {
    let bytes = PageBytes([9, 9, 1, 2, 3, 4, 5, 6, 7, 8][2...])
    #expect(bytes.integer(at: 0) == 1 as UInt8)
    #expect(bytes.integer(at: 1) == UInt16(littleEndian: 0x0302))
    #expect(bytes.integer(at: 4) == UInt32(littleEndian: 0x0807_0605))
    #expect(bytes.integer(at: 0) == UInt64(littleEndian: 0x0807_0605_0403_0201))
    #expect(bytes.integer(at: 1) == nil as UInt64?)
    #expect(bytes.integer(at: 7) == 8 as UInt8)
    #expect(bytes.integer(at: 8) == nil as UInt8?)
    #expect(bytes.integer(at: -1) == nil as UInt8?)
    #expect(bytes.integer(at: Int.max) == nil as UInt64?)
    #expect(PageBytes([]).integer(at: 0) == nil as UInt8?)
  }
}
#endif
