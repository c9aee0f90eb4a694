#if Compression
import Larder
import LarderTesting
import Testing

@testable import LarderCompressedFile
@testable import LarderCompression

/// The parts of a block: frames, starts, notes and lines.
@Suite struct BlockFormatTests {
  private let salt: UInt64 = 0xFEDC_BA98_7654_3210

  private func block(at offset: Int64 = 4711) -> [UInt8] {
    BlockComposer.storedBlock(Array("the text\n".utf8), salt: salt, at: offset)
  }

  @Test func `every bit of a block and its place are checked`() throws {
    let block = block()
    func isSealed(_ block: [UInt8], salt: UInt64, at offset: Int64) -> Bool {
      block.withUnsafeBytes { bytes in
        BlockFrame.size(at: bytes) == bytes.count && BlockFrame.isSealed(bytes, salt: salt, at: offset)
      }
    }
    #expect(isSealed(block, salt: salt, at: 4711))
    #expect(!isSealed(block, salt: salt, at: 4712) && !isSealed(block, salt: salt + 1, at: 4711))
    for bit in 0..<block.count * 8 {
      var damaged = block
      damaged[bit / 8] ^= 1 << (bit % 8)
      #expect(!isSealed(damaged, salt: salt, at: 4711), "bit \(bit)")
    }
    for count in 0..<BlockFrame.headerSize {
      #expect(block.prefix(count).withUnsafeBytes { BlockFrame.size(at: $0) } == nil)
    }
  }

  @Test func `the text round trips`() throws {
    let inflaters = StreamPool { () throws(ZlibError) in try ZlibInflater() }
    let composer = BlockComposer(level: 6)
    for count in [0, 1, 100, 65_000] {
      for isCompressed in [false, true] {
        let text = [UInt8](repeating: 0x61, count: count)
        let block = try composer.block(text, isCompressed: isCompressed, salt: salt, at: 0)
        #expect(try block.withUnsafeBytes { try BlockText.text(of: $0, by: inflaters) } == text)
        #expect(try block.withUnsafeBytes { try BlockText.checkedText(of: $0, by: inflaters) } == text)
        #expect(block.count <= BlockFrame.maximumSize)
      }
    }
    var wrong = block()
    wrong[wrong.count - 4] = 200
    #expect(try wrong.withUnsafeBytes { try BlockText.text(of: $0, by: inflaters) } == nil)
  }

  /// If memory cannot be allocated for a sound block, it is not reported as damaged.
  @Test func `lack of memory is not damage`() throws {
    let noMemory = ZlibError(code: -4)
    let inflaters = StreamPool { () throws(ZlibError) -> ZlibInflater in throw noMemory }
    let text = [UInt8](repeating: 0x61, count: 1000)
    let block = try BlockComposer(level: 6).block(text, isCompressed: true, salt: salt, at: 0)
    #expect(throws: noMemory) { try block.withUnsafeBytes { try BlockText.text(of: $0, by: inflaters) } }
    let window = FileWindow(size: Int64(block.count)) { range in
      Array(block[Int(range.lowerBound)..<Int(range.upperBound)])
    }
    var finder = BlockFinder(window, salt: salt, inflaters: inflaters)
    #expect(throws: noMemory) { try finder.block(at: 0) }
  }

  @Test func `starts round trip`() throws {
    let starts = [
      BlockStart(part: .base, batch: 0, durableBatch: 0),
      BlockStart(part: .base, batch: 7, number: 3, durableBatch: 7, isLast: false),
      BlockStart(part: .batch, batch: 1, durableBatch: 0),
      BlockStart(part: .batch, batch: BlockStart.maximumBatch, number: .max, durableBatch: 99, isLast: false),
      BlockStart(part: .ending, batch: 8, durableBatch: 8),
    ]
    for start in starts {
      let text = start.line + Array("more".utf8)
      let found = try #require(BlockStart.read(text))
      #expect(found.start == start && found.end == start.line.count)
      #expect(start.line.count <= BlockStart.maximumSize)
    }
    for line in [
      "", "{\"batch\":8}\n", "{\"batch\":8,\"durable\":8}\n", "{\"batch\":18446744073709551615,\"durable\":1}\n",
      "{\"batch\":9007199254740993,\"durable\":1}\n", "{\"batch\":,\"durable\":1}\n",
      "{\"base\":7,\"block\":4294967296}\n",
      "{\"batch\":8,\"durable\":7} \n", "{\"set\":\"a\",\"value\":1}\n",
    ] { #expect(BlockStart.read(Array(line.utf8)) == nil, "\(line)") }
  }

  @Test func `the head and the mark round trip`() throws {
    let heads = [
      FileHead(codecName: "cb\"or", salt: 1), FileHead(codecName: "json", salt: .max, batch: 12, hasBase: true),
    ]
    for head in heads {
      let found = try FileHead(readingLine: head.line[...])
      #expect(found == head)
      #expect(Int64(head.block.count) == head.markOffset)
      #expect(Int64((head.block + head.block(of: .open)).count) == head.end)
    }
    for line in ["{}", "{\"larder\":2,\"codec\":\"json\"}", "{\"larder\":2,\"codec\":\"json\",\"salt\":\"12\"}", "[]"] {
      #expect(throws: FileHead.Problem.self) { try FileHead(readingLine: Array(line.utf8)[...]) }
    }
    #expect(throws: FileHead.Problem.self) { try FileHead(readingLine: Array("{\"larder\":3}".utf8)[...]) }
    let marks: [EndMark] = [
      .open, .closed(end: 0, batch: 0, size: 28), .closed(end: 1 << 52, batch: 1 << 53, size: 1 << 53),
    ]
    for head in heads {
      for mark in marks {
        let line = head.line(of: mark)
        #expect(EndMark(reading: line) == mark && line.count == head.line(of: .open).count)
        #expect(try FileHead(readingLine: line[...]) == head)
      }
    }
    #expect(EndMark(reading: Array("{\"end\":9,\"batch\":1,\"size\":8,".utf8)) == nil)
  }

  @Test func `notes list the keys of their blocks`() throws {
    let changes: [BatchChange<Void>] = [
      .set("user:1001", ()), .set("user:1002", ()), .set("user:1002", ()), .set("b", ()),
      .remove(StoreKey(bytes: [0x80, 0, 1, 2, 3, 4])), .remove(StoreKey(bytes: [0x80, 0, 1, 2, 3, 5])),
      .removeAll(.all), .removeAll("b"..<"c"), .set("é1", ()), .set("é2", ()), .set("keyBytes:", ()),
      .set("keyBytes:keyBytes:", ()),
    ]
    var notes = ChangeNotes()
    for change in changes { notes.add(change) }
    #expect(String(decoding: notes.bytes, as: UTF8.self).hasPrefix("{\"set\":[\"user:1001\",8,\"2\",9,\"\",\"b\"]},"))
    var scanner = JSONScanner(([UInt8(ascii: "[")] + notes.bytes + [UInt8(ascii: "]")])[...])
    let found = try ChangeNotes.read(&scanner)
    #expect("\(found)" == "\(changes)")
    for text in [
      "[{\"set\":[5,\"a\"]}]", "[{\"other\":[]}]", "[{\"set\":[-1,\"a\"]}]", "[1]", "[{\"set\":[\"aaaa\",4]}]",
    ] {
      var scanner = JSONScanner(Array(text.utf8)[...])
      #expect(throws: (any Error).self, "\(text)") { try ChangeNotes.read(&scanner) }
    }
  }

  @Test func `notes are in another page than their blocks`() throws {
    let head = FileHead(codecName: "json", salt: salt)
    var unnoted = UnnotedBlocks(from: 0)
    func notes(_ key: StoreKey) -> ChangeNotes {
      var notes = ChangeNotes()
      notes.add(.set(key, ()))
      return notes
    }
    unnoted.append(500..<4000, notes("a"))
    unnoted.append(4000..<4200, notes("b"))
    unnoted.append(4200..<8192, notes("c"))
    var probe = unnoted
    #expect(probe.takeLine(forBlockAt: 4095, of: head).isEmpty)
    for (offset, expected) in [(Int64(8191), [Int64(500)]), (8192, [500, 4000, 4200])] {
      var unnoted = unnoted
      let line = unnoted.takeLine(forBlockAt: offset, of: head)
      let found = try BlockNotes(readingLineOf: line, at: 0)
      #expect(found.blocks.map(\.offset) == expected)
      #expect(found.range == 0..<(offset == 8191 ? 4000 : 8192) && BlockNotes.range(in: line, at: 0) == found.range)
      #expect(try FileHead(readingLine: line[...]).salt == salt)
      #expect(unnoted.isEmpty == (offset == 8192))
    }
  }

  @Test func `a long bound can be shortened without changing the range`() {
    let long = StoreKey(bytes: [UInt8](repeating: 0x61, count: 600))
    let keys = [510, 511].map { StoreKey(bytes: [UInt8](repeating: 0x61, count: $0)) } + ["b", "A"]
    for range in [KeyRange(from: long, upTo: nil), KeyRange(from: "", upTo: long)] {
      let short = range.withShortBounds
      #expect(short.lowerBound.count <= 512 && (short.upperBound?.count ?? 0) <= 512)
      for key in keys { #expect(short.contains(key) == range.contains(key)) }
    }
    #expect(("a"..<"b" as KeyRange).withShortBounds == "a"..<"b")
  }

  @Test func `lines list the changes of their batch`() throws {
    let key = StoreKey(bytes: [0x80])
    let set = StoreLine.bytes(of: .set(key, Array("[1,2]".utf8)[...]), format: .json)
    #expect(String(decoding: set, as: UTF8.self) == "{\"set\":\"keyBytes:80\",\"value\":[1,2]}\n")
    #expect(try StoreLine.change(set[...]).key == key)
    #expect(try StoreLine.value(set[...], ofKey: key).elementsEqual("[1,2]".utf8))
    #expect(throws: StoreLine.Problem.self) { try StoreLine.value(set[...], ofKey: "other") }
    let bytes = StoreLine.bytes(of: .set("b", Array("\"AA==\"".utf8)[...]), format: .binary)
    #expect(String(decoding: bytes, as: UTF8.self) == "{\"set\":\"b\",\"base64\":\"AA==\"}\n")
    #expect(try StoreLine.value(bytes[...], ofKey: "b").elementsEqual("\"AA==\"".utf8))
    let range = StoreLine.bytes(of: .removeAll("a"..<"b"), format: .json)
    guard case .removeAll("a"..<"b") = try StoreLine.change(range[...]) else {
      Issue.record("the change is not the removal of the range")
      return
    }
    for line in ["{\"else\":1}\n", "{\"set\":1}\n", "[]", "{\"set\":\"keyBytes:8\",\"value\":1}"] {
      #expect(throws: StoreLine.Problem.self) { try StoreLine.change(Array(line.utf8)[...]) }
    }
  }
}
#endif
