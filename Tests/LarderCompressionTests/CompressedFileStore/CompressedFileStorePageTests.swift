#if Compression
import Foundation
import Larder
import LarderTesting
import Testing

@testable import LarderCompression

/// One page of a disk that is lost, anywhere in a store that was written to in every way; `make soak` takes a large one.
@Suite struct CompressedFileStorePageTests {
  private typealias Store = CompressedFileStore<JSONText>

  private let isSoak = ProcessInfo.processInfo.environment["LARDER_CUTS"] != nil
  private let disk = SimulatedFileSystem(seed: 1)

  /// A store with as many entries as said, half of them rewritten or removed by batches of 1 and of 1,000 since the last
  /// compaction.
  private func fill(_ store: Store, _ count: Int, using generator: inout SeededGenerator) async throws {
    func key(_ number: Int) -> StoreKey { StoreKey("entry:\(number)") }
    func value() throws -> JSONText {
      let number = UInt32.random(in: 0 ... .max, using: &generator)
      return try JSONText("{\"name\":\"Name \(number)\",\"age\":\(number % 90)}")
    }
    for start in stride(from: 0, to: count, by: 1000) {
      try await store.apply(ChangeBatch((start..<min(start + 1000, count)).map { .set(key($0), try value()) }))
    }
    try await store.information.maintenance?.compact()
    var numbers = Array(0..<count)
    numbers.shuffle(using: &generator)
    numbers.removeLast(count / 2)
    while let number = numbers.popLast() {
      var changes: [Change<JSONText>] = []
      let size = numbers.count > 999 && Int.random(in: 0..<500, using: &generator) == 0 ? 999 : 0
      for number in [number] + numbers.suffix(size) {
        changes.append(number.isMultiple(of: 3) ? .remove(key(number)) : .set(key(number), try value()))
      }
      numbers.removeLast(size)
      try await store.apply(ChangeBatch(changes))
    }
  }

  private func scan(_ content: [UInt8]) throws -> FoundFile {
    try FileScan.scan(size: Int64(content.count), inflaters: StreamPool { () throws(ZlibError) in try Inflater() }) {
      Array(content[Int($0.lowerBound)..<Int($0.upperBound)])
    }
  }

  /// What each block has changed.
  private func blocks(of content: [UInt8]) throws -> [(range: Range<Int>, keys: [StoreKey])] {
    let salt = try FileHead(readingLine: content[23...].prefix { $0 != 10 }).salt
    var finder = BlockFinder(
      FileWindow(size: Int64(content.count)) { Array(content[Int($0.lowerBound)..<Int($0.upperBound)]) }, salt: salt,
      inflaters: StreamPool { () throws(ZlibError) in try Inflater() })
    var blocks: [(range: Range<Int>, keys: [StoreKey])] = []
    var offset: Int64 = 0
    while let block = try finder.block(at: offset) {
      var keys: [StoreKey] = []
      if let (start, startEnd) = BlockStart.read(block.text), start.part != .ending {
        try StoreText.forEachChange(in: block.text, from: StoreText.changesStart(in: block.text, after: startEnd)) {
          change, _, _ in change.key.map { keys.append($0) }
        }
      }
      blocks.append((Int(block.offset)..<Int(block.end), keys))
      offset = block.end
    }
    return blocks
  }

  @Test func aLostPageCostsWhatItsBlocksHeldOrChanged() async throws {
    var generator = SeededGenerator(seed: SeededGenerator.seedOfProcess, purpose: "lost pages")
    let seed = "\(SeededGenerator.seedVariable)=\(SeededGenerator.seedOfProcess)"
    let store = try await Store(path: "/s.gz", codec: .jsonText, fileSystem: disk)
    try await fill(store, isSoak ? 100_000 : 4_000, using: &generator)
    let open = try #require(disk.content(at: "/s.gz"))
    try await store.close()
    let closed = try #require(disk.content(at: "/s.gz"))
    for content in [closed, open] {
      let sound = try scan(content)
      #expect(!sound.index.isDamaged && sound.damage.isEmpty && sound.remarks.isEmpty)
      let blocks = try blocks(of: content)
      var pages = Array(stride(from: 0, to: content.count, by: 4096))
      // In the last 8 KiB of a file that is open all that was written before may be lost.
      if content == open { pages.removeAll { $0 + 4096 > content.count - 8192 } }
      pages.shuffle(using: &generator)
      for page in pages.prefix(isSoak ? 400 : 30) {
        var damaged = content
        for place in page..<min(page + 4096, content.count) { damaged[place] = 0 }
        let found = try scan(damaged)
        let context: Comment = "page at \(page) of \(content.count), \(content == open ? "open" : "closed"), \(seed)"
        let touched = blocks.filter { $0.range.overlaps(page..<page + 4096) }
        let allowed = Set(touched.flatMap(\.keys))
        #expect(found.index.gap(in: .all) == nil && found.lastBatch == sound.lastBatch, context)
        var wrong: [StoreKey] = []
        sound.index.entries.forEach { key, place in
          switch found.index.find(key) {
          case .found(place): return
          case .lost where allowed.contains(key): return
          default: wrong.append(key)
          }
        }
        found.index.entries.forEach { key, _ in
          // Nothing that was removed is back.
          if !sound.index.entries.contains(key) { wrong.append(key) }
        }
        #expect(wrong.isEmpty, context)
      }
    }
  }

  @Test func theStoreOfALostPageIsReadCountedAndCopied() async throws {
    var generator = SeededGenerator(seed: SeededGenerator.seedOfProcess, purpose: "lost page")
    let store = try await Store(path: "/s.gz", codec: .jsonText, fileSystem: disk)
    try await fill(store, 2_000, using: &generator)
    let entries = try store.entries(in: .all, limit: .max, order: .ascending)
    try await store.close()
    var content = try #require(disk.content(at: "/s.gz"))
    for place in 12_288..<16_384 { content[place] = 0 }
    try disk.place(content, at: "/s.gz")
    let again = try await Store(path: "/s.gz", codec: .jsonText, access: .readOnly, fileSystem: disk)
    let findings = try await #require(again.information.maintenance).verify().findings
    let reported = Set(findings.compactMap(\.key))
    #expect(try again.count(in: .all) == entries.count)
    #expect(try again.keys(in: .all, limit: .max, order: .ascending) == entries.map(\.key))
    #expect(reported.count > 5 && reported.count < 500)
    for entry in entries {
      if reported.contains(entry.key) {
        #expect(throws: StoreError.self) { try again.value(forKey: entry.key) }
      } else {
        #expect(try again.value(forKey: entry.key) == entry.value)
      }
    }
  }
}
#endif
