#if Compression
import Larder
import LarderFiles
import LarderTesting
import Testing

@testable import LarderCompressedFile
@testable import LarderCompression

@Suite struct BlockReaderTests {
  @Test func `a cached block is not read again`() throws {
    let disk = SimulatedFileSystem(seed: 1)
    let head = FileHead(codecName: "json", salt: 5)
    try disk.place(BlockComposer.storedBlock(Array("text".utf8), salt: head.salt, at: 0), at: "/file")
    let reader = BlockReader(
      try disk.open("/file", .read), head,
      inflaters: StreamPool { () throws(ZlibError) in try ZlibInflater() }, cacheSize: 1 << 20)
    func read(isKept: Bool) throws -> String {
      String(decoding: try reader.block(at: 0, isKept: isKept).text, as: UTF8.self)
    }
    #expect(try read(isKept: false) == "text")
    #expect(reader.cachedSize == 0)
    #expect(try read(isKept: true) == "text")
    let count = disk.operationCount
    #expect(try read(isKept: true) == "text")
    #expect(disk.operationCount == count)
  }
}
#endif
