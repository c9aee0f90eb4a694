#if Compression
import Larder
import LarderTesting
import TestSupport
import Testing

@testable import LarderCompressedFile

/// Damage next to values that span several blocks.
@Suite struct CompressedFileStoreLongValueTests {
  private typealias Store = CompressedFileStore<JSONText>

  private let disk = SimulatedFileSystem(seed: 1)

  private func store() async throws -> Store {
    try await Store(path: "/s.gz", codec: .jsonText, fileSystem: disk)
  }

  private func content() throws -> [UInt8] { try #require(disk.content(at: "/s.gz")) }

  private func write(_ count: Int, _ name: String, to store: Store) async throws {
    for number in 0..<count {
      try await store.setValue(JSONText("\(number)"), forKey: StoreKey("\(name) \(number)"))
    }
  }

  @Test(arguments: TestDepth.part(of: [false, true], oneIn: 2, for: "a page next to a long value"))
  func `a page next to a long value loses only its entries`(_ isCompacted: Bool) async throws {
    var generator = SeededGenerator(seed: SeededGenerator.seedOfProcess, purpose: "long values")
    let seed = "\(SeededGenerator.seedVariable)=\(SeededGenerator.seedOfProcess)"
    let store = try await store()
    for round in 0..<4 {
      try await write(30, "key \(round)", to: store)
      let value = try StoreFileParts.longValue(.random(in: 70_000...140_000, using: &generator), using: &generator)
      try await store.setValue(value, forKey: StoreKey("key \(round) long"))
    }
    if isCompacted { try await store.compact() }
    try await write(200, "last", to: store)
    let open = try content()
    try StoreFileParts.expectThatAPageLosesOnlyItsEntries(open, upTo: open.count - 12_287, "open, \(seed)")
    try await store.close()
    try StoreFileParts.expectThatAPageLosesOnlyItsEntries(content(), "closed, \(seed)")
  }

  /// Blocks that had no notes when the file was opened get them later, including the continuation blocks of a long
  /// line.
  @Test func `a page next to a long value in a reopened file loses only its entries`() async throws {
    var generator = SeededGenerator(seed: SeededGenerator.seedOfProcess, purpose: "long values")
    let seed = "\(SeededGenerator.seedVariable)=\(SeededGenerator.seedOfProcess)"
    for rest in TestDepth.part(of: [0, 1, 20], oneIn: 3, for: "values after a long one") {
      let disk = SimulatedFileSystem(seed: 1)
      for round in 0..<4 {
        let store = try await Store(path: "/s.gz", codec: .jsonText, fileSystem: disk)
        try await write(20, "key \(round)", to: store)
        let value = try StoreFileParts.longValue(.random(in: 66_000...90_000, using: &generator), using: &generator)
        try await store.setValue(value, forKey: StoreKey("key \(round) long"))
        try await write(rest, "rest \(round)", to: store)
        if round == 3 { try await store.close() }
        disk.killProcess()
        disk.restart()
      }
      let content = try #require(disk.content(at: "/s.gz"))
      try StoreFileParts.expectThatAPageLosesOnlyItsEntries(content, "\(rest), \(seed)")
    }
  }

  @Test func `every truncation of a compacted file reports its missing entries`() async throws {
    var generator = SeededGenerator(seed: SeededGenerator.seedOfProcess, purpose: "long values")
    let store = try await store()
    try await write(50, "a", to: store)
    let value = try StoreFileParts.longValue(150_000, using: &generator)
    try await store.setValue(value, forKey: "m long")
    try await write(50, "z", to: store)
    try await store.compact()
    try await store.close()
    let content = try content()
    let sound = try StoreFileParts.scan(content)
    for cut in stride(from: 4096, to: content.count, by: 4096) {
      let found = try StoreFileParts.scan(Array(content.prefix(cut)))
      sound.index.entries.forEach { key, place in
        let finding = found.index.find(key)
        #expect(finding != .missing, "\(key), cut at \(cut)")
        if case .found(let other) = finding { #expect(other == place) }
      }
    }
  }
}
#endif
