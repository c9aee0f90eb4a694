#if Compression
import Larder
import Testing

@testable import LarderCompressedFile
@testable import LarderCompression

/// The good, torn, damaged and foreign parts of a sequence of bytes.
@Suite struct FileScanTests {
  /// A file that a test composes.
  private struct File {
    let head: FileHead
    var bytes: [UInt8] = []
    /// The start of each batch, and the end of the last one.
    var starts: [Int] = []
    var unnoted: UnnotedBlocks
    private let composer = BlockComposer(level: 6)

    init(base: UInt64? = nil) {
      head = FileHead(codecName: "json", salt: 0x0123_4567_89AB_CDEF, batch: base ?? 0, hasBase: base != nil)
      bytes = head.block + head.block(of: .open)
      starts = [bytes.count]
      unnoted = UnnotedBlocks(from: 0)
    }

    /// Appends a batch of keys with values of a given length.
    mutating func append(
      _ number: UInt64, durable: UInt64, _ keys: [StoreKey], removing removed: [StoreKey] = [], valueSize: Int = 1,
      as part: BlockStart.Part = .batch
    ) throws {
      var sequence = BlockSequence(
        BlockStart(part: part, batch: number, durableBatch: durable), at: Int64(bytes.count), of: head, after: unnoted,
        by: composer, isCompressed: false)
      let value = [UInt8(ascii: "\"")] + [UInt8](repeating: 0x61, count: valueSize) + [UInt8(ascii: "\"")]
      for key in keys {
        try sequence.add(StoreLine.bytes(of: .set(key, value[...]), format: .json)[...], .set(key, ()))
      }
      for key in removed { try sequence.add(StoreLine.bytes(of: .remove(key), format: .json)[...], .remove(key)) }
      try sequence.finish()
      unnoted = sequence.unnoted
      bytes += sequence.takeBytes()
      starts.append(bytes.count)
    }

    /// Closes the file.
    mutating func close(batch: UInt64) throws {
      let end = Int64(bytes.count)
      bytes += try FileEnding.bytes(at: end, batch: batch, unnoted: unnoted, of: head, by: composer)
      let mark = head.block(of: .closed(end: end, batch: batch, size: Int64(bytes.count)))
      bytes.replaceSubrange(Int(head.markOffset)..<Int(head.end), with: mark)
    }

    /// Overwrites a part with zeros.
    mutating func zero(_ range: Range<Int>) {
      for place in range.clamped(to: 0..<bytes.count) { bytes[place] = 0 }
    }
  }

  private func scan(_ bytes: [UInt8]) throws -> FoundFile {
    try FileScan.scan(size: Int64(bytes.count), inflaters: StreamPool { () throws(ZlibError) in try ZlibInflater() }) {
      Array(bytes[Int($0.lowerBound)..<Int($0.upperBound)])
    }
  }

  private func keys(_ found: FoundFile) -> [StoreKey] {
    found.index.entries.keys(in: .all, limit: .max, order: .ascending)
  }

  private func isLost(_ key: StoreKey, in found: FoundFile) -> Bool {
    if case .lost = found.index.find(key) { true } else { false }
  }

  @Test func `batches take effect one after another`() throws {
    var file = File()
    try file.append(1, durable: 0, ["b"])
    try file.append(2, durable: 1, ["a", "c"])
    let found = try scan(file.bytes)
    #expect(keys(found) == ["a", "b", "c"] && found.layout.lastBatch == 2 && found.layout.blockCount == 4)
    #expect(found.head.codecName == "json" && !found.isClosed && found.layout.tornSize == 0 && found.damage.isEmpty)
    #expect(found.layout.end == file.bytes.count && found.layout.baseEnd == file.starts[0])
    try file.close(batch: 2)
    let closed = try scan(file.bytes)
    #expect(
      closed.isClosed && closed.layout.tornSize == 0 && closed.layout.end == file.starts[2] && closed.remarks.isEmpty)
    #expect(closed.unnoted.isEmpty == false && keys(closed) == keys(found))
  }

  @Test func `a batch of several blocks takes effect with its last one`() throws {
    var file = File()
    try file.append(1, durable: 0, ["a"])
    try file.append(2, durable: 1, ["b", "c", "d"], valueSize: 50_000)
    #expect(try scan(file.bytes).layout.blockCount == 6)
    for cut in [1, 10_000, 60_000, 120_000] {
      let found = try scan(Array(file.bytes.dropLast(cut)))
      #expect(keys(found) == ["a"] && found.layout.end == file.starts[1])
      #expect(found.layout.tornSize == file.bytes.count - cut - file.starts[1] && !found.index.isDamaged)
    }
  }

  @Test func `a line spans as many blocks as it needs`() throws {
    var file = File()
    try file.append(1, durable: 0, ["a", "b"], valueSize: 200_000)
    try file.append(2, durable: 1, ["c"])
    let found = try scan(file.bytes)
    #expect(keys(found) == ["a", "b", "c"] && found.layout.blockCount == 2 + 2 * 4 + 1 + 1)
    guard case .found(let place) = found.index.find("b") else {
      Issue.record("b is not there")
      return
    }
    #expect(place.length == 200_000 + 23)
    // A part of the first line is lost, but the second line is intact.
    file.zero(100_000..<100_100)
    let damaged = try scan(file.bytes)
    #expect(keys(damaged) == ["a", "b", "c"])
    #expect(isLost("a", in: damaged) && !isLost("b", in: damaged) && !isLost("c", in: damaged))
  }

  @Test func `a batch that a later block calls durable is damaged not torn`() throws {
    for (durable, isDurable) in [(UInt64(1), false), (2, true)] {
      var file = File()
      try file.append(1, durable: 0, ["a", "b"])
      try file.append(2, durable: 1, ["b"])
      try file.append(3, durable: durable, ["c"])
      // A byte in the text of the second batch.
      file.bytes[file.starts[2] - 12] ^= 1
      let found = try scan(file.bytes)
      if isDurable {
        // Its notes would have come after the first page.
        #expect(found.damage == [Int64(file.starts[1])] && found.layout.tornSize == 0)
        #expect(isLost("a", in: found) && isLost("b", in: found) && isLost("z", in: found) && !isLost("c", in: found))
      } else {
        #expect(keys(found) == ["a", "b"] && !found.index.isDamaged)
        #expect(found.layout.end == file.starts[1] && found.layout.tornSize > 0)
      }
    }
  }

  @Test func `every byte of a closed file is known`() throws {
    var file = File()
    try file.append(1, durable: 0, ["a", "b"])
    try file.append(2, durable: 1, ["b"], removing: ["a"])
    try file.close(batch: 2)
    file.zero(file.starts[1]..<file.starts[2])
    let found = try scan(file.bytes)
    // The notes at its end list the keys.
    #expect(isLost("b", in: found) && found.index.find("a") == .missing && found.index.find("z") == .missing)
    #expect(found.index.lostCount == 1 && found.layout.tornSize == 0 && found.layout.lastBatch == 2)
    #expect(found.damage == [Int64(file.starts[1])] && found.layout.end == file.starts[2])
  }

  @Test func `notes list the keys of a hole in an open file`() throws {
    var file = File()
    for number: UInt64 in 1...200 {
      let key = StoreKey("key \(number % 100)")
      try file.append(
        number, durable: number - 1, number % 10 == 0 ? [] : [key], removing: number % 10 == 0 ? [key] : [])
    }
    let sound = try scan(file.bytes)
    #expect(keys(sound).count == 90 && sound.index.lostCount == 0)
    let page = 8192..<12_288
    let damagedBatches = (1...200).filter { file.starts[$0 - 1] < page.upperBound && file.starts[$0] > page.lowerBound }
    file.zero(page)
    let found = try scan(file.bytes)
    #expect(found.damage.count == 1 && found.layout.lastBatch == 200)
    for key in (0..<100).map({ StoreKey("key \($0)") }) {
      let last = (1...200).last { StoreKey("key \($0 % 100)") == key } ?? 0
      if damagedBatches.contains(last), last % 10 != 0 {
        #expect(isLost(key, in: found), "\(key)")
      } else {
        #expect(found.index.find(key) == sound.index.find(key), "\(key)")
      }
    }
    #expect(found.index.lostCount > 0 && found.index.gap(in: .all) == nil)
  }

  @Test func `if the notes are lost too all earlier entries are lost`() throws {
    var file = File()
    for number: UInt64 in 1...300 { try file.append(number, durable: number - 1, [StoreKey("key \(number)")]) }
    file.zero(8192..<20_480)
    let found = try scan(file.bytes)
    #expect(isLost("key 1", in: found) && isLost("never written", in: found))
    #expect(!isLost("key 300", in: found) && found.layout.lastBatch == 300)
    #expect(found.index.gap(in: .all)?.range.lowerBound == "" && found.damage.count == 1)
  }

  @Test func `damage in a base loses exactly its entries`() throws {
    var file = File(base: 7)
    let baseKeys = (0..<40).map { StoreKey("key \(100 + $0)") }
    try file.append(7, durable: 7, baseKeys, valueSize: 5_000, as: .base)
    try file.append(8, durable: 7, ["key 120", "new"])
    let sound = try scan(file.bytes)
    #expect(keys(sound).count == 41 && sound.layout.baseEnd == file.starts[1] && sound.layout.blockCount > 5)

    // One page: its keys are known from the notes.
    var damaged = file
    damaged.zero(61_440..<65_536)
    let found = try scan(damaged.bytes)
    #expect(keys(found) == keys(sound) && 1...12 ~= found.index.lostCount && !isLost("key 120", in: found))

    // A long range, including its notes: only the bounds of its keys are known.
    damaged.zero(60_000..<120_000)
    let index = try scan(damaged.bytes)
    let lost = baseKeys.filter { isLost($0, in: index) }
    #expect(lost.count > 5 && lost.count < 30 && !lost.contains("key 120"))
    #expect(index.index.find("key 099") == .missing && !isLost("new", in: index))
    #expect(isLost(StoreKey(bytes: lost[0].bytes + [0x30]), in: index), "the keys between them are unknown")

    // The end of a base. A base is written as a whole, so no crash explains its truncation.
    let cut = try scan(Array(file.bytes.prefix(100_000)))
    #expect(cut.index.isDamaged && !isLost("key 100", in: cut) && isLost("key 139", in: cut))
  }

  @Test func `a base is not buffered until its end`() throws {
    let head = FileHead(codecName: "json", salt: 1, batch: 7, hasBase: true)
    var recovery = FileRecovery(head, .head)
    for number in 0..<3 {
      let start = BlockStart(part: .base, batch: 7, number: UInt32(number), isLast: false).line
      let line = StoreLine.bytes(of: .set(StoreKey(integer: number), [UInt8(ascii: "1")][...]), format: .json)
      let offset = head.end + Int64(number)
      try recovery.add(
        Block(offset: offset, end: offset + 1, isContinuation: false, text: start + line))
      #expect(recovery.found.index.entries.count == number + 1)
      #expect(recovery.isInBase && recovery.found.layout.blockCount == 2)
    }
  }

  @Test func `blocks from other places and files are ignored`() throws {
    var file = File()
    for number: UInt64 in 1...4 { try file.append(number, durable: number - 1, ["\(number)"]) }
    let (bytes, starts) = (file.bytes, file.starts)
    // Without one of them, the later blocks are at the wrong places and are not trusted.
    let found = try scan(Array(bytes[..<starts[1]] + bytes[starts[2]...]))
    #expect(keys(found) == ["1"] && found.layout.tornSize > 0)
    // A block of this file in another file with another salt.
    let other = FileHead(codecName: "json", salt: 99)
    let foreign = other.block + other.block(of: .open) + bytes[starts[0]...]
    let result = try scan(foreign)
    #expect(keys(result).isEmpty && result.layout.tornSize == bytes.count - starts[0])
  }

  @Test func `the head is repeated in other pages`() throws {
    var file = File()
    for number: UInt64 in 1...100 { try file.append(number, durable: number - 1, [StoreKey("key \(number)")]) }
    try file.close(batch: 100)
    file.zero(0..<4096)
    let found = try scan(file.bytes)
    #expect(found.head.codecName == "json" && found.layout.lastBatch == 100 && keys(found).count == 100)
    #expect(10...60 ~= found.index.lostCount && found.index.gap(in: .all) == nil)
    // The head alone.
    file = File()
    try file.append(1, durable: 0, ["a"])
    try file.close(batch: 1)
    for offset in 0..<Int(file.head.markOffset) {
      var bytes = file.bytes
      bytes[offset] ^= 0x10
      let found = try scan(bytes)
      #expect(found.head.codecName == "json" && keys(found) == ["a"], "byte \(offset)")
      #expect(found.damage == [0] && !found.index.isDamaged)
    }
  }

  @Test func `a file of invalid blocks is rejected`() throws {
    var file = File()
    try file.append(1, durable: 0, ["a"])
    let falseBlock: [UInt8] = BlockFrame.magic + [1, 1, 1, 1, 0, 0xFF, 6, 0, 0x42, 0x43, 2, 0, 0xFF, 0xFF]
    for _ in 0..<20_000 { file.bytes += falseBlock }
    #expect(throws: FileProblem.self) { try scan(file.bytes) }
  }
}
#endif
