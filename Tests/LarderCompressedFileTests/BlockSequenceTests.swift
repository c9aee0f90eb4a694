#if Compression
import Larder
import LarderTesting
import Testing

@testable import LarderCompressedFile
@testable import LarderCompression

@Suite struct BlockSequenceTests {
  private let head = FileHead(codecName: "json", salt: 5)
  private let inflaters = StreamPool { () throws(ZlibError) in try ZlibInflater() }

  /// Divides bytes into blocks.
  private func blocks(_ bytes: [UInt8], from start: Int64) throws -> [Block] {
    var finder = BlockFinder(
      FileWindow(size: start + Int64(bytes.count)) { range in
        range.map { $0 < start ? 0 : bytes[Int($0 - start)] }
      }, salt: head.salt, inflaters: inflaters)
    var blocks: [Block] = []
    var offset = start
    while offset < finder.window.size {
      let block = try #require(try finder.block(at: offset))
      blocks.append(block)
      offset = block.end
    }
    return blocks
  }

  private func line(_ key: StoreKey, _ count: Int) throws -> [UInt8] {
    StoreLine.bytes(of: .set(key, JSONText(string: String(repeating: "a", count: count)).bytes[...]), format: .json)
  }

  @Test func `blocks contain the input and each of them fits`() throws {
    var generator = SeededGenerator(seed: SeededGenerator.seedOfProcess, purpose: "cutting")
    let context: Comment = "\(SeededGenerator.seedVariable)=\(SeededGenerator.seedOfProcess)"
    for round in 0..<12 {
      let start: Int64 = .random(in: 0...10_000, using: &generator)
      var sequence = BlockSequence(
        BlockStart(part: .batch, batch: 9, durableBatch: 8), at: start, of: head, after: UnnotedBlocks(from: start),
        by: BlockComposer(level: 1), isCompressed: round.isMultiple(of: 2))
      var lines: [[UInt8]] = []
      for number in 0..<60 {
        let isLong = Int.random(in: 0..<8, using: &generator) == 0
        let key = StoreKey("key \(number)" + String(repeating: "k", count: .random(in: 0...400, using: &generator)))
        lines.append(try line(key, .random(in: 1...(isLong ? 200_000 : 3_000), using: &generator)))
        try sequence.add(lines[number][...], .set(key, ()))
      }
      try sequence.finish()
      let bytes = sequence.takeBytes()
      let blocks = try blocks(bytes, from: start)
      #expect(blocks.count == sequence.blockCount && sequence.end == start + Int64(bytes.count), context)
      var texts: [UInt8] = []
      for (index, block) in blocks.enumerated() {
        #expect(block.end - block.offset <= BlockFrame.maximumSize && block.text.count <= BlockFrame.maximumTextSize)
        if block.isContinuation {
          texts += block.text
          continue
        }
        let (start, startEnd) = try #require(BlockStart.read(block.text))
        #expect(start.isLast == (index == blocks.count - 1))
        texts += block.text[StoreText.changesStart(in: block.text, after: startEnd)...]
      }
      #expect(texts == lines.flatMap { $0 }, context)
      for (placed, line) in zip(sequence.takePlaced(), lines) {
        guard case .set(_, let place) = placed else { continue }
        let first = try #require(blocks.first { $0.offset == place.block })
        #expect(
          Int(place.length) == line.count
            && first.text[place.textOffset...].prefix(line.count).elementsEqual(
              line.prefix(first.text.count - place.textOffset)),
          context)
      }
    }
  }

  @Test func `block sizes follow the compression ratio`() throws {
    for (isCompressed, size) in [(false, 4_096...9_000), (true, 20_000...66_000)] {
      var sequence = BlockSequence(
        BlockStart(part: .base, batch: 9), at: 0, of: head, after: UnnotedBlocks(from: 0), by: BlockComposer(level: 6),
        isCompressed: isCompressed)
      for number in 0..<4_000 {
        let key = StoreKey(integer: number)
        try sequence.add(line(key, 100)[...], .set(key, ()))
      }
      try sequence.finish()
      let sizes = try blocks(sequence.takeBytes(), from: 0).map(\.text.count)
      #expect(sizes.dropLast().suffix(3).allSatisfy { size.contains($0) }, "\(sizes.suffix(4))")
    }
  }

  @Test func `every block is noted in a later page`() throws {
    var sequence = BlockSequence(
      BlockStart(part: .base, batch: 9), at: 400, of: head, after: UnnotedBlocks(from: 0), by: BlockComposer(level: 6),
      isCompressed: true)
    var generator = SeededGenerator(seed: 7)
    for number in 0..<3_000 {
      let key = StoreKey("key \(10_000 + number)")
      let value = JSONText(string: "\(UInt64.random(in: 0 ... .max, using: &generator))")
      try sequence.add(StoreLine.bytes(of: .set(key, value.bytes[...]), format: .json)[...], .set(key, ()))
    }
    try sequence.finish()
    let ending = try FileEnding.bytes(
      at: sequence.end, batch: 9, unnoted: sequence.unnoted, of: head, by: BlockComposer(level: 1))
    let blocks = try blocks(sequence.takeBytes() + ending.dropLast(28), from: 400)
    var noted: [Int64: Int64] = [:]
    var covered: Int64 = 0
    for block in blocks {
      let startEnd = try #require(BlockStart.read(block.text)).end
      guard BlockNotes.range(in: block.text, at: startEnd) != nil else { continue }
      let notes = try BlockNotes(readingLineOf: block.text, at: startEnd)
      #expect(notes.range.lowerBound == covered)
      covered = notes.range.upperBound
      for part in notes.blocks { noted[part.offset] = block.offset }
    }
    for block in blocks where BlockStart.read(block.text)?.start.part == .base {
      let place = try #require(noted[block.offset])
      #expect(place / 4096 > (block.end - 1) / 4096, "the notes of \(block.offset) are at \(place)")
    }
    #expect(covered >= sequence.end && blocks.last.map { $0.offset % 4096 == 0 } == true)
  }
}
#endif
