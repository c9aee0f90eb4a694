#if Compression
import Larder
import Testing

@testable import LarderCompressedFile

/// Small files that take much time to scan.
@Suite struct HostileScanTests {
  private let composer = BlockComposer(level: 1)

  @Test func `a file of useless blocks is rejected`() throws {
    // Any block could have notes that repeat a lost head.
    let text = Array("{\"batch\":1,\"durable\":0}\n".utf8) + [UInt8](repeating: 0x20, count: 64_000)
    let block = try composer.block(text, isCompressed: true, salt: 7, at: 1)
    var bytes = [UInt8](repeating: 0, count: 100)
    for _ in 0..<1_500 { bytes += block }
    let problem = #expect(throws: FileProblem.self) { try StoreFileParts.scan(bytes) }
    #expect(problem?.message.contains("look like") == true)
  }

  @Test func `notes are found for each hole`() throws {
    // Many small holes. After a scan of the whole file, each of them has notes elsewhere.
    let head = FileHead(codecName: "json", salt: 3)
    var bytes = head.block + head.block(of: .open)
    var unnoted = UnnotedBlocks(from: 0)
    var starts: [Int] = []
    for number: UInt64 in 1...2_000 {
      starts.append(bytes.count)
      // Before the end, nothing is known to be durable.
      let durable = number == 2_000 ? number - 1 : 0
      var sequence = BlockSequence(
        BlockStart(part: .batch, batch: number, durableBatch: durable), at: Int64(bytes.count), of: head,
        after: unnoted, by: composer, isCompressed: false)
      let key = StoreKey("key \(number)")
      try sequence.add(StoreLine.bytes(of: .set(key, Array("1".utf8)[...]), format: .json)[...], .set(key, ()))
      try sequence.finish()
      unnoted = sequence.unnoted
      bytes += sequence.takeBytes()
    }
    for number in stride(from: 100, to: 1_900, by: 100) { bytes[starts[number - 1] + 30] ^= 1 }
    let found = try StoreFileParts.scan(bytes)
    #expect(found.index.entries.count == 2_000 && found.index.lostCount == 18 && found.index.gap(in: .all) == nil)
  }
}
#endif
