#if Compression
import Larder
import Testing

@testable import LarderCompression

/// What is good, torn, damaged or not ours in a sequence of bytes.
@Suite struct FileScanTests {
  private let composer = BlockComposer(level: 6)

  /// A file in the making.
  private struct File {
    var bytes: [UInt8] = []
    /// Where each batch begins, and the end.
    var starts: [Int] = []
  }

  private func head(hasBase: Bool = false, batch: UInt64 = 0) throws -> File {
    let bytes = try composer.head(codecName: "json", batch: batch, hasBase: hasBase)
    return File(bytes: bytes, starts: [bytes.count])
  }

  /// Appends a batch of keys with values as long as said.
  private func append(
    _ number: UInt64, durable: UInt64, _ keys: [StoreKey], valueSize: Int = 1, as kind: BlockHeader.Kind = .batch,
    to file: inout File
  ) throws {
    var sequence = BlockSequence(
      kind, batch: number, durableBatch: durable, at: Int64(file.bytes.count), by: composer, isCompressed: false)
    let value = [UInt8(ascii: "\"")] + [UInt8](repeating: 0x61, count: valueSize) + [UInt8(ascii: "\"")]
    for key in keys { try sequence.add(StoreLine.bytes(of: .set(key, value[...]), format: .json)[...], .set(key, ())) }
    try sequence.finish()
    file.bytes += sequence.takeBytes()
    file.starts.append(file.bytes.count)
  }

  private func scan(_ bytes: [UInt8]) throws -> FileScan.Result {
    try FileScan.scan(size: Int64(bytes.count), inflaters: StreamPool { () throws(ZlibError) in try Inflater() }) {
      Array(bytes[Int($0.lowerBound)..<Int($0.upperBound)])
    }
  }

  private func keys(_ result: FileScan.Result) -> [StoreKey] {
    result.recovery.index.entries.keys(in: .all, limit: .max, order: .ascending)
  }

  @Test func batchesTakeEffectOneAfterAnother() throws {
    var file = try head()
    try append(1, durable: 0, ["b"], to: &file)
    try append(2, durable: 1, ["a", "c"], to: &file)
    try append(3, durable: 2, [], to: &file)
    let result = try scan(file.bytes)
    #expect(keys(result) == ["a", "b", "c"] && result.recovery.lastBatch == 3 && result.recovery.blockCount == 4)
    #expect(result.recovery.codecName == "json" && !result.isClosed && result.tornSize == 0)
    #expect(result.recovery.completeEnd == file.bytes.count && result.recovery.baseEnd == file.starts[0])
    let closed = try scan(file.bytes + FileScan.endOfFileMarker)
    #expect(closed.isClosed && closed.tornSize == 0 && closed.recovery.completeEnd == file.bytes.count)
    // What stands behind the mark is no end of ours.
    #expect(try !scan(file.bytes + FileScan.endOfFileMarker + [0]).isClosed)
  }

  @Test func aBatchOfSeveralBlocksHappensWithItsLast() throws {
    var file = try head()
    try append(1, durable: 0, ["a"], to: &file)
    try append(2, durable: 1, ["b", "c", "d"], valueSize: 50_000, to: &file)
    #expect(try scan(file.bytes).recovery.blockCount == 5)
    for cut in [1, 10_000, 60_000, 120_000] {
      let result = try scan(Array(file.bytes.dropLast(cut)))
      #expect(keys(result) == ["a"] && result.recovery.completeEnd == file.starts[1])
      #expect(result.tornSize == file.bytes.count - cut - file.starts[1] && !result.recovery.index.isDamaged)
    }
  }

  @Test func whatALaterBlockSaysWasDurableIsDamagedAndNotTorn() throws {
    for (durable, isDurable) in [(UInt64(1), false), (2, true)] {
      var file = try head()
      try append(1, durable: 0, ["a", "b"], to: &file)
      try append(2, durable: 1, ["b"], to: &file)
      try append(3, durable: durable, ["c"], to: &file)
      // In the text of the second batch.
      file.bytes[file.starts[2] - 12] ^= 1
      let result = try scan(file.bytes)
      if isDurable {
        #expect(keys(result) == ["a", "b", "c"] && result.recovery.damage == [Int64(file.starts[1])])
        #expect(result.recovery.index.find("b") == .lost(block: Int64(file.starts[1])))
        #expect(result.recovery.index.lostCount == 1 && result.tornSize == 0)
      } else {
        #expect(keys(result) == ["a", "b"] && !result.recovery.index.isDamaged)
        #expect(result.recovery.completeEnd == file.starts[1])
      }
    }
  }

  @Test func theTextSaysWhatIsLostWhereTheHeaderIsDamaged() throws {
    var file = try head()
    try append(1, durable: 0, ["a", "b"], to: &file)
    try append(2, durable: 1, ["b", "x"], to: &file)
    try append(3, durable: 2, ["c"], to: &file)
    for offset in 0..<60 {
      var bytes = file.bytes
      bytes[file.starts[1] + offset] ^= 0x10
      let index = try scan(bytes).recovery.index
      #expect(index.lostCount == 2 && index.gaps.isEmpty && index.entries["a"]?.isLost == false, "byte \(offset)")
    }
  }

  @Test func whereBothAreDamagedTheTextIsNotBelieved() throws {
    var file = try head()
    try append(1, durable: 0, ["a"], to: &file)
    try append(2, durable: 1, ["b"], to: &file)
    try append(3, durable: 2, ["c"], to: &file)
    let start = file.starts[1]
    let key = try #require(file.bytes[start...].firstRange(of: Array("\"b\"".utf8))).lowerBound + 1
    file.bytes[start + 30] ^= 1
    file.bytes[key] = UInt8(ascii: "x")
    let index = try scan(file.bytes).recovery.index
    #expect(index.find("x") == .lost(block: Int64(start)) && index.gaps.map(\.range) == [..<"c", "c\u{0}"...])
    #expect(index.find("a") == .lost(block: Int64(start)), "it may have been changed by what is lost")
    #expect(index.find("c") != .lost(block: Int64(start)))
  }

  @Test func ofABaseOnlyWhatStoodThereIsLost() throws {
    var file = try head(hasBase: true, batch: 7)
    let baseKeys = (0..<40).map { StoreKey("key \(100 + $0)") }
    try append(7, durable: 7, baseKeys, valueSize: 5_000, as: .base, to: &file)
    try append(8, durable: 7, ["key 120", "new"], to: &file)
    let sound = try scan(file.bytes)
    #expect(keys(sound).count == 41 && sound.recovery.baseEnd == file.starts[1] && sound.recovery.blockCount > 5)

    // A whole stretch of it, headers and all.
    var bytes = file.bytes
    bytes.replaceSubrange(60_000..<90_000, with: [UInt8](repeating: 0, count: 30_000))
    let index = try scan(bytes).recovery.index
    let lost = baseKeys.filter { if case .lost = index.find($0) { true } else { false } }
    #expect(lost.count > 5 && lost.count < 20 && !lost.contains("key 120"))
    #expect(index.find("key 099") == .missing && index.find("new") != .missing)
    #expect(index.find(StoreKey(bytes: lost[0].bytes + [0x30])) != .missing, "nobody knows what stood between")

    // The end of it: a base comes into being whole, so no crash explains that.
    let cut = try scan(Array(file.bytes.prefix(100_000)))
    #expect(cut.recovery.index.isDamaged && cut.recovery.index.find("key 100") != .missing)
    #expect(cut.recovery.index.find("key 139") == .lost(block: 100_000))
  }

  @Test func nothingOfABaseWaitsInMemoryForItsEnd() throws {
    var recovery = FileRecovery()
    func header(_ kind: BlockHeader.Kind, _ number: UInt32, flags: BlockHeader.Flags = []) -> BlockHeader {
      BlockHeader(kind: kind, flags: flags, batch: 7, durableBatch: 7, number: number, notes: [])
    }
    try recovery.add(header(.head, 0), text: StoreLine.head(codecName: "json"), at: 0, end: 100)
    for number in 0..<3 {
      let block = Int64(100 + number)
      let line = StoreLine.bytes(of: .set(StoreKey(integer: number), [UInt8(ascii: "1")][...]), format: .json)
      try recovery.add(header(.base, UInt32(number)), text: line, at: block, end: block + 1)
      #expect(recovery.index.entries.count == number + 1)
      #expect(recovery.isInBase && recovery.blockCount == 1)
    }
  }

  @Test func blocksThatAreMissingOrOutOfOrderAreReported() throws {
    var file = try head()
    for number: UInt64 in 1...4 { try append(number, durable: number - 1, ["\(number)"], to: &file) }
    let (bytes, starts) = (file.bytes, file.starts)
    for damaged in [
      Array(bytes[..<starts[1]] + bytes[starts[2]...]), Array(bytes[..<starts[2]] + bytes[starts[1]...]),
      Array(bytes[starts[0]...]),
    ] {
      let error = #expect(throws: FileScan.Problem.self) { try scan(damaged) }
      guard case .damaged = error else {
        Issue.record("\(String(describing: error))")
        continue
      }
    }
  }

  @Test func theHeadIsToldByEitherHalf() throws {
    var file = try head()
    try append(1, durable: 0, ["a"], to: &file)
    for offset in 0..<file.starts[0] {
      var bytes = file.bytes
      bytes[offset] ^= 0x10
      let result = try scan(bytes)
      #expect(result.recovery.codecName == "json" && keys(result) == ["a"], "byte \(offset)")
      #expect(result.recovery.damage == [0] && !result.recovery.index.isDamaged)
    }
  }
}
#endif
