#if Compression
import LarderTesting
import Testing

@testable import LarderCompressedFile

@Suite struct BlockCacheTests {
  private func block(_ size: Int, at offset: Int64) -> Block {
    Block(offset: offset, end: offset + 1, text: [UInt8](repeating: 1, count: size))
  }

  @Test func `a block cache stays within its limit`() {
    var generator = SeededGenerator(seed: SeededGenerator.seedOfProcess, purpose: "blocks")
    var cache = BlockCache(capacity: 10_000)
    var kept: [Int64: Int] = [:]
    for _ in 0..<2_000 {
      let offset = Int64.random(in: 0..<30, using: &generator)
      if let found = cache.block(at: offset) {
        #expect(found.text.count == kept[offset])
      } else {
        let size = Int.random(in: 1..<4_000, using: &generator)
        _ = cache.insert(block(size, at: offset))
        kept[offset] = size
      }
      #expect(cache.size <= 10_000)
    }
  }

  @Test func `blocks that are read again stay`() {
    var cache = BlockCache(capacity: 3 * 1_096)
    for offset in 0..<3 { #expect(cache.insert(block(1_000, at: Int64(offset))).isEmpty) }
    _ = cache.block(at: 0)
    #expect(cache.insert(block(1_000, at: 3)).count == 1)
    #expect(cache.block(at: 0) != nil && cache.block(at: 3) != nil)
  }

  @Test func `oversized blocks are not cached`() {
    var cache = BlockCache(capacity: 1_000)
    _ = cache.insert(block(100, at: 0))
    #expect(cache.insert(block(2_000, at: 1)).isEmpty)
    #expect(cache.block(at: 0) != nil && cache.block(at: 1) == nil)
    var none = BlockCache(capacity: 0)
    _ = none.insert(block(1, at: 0))
    #expect(none.block(at: 0) == nil)
  }
}
#endif
