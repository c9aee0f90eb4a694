#if Compression
import Larder
import LarderTesting
import TestSupport
import Testing

@testable import LarderCompressedFile

/// Bytes after the last batch: a torn batch, an ending, or bytes of another program.
@Suite struct CompressedFileStoreTailTests {
  private typealias Store = CompressedFileStore<JSONText>

  private let disk = SimulatedFileSystem(seed: 1)
  private let foreign = Array("these bytes no store has written, and none may remove them".utf8)

  private func open(_ durability: Durability.File = .synced) async throws -> Store {
    try await Store(path: "/s.gz", codec: .jsonText, durability: durability, fileSystem: disk)
  }

  private func content() throws -> [UInt8] { try #require(disk.content(at: "/s.gz")) }

  private func crash() {
    disk.killProcess()
    disk.restart()
  }

  private func write(_ count: Int, to store: Store) async throws {
    for number in 0..<count { try await store.setValue(JSONText("\(number)"), forKey: StoreKey("key \(number)")) }
  }

  private func findings() async throws -> [String] {
    let store = try await Store(path: "/s.gz", codec: .jsonText, access: .immutable, fileSystem: disk)
    let findings = try await store.verify().findings.map(\.message)
    try await store.close()
    return findings
  }

  // MARK: Removed notes

  @Test func `notes of a torn batch are ignored`() async throws {
    var generator = SeededGenerator(seed: 7, purpose: "torn")
    for pageCount in 2...3 {
      let store = try await open()
      var count = 0
      // The next block is the first one in its page, so it has notes.
      while try content().count < pageCount * 4096 {
        try await store.setValue(JSONText("\(count)"), forKey: StoreKey("key \(count)"))
        count += 1
      }
      let size = try content().count
      let values = try (0..<3).map { _ in try StoreFileParts.longValue(40_000, using: &generator) }
      try await store.apply(ChangeBatch(values.enumerated().map { .set(StoreKey("torn \($0)"), $1) }))
      let blocks = try StoreFileParts.blocks(of: content()).filter { $0.range.lowerBound >= size }
      let torn = try Array(content().prefix(#require(blocks.first).range.upperBound + 100))
      crash()
      try disk.place(torn, at: "/s.gz")
      let again = try await open()
      #expect(try again.count(in: .all) == count)
      try await again.setValue(JSONText("1"), forKey: "new")
      try await again.close()
      try StoreFileParts.expectThatAPageLosesOnlyItsEntries(content(), "\(count) writes before the torn one")
      try disk.removeFile(at: "/s.gz")
    }
  }

  @Test func `notes of a removed ending are ignored`() async throws {
    for count in [90, 120, 150] {
      let store = try await open()
      try await write(count, to: store)
      try await store.close()
      // A byte of the end-of-file mark.
      var content = try content()
      let mark = try #require(content.indices.first { content[$0...].starts(with: "{\"end\":".utf8) })
      content[mark + 10] ^= 1
      try disk.place(content, at: "/s.gz")
      let again = try await open()
      #expect(try again.count(in: .all) == count)
      try await again.setValue(JSONText("1"), forKey: "new")
      try await again.close()
      try StoreFileParts.expectThatAPageLosesOnlyItsEntries(self.content(), "\(count) writes")
      try disk.removeFile(at: "/s.gz")
    }
  }

  // MARK: Bytes of other programs

  @Test(arguments: [0, 50]) func `bytes that overwrite the end are kept`(_ cut: Int) async throws {
    let store = try await open()
    try await write(100, to: store)
    try await store.close()
    var content = try content()
    content.replaceSubrange((content.count - foreign.count - cut)..., with: foreign)
    try disk.place(content, at: "/s.gz")
    let again = try await open()
    #expect(try await !findings().isEmpty)
    try await again.setValue(JSONText("1"), forKey: "new")
    #expect(try self.content().dropFirst(4096).starts(with: content[4096...]))
    try await again.close()
    let last = try await open()
    #expect(try last.count(in: .all) == 101 && last.value(forKey: "new") == JSONText("1"))
    #expect(try self.content().dropFirst(4096).starts(with: content[4096...]))
    #expect(try await !findings().isEmpty)
  }

  @Test func `bytes after the end survive a crash of the next writer`() async throws {
    var deaths = 0
    for step in 1..<60 {
      let store = try await open()
      try await write(20, to: store)
      try await store.close()
      try disk.place(content() + foreign, at: "/s.gz")
      let size = try content().count
      let again = try await open()
      disk.schedule(.powerLoss, atOperation: disk.operationCount + step)
      let hasFailed = await (try? again.setValue(JSONText("1"), forKey: "new")) == nil
      disk.clearFaults()
      if !disk.hasPower { disk.restart() } else { crash() }
      let third = try await open()
      #expect(try third.count(in: .all) == 20 || third.value(forKey: "new") != nil, "step \(step)")
      #expect(try await !findings().isEmpty, "step \(step)")
      try await third.setValue(JSONText("2"), forKey: "other")
      #expect(try content().dropFirst(size - foreign.count).starts(with: foreign), "step \(step)")
      try await third.close()
      #expect(try await open().value(forKey: "other") == JSONText("2"), "step \(step)")
      #expect(try content().dropFirst(size - foreign.count).starts(with: foreign), "step \(step)")
      crash()
      try disk.removeFile(at: "/s.gz")
      guard hasFailed else { break }
      deaths += 1
    }
    #expect(2..<59 ~= deaths)
  }

  // MARK: Torn

  @Test(arguments: [false, true]) func `sound blocks after a torn one are reported`(_ isOneBatch: Bool) async throws {
    let store = try await open(isOneBatch ? .synced : .buffered)
    try await write(50, to: store)
    let size = try content().count
    if isOneBatch {
      try await store.apply(ChangeBatch((0..<1000).map { .set(StoreKey("key \($0)"), JSONText(string: "new \($0)")) }))
    } else {
      try await write(300, to: store)
    }
    crash()
    #expect(try await findings().isEmpty)
    var content = try content()
    content[size + 100] ^= 1
    try disk.place(content, at: "/s.gz")
    #expect(try await findings().joined().contains("sound blocks follow"))
    // A torn batch without anything after it is the result of a crash.
    try disk.place(content.dropLast(content.count - size - 120), at: "/s.gz")
    #expect(try await findings().isEmpty)
  }

  @Test func `notes never reach past the end`() async throws {
    // A tiny file with a torn mark.
    let store = try await open()
    try await store.setValue(JSONText("1"), forKey: "a")
    var content = try content()
    let mark = try #require(content.indices.first { content[$0...].starts(with: "{\"end\":".utf8) })
    content[mark + 10] ^= 1
    for cut in 0...content.count - mark - 200 {
      guard let found = try? StoreFileParts.scan(content.dropLast(cut)) else { continue }
      #expect(found.notesEnd <= found.layout.end, "cut \(cut)")
    }
  }

  // MARK: Closing

  @Test func `power loss never makes a closed file look truncated`() async throws {
    for seed in 0..<3 as Range<UInt64> {
      for isClosing in [true, false] {
        var step = 0
        var isDone = false
        while !isDone {
          step += 1
          let disk = SimulatedFileSystem(seed: seed)
          var store = try await Store(path: "/s.gz", codec: .jsonText, fileSystem: disk)
          try await write(30, to: store)
          if !isClosing {
            try await store.close()
            store = try await Store(path: "/s.gz", codec: .jsonText, fileSystem: disk)
          }
          disk.schedule(.powerLoss, atOperation: disk.operationCount + step)
          if isClosing {
            isDone = await (try? store.close()) != nil
          } else {
            isDone = await (try? store.setValue(JSONText("1"), forKey: "new")) != nil
          }
          disk.clearFaults()
          if disk.hasPower { disk.losePower() }
          disk.restart()
          let again = try await Store(path: "/s.gz", codec: .jsonText, fileSystem: disk)
          // The mark itself may be torn.
          let findings = try await again.verify().findings.map(\.message)
          #expect(
            !findings.contains { $0.contains("was truncated") || $0.contains("the end of the file is damaged, after") },
            "\(isClosing ? "closing" : "writing"), step \(step), seed \(seed): \(findings)")
        }
      }
    }
  }

  @Test func `the mark of a full disk is durable`() async throws {
    let store = try await open()
    disk.capacity = 20_000
    await expectStoreError(.full) {
      for number in 0... { try await store.setValue(JSONText("\(number)"), forKey: StoreKey("key \(number)")) }
    }
    try await store.close()
    for _ in 0..<8 { disk.losePower() }
    disk.restart()
    #expect(try StoreFileParts.scan(content()).isClosed)
  }
}
#endif
