#if Compression
import Larder
import LarderFiles
import LarderTesting
import Testing

@testable import LarderCompressedFile

@Suite struct BlockReaderTests {
  private let disk = SimulatedFileSystem(seed: 1)

  private func source(_ text: String, generation: Int) throws -> BlockReader.Source {
    let head = FileHead(codecName: "json", salt: 5)
    try disk.place(BlockComposer.storedBlock(Array(text.utf8), salt: head.salt, at: 0), at: "/\(text)")
    return BlockReader.Source(
      file: try disk.open("/\(text)", .read), generation: generation, format: .version2(head: head, isWhole: true))
  }

  /// A reader that started before the end of a compaction reads the old file, while later readers read the new one.
  @Test func blocksOfDifferentFilesAreNeverConfused() throws {
    let reader = BlockReader(cacheSize: 1 << 20)
    let (old, new) = (try source("old", generation: 1), try source("new", generation: 2))
    func read(_ source: BlockReader.Source) throws -> String {
      String(decoding: try reader.block(at: 0, of: source, isKept: true).text, as: UTF8.self)
    }
    reader.keepOnly(1)
    #expect(try read(old) == "old" && read(old) == "old")
    reader.keepOnly(2)
    for _ in 0..<2 {
      #expect(try read(old) == "old")
      #expect(try read(new) == "new")
    }
    let count = disk.operationCount
    #expect(try read(new) == "new")
    #expect(disk.operationCount == count, "it was kept")
  }
}
#endif
