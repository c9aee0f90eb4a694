#if Compression
import Larder
import LarderTesting
import Testing

@testable import LarderCompression

/// Headers, notes and lines: what a block is made of.
@Suite struct BlockFormatTests {
  private let notes: [BlockNote] = [
    .set("a"), .remove(StoreKey(bytes: [0x80, 0])), .removeAll(.all), .removeAll("b"..<"c"),
    .entries(first: "d", last: "é"), .codec(name: "json"),
  ]

  private func header() -> BlockHeader {
    var header = BlockHeader(
      kind: .batch, flags: [.isLast, .beginsWithinLine], batch: 1 << 40, durableBatch: 3, number: 70_000, notes: [])
    for note in notes { note.append(to: &header.notes) }
    return header
  }

  @Test func whatIsWrittenIsRead() throws {
    let body = Array("the body".utf8)
    let block = header().block(with: body)
    let parsed = try block.withUnsafeBytes { try BlockHeader.parse($0) }
    #expect(parsed.header == header())
    #expect(parsed.blockSize == block.count && parsed.size == block.count - body.count)
    #expect(parsed.bodyChecksum == CRC32C.checksum(of: body))
    #expect(BlockNote.notes(of: parsed.header.notes) == notes)
  }

  @Test func everyBitOfTheHeaderCounts() throws {
    let block = header().block(with: Array("the body".utf8))
    for bit in 0..<(block.count - 8) * 8 {
      var damaged = block
      damaged[bit / 8] ^= 1 << (bit % 8)
      #expect(throws: BlockHeader.Problem.damaged) { try damaged.withUnsafeBytes { try BlockHeader.parse($0) } }
    }
    for count in 0..<(block.count - 8) {
      #expect(throws: BlockHeader.Problem.damaged) {
        try block.prefix(count).withUnsafeBytes { try BlockHeader.parse($0) }
      }
    }
  }

  @Test func notesThatAreCutShortAreNone() {
    let bytes = header().notes
    var isEnd = Set<Int>()
    var prefix: [UInt8] = []
    for note in notes {
      isEnd.insert(prefix.count)
      note.append(to: &prefix)
    }
    for count in 0..<bytes.count {
      #expect((BlockNote.notes(of: Array(bytes.prefix(count))) != nil) == isEnd.contains(count))
    }
    #expect(BlockNote.notes(of: [99, 0, 0]) == nil)
  }

  @Test func aLongBoundIsTheSameRangeWithAShortOne() {
    let long = StoreKey(bytes: [UInt8](repeating: 0x61, count: 600))
    let keys = [510, 511].map { StoreKey(bytes: [UInt8](repeating: 0x61, count: $0)) } + ["b", "A"]
    for range in [KeyRange(from: long, upTo: nil), KeyRange(from: "", upTo: long)] {
      let short = range.withShortBounds
      #expect(short.lowerBound.count <= 512 && (short.upperBound?.count ?? 0) <= 512)
      for key in keys { #expect(short.contains(key) == range.contains(key)) }
    }
    #expect(("a"..<"b" as KeyRange).withShortBounds == "a"..<"b")
  }

  @Test func linesSayWhatTheyWereMadeOf() throws {
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
      Issue.record("it is no removal of the range")
      return
    }
    #expect(try StoreLine.codecName(ofHead: StoreLine.head(codecName: "cb\"or")[...]) == "cb\"or")
    for line in ["{\"else\":1}\n", "{\"set\":1}\n", "[]", "{\"set\":\"keyBytes:8\",\"value\":1}"] {
      #expect(throws: StoreLine.Problem.self) { try StoreLine.change(Array(line.utf8)[...]) }
    }
  }
}
#endif
