#if Compression
import Foundation
import Larder
import LarderFiles
import LarderTesting
import Testing
import TestSupport

@testable import LarderCompressedFile
@testable import LarderCompression

@Suite struct CompressedFileStoreTests {
  let disk = SimulatedFileSystem(seed: 1)

  private func store(
    durability: Durability.File = .synced, createsIfMissing: Bool = true, cacheSize: Int = 1 << 20
  ) async throws -> CompressedFileStore<JSONText> {
    try await CompressedFileStore(
      path: "/s.gz", codec: .jsonText, durability: durability, createsIfMissing: createsIfMissing,
      cacheSize: cacheSize, fileSystem: disk)
  }

  private func details(_ store: some MaintainableStore) async throws -> [String: Int64] {
    let statistics = try await store.storeStatistics()
    return Dictionary(uniqueKeysWithValues: statistics.details.map { ($0.name, $0.value) })
  }

  private func text(_ count: Int, _ number: Int = 0) throws -> JSONText {
    // Half of the value is almost random, so that it does not compress to nothing.
    var generator = SeededGenerator(seed: UInt64(number))
    let digits = (0..<count / 2).map { _ in String(UInt8.random(in: 0..<10, using: &generator)) }
    return JSONText(string: digits.joined() + String(repeating: "x", count: count - count / 2))
  }

  // MARK: Opening and closing

  @Test func `closing without a write changes nothing`() async throws {
    try await store().close()
    let content = disk.content(at: "/s.gz")
    #expect(content?.suffix(28) == BlockFrame.endOfFileMarker[...])
    let again = try await store()
    #expect(try again.count(in: .all) == 0)
    try await again.close()
    #expect(disk.content(at: "/s.gz") == content)
    #expect(try disk.contentsOfDirectory(at: "/").sorted() == ["s.gz", "s.gz.lock"])
    #expect(try disk.attributes(at: "/s.gz")?.permissions == 0o600)
  }

  @Test func `a missing store is not created without the option`() async throws {
    await expectStoreError(.notFound) { try await store(createsIfMissing: false) }
    #expect(try disk.contentsOfDirectory(at: "/") == [])
  }

  @Test func `a newer version is refused`() async throws {
    var line = String(decoding: FileHead(codecName: "json", salt: 9).line, as: UTF8.self)
    line.replace("{\"larder\":2", with: "{\"larder\":3,\"new\":[true]")
    let content = BlockComposer.storedBlock(Array(line.utf8), salt: 9, at: 0) + BlockFrame.endOfFileMarker
    try disk.place(content, at: "/s.gz")
    let error = await expectStoreError(.versionMismatch) { try await store() }
    #expect(error?.message.contains("version 3") == true)
    #expect(disk.content(at: "/s.gz") == content)
  }

  @Test func `a declared size does not allocate memory`() async throws {
    let inflaters = StreamPool { () throws(ZlibError) in try ZlibInflater() }
    // A block that falsely claims 64 KiB of text, and one that claims far more.
    for size: UInt32 in [65_536, .max] {
      for isCompressed in [false, true] {
        let text = Array("{\"remove\":\"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\"}\n".utf8)
        var block = try BlockComposer(level: 6).block(text, isCompressed: isCompressed, salt: 1, at: 0)
        withUnsafeBytes(of: size.littleEndian) { block.replaceSubrange(block.count - 4..<block.count, with: $0) }
        #expect(try block.withUnsafeBytes { try BlockText.text(of: $0, by: inflaters) } == nil)
        #expect(try block.withUnsafeBytes { try BlockText.checkedText(of: $0, by: inflaters) } == nil)
      }
    }
  }

  @Test func `an oversized block is damage`() throws {
    let inflaters = StreamPool { () throws(ZlibError) in try ZlibInflater() }
    for (size, isAllowed) in [(65_536, true), (65_537, false), (1 << 20, false)] {
      let block = try BlockComposer(level: 6).block(
        [UInt8](repeating: 0x61, count: size), isCompressed: true, salt: 1, at: 0)
      let text = try block.withUnsafeBytes { try BlockText.text(of: $0, by: inflaters) }
      #expect(text?.count == (isAllowed ? size : nil))
    }
  }

  @Test(arguments: [false, true]) func `recovered writes are durable after synchronizing or closing`(
    _ isClosed: Bool
  ) async throws {
    for seed in 0..<20 as Range<UInt64> {
      let disk = SimulatedFileSystem(seed: seed)
      func open(_ durability: Durability.File) async throws -> CompressedFileStore<Int> {
        try await CompressedFileStore(path: "/s.gz", codec: .json(), durability: durability, fileSystem: disk)
      }
      try await open(.buffered).setValue(1, forKey: "a")
      disk.killProcess()
      disk.restart()
      let store = try await open(.synced)
      #expect(try store.value(forKey: "a") == 1)
      if isClosed { try await store.close() } else { try await store.synchronize() }
      disk.losePower()
      disk.restart()
      #expect(try await open(.synced).value(forKey: "a") == 1, "seed \(seed)")
    }
  }

  // MARK: Values

  @Test(arguments: [0, 1 << 20]) func `a value may be larger than a block`(_ cacheSize: Int) async throws {
    var store = try await store(cacheSize: cacheSize)
    let sizes = [10, 60_000, 64_975, 65_000, 65_536, 200_000, 3]
    for (number, size) in sizes.enumerated() {
      try await store.setValue(text(size, number), forKey: StoreKey("key \(number)"))
    }
    for step in 0..<3 {
      if step == 1 { try await store.compact() }
      if step == 2 {
        try await store.close()
        store = try await self.store(cacheSize: cacheSize)
      }
      for (number, size) in sizes.enumerated() {
        #expect(try store.value(forKey: StoreKey("key \(number)")) == text(size, number), "\(step), \(size)")
      }
      let entries = try await store.entries(in: .all, limit: .max, order: .descending)
      #expect(try entries.map(\.value) == sizes.indices.reversed().map { try text(sizes[$0], $0) })
    }
    #expect(try await store.verify().findings == [])
  }

  @Test func `a small batch is stored and a large one compressed`() async throws {
    let store = try await store()
    try await store.setValue(JSONText("\"a value that can be seen\""), forKey: "small")
    #expect(disk.content(at: "/s.gz").map { String(decoding: $0, as: UTF8.self) }?.contains("can be seen") == true)
    let before = disk.content(at: "/s.gz")?.count ?? 0
    try await store.setValue(text(40_000), forKey: "large")
    let size = (disk.content(at: "/s.gz")?.count ?? 0) - before
    #expect(size > 8_000 && size < 20_000, "\(size)")
  }

  @Test func `the cache of blocks is bounded`() async throws {
    let store = try await store(durability: .buffered, cacheSize: 100_000)
    for number in 0..<50 { try await store.setValue(text(10_000, number), forKey: StoreKey(integer: number)) }
    for round in 0..<3 {
      for number in 0..<50 {
        #expect(try store.value(forKey: StoreKey(integer: number)) == text(10_000, number))
        let cached = try await details(store)["cachedBytes"] ?? 0
        #expect(cached <= 100_000 && (cached > 50_000 || (round == 0 && number < 8)))
      }
    }
  }

  @Test(arguments: [0, 1 << 20]) func `reads of several keys go block by block and scans bypass the cache`(
    _ cacheSize: Int
  ) async throws {
    let store = try await store(durability: .buffered, cacheSize: cacheSize)
    for number in 0..<60 { try await store.setValue(text(1_000, number), forKey: StoreKey("key \(10 + number)")) }
    try await store.compact()
    let blocks = Int(try #require(try await details(store)["blocks"]))
    // Alternates between both ends, so that each key is in another block than the previous one.
    let keys = (0..<30).flatMap { [StoreKey("key \(10 + $0)"), StoreKey("key \(69 - $0)")] }
    var count = disk.operationCount
    #expect(try await store.entries(in: .all, limit: .max, order: .descending).count == 60)
    #expect(disk.operationCount - count <= 2 * blocks)
    #expect(try await details(store)["cachedBytes"] == 0)
    count = disk.operationCount
    #expect(try await store.values(forKeys: keys).compactMap(\.self).count == 60)
    #expect(disk.operationCount - count <= 2 * blocks && 2 * blocks < 30)
    count = disk.operationCount
    #expect(try await store.values(forKeys: keys).compactMap(\.self).count == 60)
    #expect((disk.operationCount == count) == (cacheSize > 0))
  }

  // MARK: Compaction

  @Test func `the new file keeps the permissions`() async throws {
    let store = try await store()
    try await store.setValue(JSONText("1"), forKey: "a")
    try disk.open("/s.gz", .readWrite).setPermissions(0o640)
    try await store.compact()
    #expect(try disk.attributes(at: "/s.gz")?.permissions == 0o640)
    try await store.backup(to: "/copy.gz")
    #expect(try disk.attributes(at: "/copy.gz")?.permissions == 0o600)
  }

  @Test func `compaction keeps everything once and in order`() async throws {
    var store = try await store(durability: .buffered)
    for round in 0..<4 {
      for number in 0..<100 {
        try await store.setValue(text(300, number + round), forKey: StoreKey("key \((number * 37) % 100)"))
      }
    }
    try await store.removeAll(in: "key 5"..<"key 6")
    let expected = try await store.entries(in: .all, limit: .max, order: .ascending)
    let before = try await details(store)
    #expect(before["liveTextBytes"]! < before["textBytes"]! / 3)
    try await store.compact()
    let after = try await details(store)
    #expect(after["deadTextBytes"] == 0 && after["liveTextBytes"] == before["liveTextBytes"], "\(after)")
    #expect(after["uncompactedBytes"]! < 200 && after["percentOfText"]! < 50)
    #expect(try await store.entries(in: .all, limit: .max, order: .ascending) == expected)
    let content = disk.content(at: "/s.gz")
    try await store.compact()
    #expect(disk.content(at: "/s.gz") == content, "another compaction would have no effect")
    try await store.close()
    store = try await self.store()
    #expect(try await store.entries(in: .all, limit: .max, order: .ascending) == expected)
    let reopened = try await details(store)
    for name in ["blocks", "textBytes", "liveTextBytes"] { #expect(reopened[name] == after[name], "\(name)") }
    #expect(try disk.contentsOfDirectory(at: "/").sorted() == ["s.gz", "s.gz.lock"])
  }

  @Test func `reads and writes during a compaction are complete`() async throws {
    let store = try await store(durability: .buffered)
    for number in 0..<200 { try await store.setValue(text(2_000, number), forKey: StoreKey(integer: number)) }
    try await withThrowingTaskGroup(of: Void.self) { group in
      for _ in 0..<3 { group.addTask { try await store.compact() } }
      group.addTask {
        for number in 0..<100 {
          try await store.setValue(JSONText("\(number)"), forKey: StoreKey(integer: number))
          try await store.removeValue(forKey: StoreKey(integer: 199 - number))
          try await store.setValue(JSONText("\(number)"), forKey: StoreKey(integer: 1_000 + number))
        }
      }
      group.addTask {
        for number in 0..<2_000 {
          let key = number % 200
          let value = try store.value(forKey: StoreKey(integer: key))
          let possible = try key < 100 ? [text(2_000, key), JSONText("\(key)")] : [text(2_000, key), nil]
          #expect(possible.contains(value))
        }
      }
      try await group.waitForAll()
    }
    let expected =
      try (0..<100).map { (StoreKey(integer: $0), try JSONText("\($0)")) }
      + (0..<100).map { (StoreKey(integer: 1_000 + $0), try JSONText("\($0)")) }
    for _ in 0..<2 {
      let entries = try await store.entries(in: .all, limit: .max, order: .ascending)
      #expect(entries.map(\.key) == expected.map(\.0) && entries.map(\.value) == expected.map(\.1))
      #expect(try await store.verify().findings == [])
      try await store.compact()
    }
    #expect(try await details(store)["blocks"]! < 20)
  }

  @Test func `enough writes start a compaction`() async throws {
    let store = try await store(durability: .buffered)
    var isCompacted = false
    for number in 0..<200 where !isCompacted {
      try await store.setValue(text(30_000, number % 20), forKey: StoreKey(integer: number % 10))
      isCompacted = try await details(store)["deadTextBytes"]! < Int64(number) * 10_000 && number > 50
    }
    #expect(isCompacted)
    try await store.close()
    #expect((disk.content(at: "/s.gz")?.count ?? 0) < 1_500_000)
  }

  @Test func `backups are stores`() async throws {
    let store = try await store()
    for number in 0..<50 { try await store.setValue(text(1_000, number), forKey: StoreKey(integer: number % 5)) }
    try await store.backup(to: "/whole.gz")
    try await store.backup(to: "/compact.gz", compacting: true)
    await expectStoreError(.invalidArgument) { try await store.backup(to: "/whole.gz") }
    await expectStoreError(.invalidArgument) { try await store.backup(to: "/s.gz.lock") }
    let expected = try await store.entries(in: .all, limit: .max, order: .ascending)
    var sizes: [Int] = []
    for path in ["/whole.gz", "/compact.gz"] {
      sizes.append(disk.content(at: path)?.count ?? 0)
      let copy = try await CompressedFileStore(path: path, codec: .jsonText, fileSystem: disk)
      #expect(try await copy.entries(in: .all, limit: .max, order: .ascending) == expected)
      try await copy.setValue(JSONText("1"), forKey: "more")
      try await copy.close()
    }
    #expect(sizes[1] < sizes[0] / 5)
  }

  // MARK: Disk failures

  @Test(arguments: Durability.File.allCases) func `after a failed synchronization the store continues with a new file`(
    _ durability: Durability.File
  ) async throws {
    var store = try await store(durability: durability)
    try await store.setValue(JSONText("1"), forKey: "a")
    // A write to an existing file takes these operations: check the lock, check the file, write, synchronize.
    let isSynced = durability == .synced
    disk.schedule(.error(EIO), atOperation: disk.operationCount + (isSynced ? 4 : 1))
    if isSynced {
      let error = await expectStoreError(.ioFailed) { try await store.setValue(JSONText("2"), forKey: "b") }
      #expect(error?.outcome == .nothingChanged, "the new file does not have it")
    } else {
      await expectStoreError(.ioFailed) { try await store.synchronize() }
    }
    #expect(try store.keys(in: .all, limit: .max, order: .ascending) == ["a"])
    try await store.setValue(JSONText("3"), forKey: "c")
    try await store.synchronize()
    disk.losePower()
    disk.restart()
    store = try await self.store()
    #expect(try store.keys(in: .all, limit: .max, order: .ascending) == ["a", "c"])
  }

  @Test func `a failed read is not damage`() async throws {
    let store = try await store(cacheSize: 0)
    try await store.setValue(JSONText("1"), forKey: "a")
    // The first read is of several blocks, the second of one.
    for number in 1...2 { disk.schedule(.error(EIO), atOperation: disk.operationCount + number) }
    expectStoreError(.ioFailed) { try store.value(forKey: "a") }
    #expect(try store.value(forKey: "a") == JSONText("1"))
  }

  @Test func `damage to an open file is found on reading`() async throws {
    let store = try await store(cacheSize: 0)
    try await store.setValue(JSONText("1"), forKey: "a")
    try await store.setValue(JSONText("2"), forKey: "b")
    let content = try #require(disk.content(at: "/s.gz"))
    let place = try #require(content.indices.first { content[$0...].starts(with: "{\"set\":\"b\"".utf8) })
    let file = try disk.open("/s.gz", .readWrite)
    try [UInt8(ascii: "x")].withUnsafeBytes { _ = try file.write($0, at: Int64(place) + 4) }
    #expect(try store.value(forKey: "a") == JSONText("1"))
    let error = expectStoreError(.corrupted) { try store.value(forKey: "b") }
    #expect(error?.key == "b")
    let report = try await store.verify()
    #expect(report.findings.contains { $0.key == "b" })
    await expectStoreError(.corrupted) { try await store.compact() }
  }
}
#endif
