#if Compression
import Foundation
import Larder
import LarderFiles
import LarderTesting
import TestSupport
import Testing

@testable import LarderCompressedFile

/// The loss of one disk page, anywhere in a store with all kinds of writes.
///
/// `make soak` uses a large store.
@Suite struct CompressedFileStorePageTests {
  private typealias Store = CompressedFileStore<JSONText>

  private let isSoak = !TestDepth.isShort && ProcessInfo.processInfo.environment["LARDER_CUTS"] != nil
  private let disk = SimulatedFileSystem(seed: 1)

  /// Fills a store with `count` entries, half of which are rewritten or removed after the last compaction, by batches
  /// of 1
  /// and of 1,000.
  private func fill(_ store: Store, _ count: Int, using generator: inout SeededGenerator) async throws {
    func key(_ number: Int) -> StoreKey { StoreKey("entry:\(number)") }
    func value() throws -> JSONText {
      let number = UInt32.random(in: 0 ... .max, using: &generator)
      return try JSONText("{\"name\":\"Name \(number)\",\"age\":\(number % 90)}")
    }
    for start in stride(from: 0, to: count, by: 1000) {
      try await store.apply(ChangeBatch((start..<min(start + 1000, count)).map { .set(key($0), try value()) }))
    }
    try await store.compact()
    var numbers = Array(0..<count)
    numbers.shuffle(using: &generator)
    numbers.removeLast(count / 2)
    while let number = numbers.popLast() {
      var changes: [BatchChange<JSONText>] = []
      let size = numbers.count > 999 && Int.random(in: 0..<500, using: &generator) == 0 ? 999 : 0
      for number in [number] + numbers.suffix(size) {
        changes.append(number.isMultiple(of: 3) ? .remove(key(number)) : .set(key(number), try value()))
      }
      numbers.removeLast(size)
      try await store.apply(ChangeBatch(changes))
    }
  }

  @Test func `a lost page loses only entries that its blocks held or changed`() async throws {
    var generator = SeededGenerator(seed: SeededGenerator.seedOfProcess, purpose: "lost pages")
    let seed = "\(SeededGenerator.seedVariable)=\(SeededGenerator.seedOfProcess)"
    let store = try await Store(path: "/s.gz", codec: .jsonText, fileSystem: disk)
    try await fill(store, isSoak ? 100_000 : 4_000, using: &generator)
    let open = try #require(disk.content(at: "/s.gz"))
    try await store.close()
    let closed = try #require(disk.content(at: "/s.gz"))
    for content in [closed, open] {
      var pages = Array(stride(from: 0, to: content.count, by: 4096))
      // In the last 8 KiB of an open file, all earlier writes may be lost.
      if content == open { pages.removeAll { $0 + 4096 > content.count - 8192 } }
      pages.shuffle(using: &generator)
      try StoreFileParts.expectThatAPageLosesOnlyItsEntries(
        content, pages: Array(pages.prefix(isSoak ? 400 : 10)), "\(content == open ? "open" : "closed"), \(seed)")
    }
  }

  @Test(arguments: [false, true]) func `a store with a lost page is read and counted`(isUnreadable: Bool) async throws {
    var generator = SeededGenerator(seed: SeededGenerator.seedOfProcess, purpose: "lost page")
    let store = try await Store(path: "/s.gz", codec: .jsonText, fileSystem: disk)
    try await fill(store, 2_000, using: &generator)
    let entries = try await store.entries(in: .all, limit: .max, order: .ascending)
    try await store.close()
    var content = try #require(disk.content(at: "/s.gz"))
    if !isUnreadable {
      for place in 12_288..<16_384 { content[place] = 0 }
      try disk.place(content, at: "/s.gz")
    }
    let fileSystem: any StoreFileSystem = isUnreadable ? UnreadablePages(base: disk, path: "/s.gz", pages: 3..<4) : disk
    if isUnreadable {
      await expectStoreError(.ioFailed) { try await Store(path: "/s.gz", codec: .jsonText, fileSystem: fileSystem) }
    }
    let again = try await Store(path: "/s.gz", codec: .jsonText, access: .readOnly, fileSystem: fileSystem)
    let findings = try await again.verify().findings
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
