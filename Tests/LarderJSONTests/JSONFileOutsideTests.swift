import Foundation
import Larder
import LarderFiles
import LarderTesting
import TestSupport
import Testing

@testable import LarderJSON

/// The effects of other programs and of full or failing disks on the files of a store.
@Suite struct JSONFileOutsideTests {
  let disk = SimulatedFileSystem(seed: 1)

  private func store(
    _ durability: Durability.File = .synced, access: StoreAccess = .readWrite, sizeLimit: Int64 = JSONFile.maximumSize
  ) async throws -> JSONFileStore<String> {
    try await JSONFileStore(
      StoreFileConfiguration(
        path: "/s.json", durability: durability, access: access, createsIfMissing: true, fileSystem: disk),
      sizeLimit: sizeLimit, codec: JSONCodec<String>())
  }

  private func detail(_ name: String, of store: JSONFileStore<String>) async throws -> Int64? {
    try await store.storeStatistics().details.first { $0.name == name }?.value
  }

  // MARK: Files that are replaced or touched

  @Test(arguments: ["/s.json", "/s.json.journal"]) func `a replaced file stops the store`(_ path: String) async throws {
    let store = try await store()
    try await store.setValue("1", forKey: "a")
    try disk.rename(path, to: "/moved")
    await expectStoreError(.conflict) { try await store.setValue("2", forKey: "b") }
    try disk.place(try #require(disk.content(at: "/moved")), at: path)
    await expectStoreError(.conflict) { try await store.setValue("2", forKey: "b") }
    await expectStoreError(.conflict) { try await store.update("b") { $0 = "2" } }
    await expectStoreError(.conflict) { try await store.compact() }
    await expectStoreError(.conflict) { try await store.close() }
    let again = try await self.store()
    #expect(try await again.values(forKeys: ["a", "b"]) == ["1", nil])
  }

  @Test func `a replaced folder keeps its own data`() async throws {
    func open() async throws -> JSONFileStore<String> {
      try await JSONFileStore(path: "/data/s.json", codec: .json(), fileSystem: disk)
    }
    try disk.createDirectory(at: "/data")
    let first = try await open()
    try disk.rename("/data", to: "/old")
    try disk.createDirectory(at: "/data")
    let second = try await open()
    try await second.setValue("second", forKey: "a")
    await expectStoreError(.locked) { try await first.setValue("first", forKey: "a") }
    disk.killProcess()
    #expect(try await open().value(forKey: "a") == "second")
  }

  @Test func `a touched document is not a conflict`() async throws {
    let store = try await store()
    try await store.setValue("1", forKey: "a")
    try await store.compact()
    for time in [5, 7] as [Int64] {
      try disk.open("/s.json", .readWrite).setModificationTime(time * 1_000_000_000)
      try await store.setValue("\(time)", forKey: "a")
      try await store.compact()
    }
    // The same for a handwritten document.
    try await store.close()
    try disk.place(Array("{\"larder\":2,\"entries\":{\"a\":\"8\"}}".utf8), at: "/s.json")
    let again = try await self.store()
    try await again.setValue("9", forKey: "b")
    try disk.open("/s.json", .readWrite).setModificationTime(9)
    try await again.close()
    #expect(try await self.store().values(forKeys: ["a", "b"]) == ["8", "9"])
  }

  @Test func `an edit after a failed fold is detected`() async throws {
    let store = try await store()
    let large = String(repeating: "x", count: 3_000)
    try await store.setValue(large, forKey: "a")
    try await store.compact()
    try await store.setValue("1", forKey: "b")
    disk.capacity = 5_000
    await expectStoreError(.full) { try await store.compact() }
    disk.capacity = nil
    #expect(try await detail("failedFolds", of: store) == 1)
    let edited = Array("{\"larder\":2,\"entries\":{\"hand\":\"edited\"}}".utf8)
    try disk.place(edited, at: "/s.json")
    await expectStoreError(.conflict) { try await store.compact() }
    #expect(disk.content(at: "/s.json") == edited)
  }

  // MARK: Full and failing disks

  @Test func `after a crash a full disk leaves the store readable`() async throws {
    let first = try await store()
    let large = String(repeating: "x", count: 3_000)
    try await first.setValue(large, forKey: "a")
    try await first.close()
    let second = try await store()
    try await second.setValue("2", forKey: "b")
    disk.killProcess()
    let size = (disk.content(at: "/s.json")?.count ?? 0) + (disk.content(at: "/s.json.journal")?.count ?? 0)
    disk.capacity = size
    let third = try await store()
    #expect(try await third.values(forKeys: ["a", "b"]) == [large, "2"])
    await expectStoreError(.full) { try await third.setValue("3", forKey: "c") }
    await expectStoreError(.full) { try await third.close() }
    disk.capacity = nil
    let fourth = try await store()
    try await fourth.setValue("3", forKey: "c")
    #expect(try await fourth.values(forKeys: ["a", "b", "c"]) == [large, "2", "3"])
  }

  @Test func `opening writes nothing after a clean end`() async throws {
    let first = try await store()
    try await first.setValue("1", forKey: "a")
    try await first.close()
    let files = try ["/s.json", "/s.json.journal"].map { try disk.attributes(at: $0) }
    let second = try await store()
    #expect(try second.value(forKey: "a") == "1")
    #expect(try ["/s.json", "/s.json.journal"].map { try disk.attributes(at: $0) } == files)
  }

  /// The journal is written anew before it is shown, because the process may have died after a failed synchronization.
  @Test(arguments: Durability.File.allCases) func `after a crash opening writes the journal if the store is synced`(
    _ durability: Durability.File
  ) async throws {
    let disk = SimulatedFileSystem(seed: 1)
    func open() async throws -> JSONFileStore<String> {
      try await JSONFileStore(path: "/s.json", codec: .json(), durability: durability, fileSystem: disk)
    }
    let first = try await open()
    try await first.setValue("1", forKey: "a")
    disk.killProcess()
    let files = try ["/s.json", "/s.json.journal"].map { try disk.attributes(at: $0) }
    let second = try await open()
    #expect(try second.value(forKey: "a") == "1")
    let later = try ["/s.json", "/s.json.journal"].map { try disk.attributes(at: $0) }
    #expect(later[0] == files[0])
    #expect((later[1]?.identity == files[1]?.identity) == (durability == .buffered))
    #expect(try await detail("journalBytes", of: second) ?? 0 > 80)
  }

  @Test(arguments: Durability.File.allCases) func `cached data is not trusted after an unclean end`(
    _ durability: Durability.File
  )
    async throws
  {
    for seed in 0..<20 as Range<UInt64> {
      let disk = SimulatedFileSystem(seed: seed)
      func open() async throws -> JSONFileStore<String> {
        try await JSONFileStore(path: "/s.json", codec: .json(), durability: durability, fileSystem: disk)
      }
      let first = try await open()
      try await first.setValue("1", forKey: "a")
      // The store's synchronization fails. The system drops the written data but continues to show it.
      disk.schedule(.error(5), atOperation: disk.operationCount + 5)
      _ = await expectStoreError(.ioFailed) {
        try await first.setValue("2", forKey: "b")
        try await first.synchronize()
      }
      disk.killProcess()
      let second = try await open()
      let shown = try second.keys(in: .all, limit: 9, order: .ascending)
      try await second.setValue("3", forKey: "c")
      if durability == .buffered { try await second.synchronize() }
      disk.losePower()
      #expect(try await open().keys(in: .all, limit: 9, order: .ascending) == shown + ["c"])
    }
  }

  @Test func `a fold with an unknown outcome is repeated`() async throws {
    let failures: [SimulatedFault] = [.error(5), .errorAfterwards(5)]
    for failure in failures {
      for operation in 1...40 {
        let disk = SimulatedFileSystem(seed: UInt64(operation))
        func open() async throws -> JSONFileStore<String> {
          try await JSONFileStore(path: "/s.json", codec: .json(), fileSystem: disk)
        }
        let store = try await open()
        try await store.setValue("1", forKey: "a")
        disk.schedule(failure, atOperation: disk.operationCount + operation)
        do { try await store.compact() } catch StoreError.Code.ioFailed {}
        disk.clearFaults()
        try await store.setValue("2", forKey: "b")
        if operation.isMultiple(of: 2) { disk.losePower() } else { disk.killProcess() }
        #expect(try await open().values(forKeys: ["a", "b"]) == ["1", "2"], "operation \(operation)")
      }
    }
  }

  // MARK: Limits

  @Test func `documents that could not be reopened are not written`() async throws {
    let store = try await store(.buffered, sizeLimit: 100_000)
    let value = String(repeating: "x", count: 10_000)
    var written = 0
    while written < 20 {
      do {
        try await store.setValue(value, forKey: "\(written)")
        written += 1
      } catch StoreError.Code.full { break }
    }
    #expect(written == 9)
    await expectStoreError(.full) { try await store.setValue(value, forKey: "more") }
    try await store.setValue("small", forKey: "small")
    try await store.removeValue(forKey: "0")
    for number in 0..<50 { try await store.setValue(value, forKey: "\(1 + number % 8)") }
    try await store.close()
    let again = try await self.store(sizeLimit: 100_000)
    #expect(try again.count(in: .all) == 9)
    try await again.close()
    await expectStoreError(.unsupported) { try await self.store(sizeLimit: 80_000) }
  }

  @Test func `a damaged journal line is read in one pass`() async throws {
    let values = String(repeating: "{\"crc32c\":\"00000000\",\"x\":1},", count: 3_000)
    var line = JSONJournalLine.bytes(
      of: .batch(changes: [.set("a", Array("[\(values)0]".utf8)[...])], durable: 0))
    line[30] ^= 1
    let text = JSONJournalLine.bytes(of: .head(.init(codecName: "json"))) + line
    let duration = try await shortest(below: .seconds(20)) {
      let journal = try JSONJournal(text)
      #expect(journal.batches == [])
    }
    // A checksum for each line took minutes in a debug build.
    #expect(duration < .seconds(20))
  }

  // MARK: Reading only

  @Test func `a reader leaves every file unchanged`() async throws {
    await expectStoreError(.notFound) { try await self.store(access: .readOnly) }
    #expect(try disk.contentsOfDirectory(at: "/") == [])
    try disk.place(Array("{\"larder\":2,\"entries\":{\"a\":\"1\"}}".utf8), at: "/s.json")
    for access in [.readOnly, .immutable] as [StoreAccess] {
      let reader = try await store(access: access)
      #expect(reader.information.access == access)
      #expect(try reader.value(forKey: "a") == "1")
      try await reader.close()
    }
    #expect(try disk.contentsOfDirectory(at: "/") == ["s.json"])
    let writer = try await store()
    try await writer.setValue("2", forKey: "b")
    await expectStoreError(.locked) { try await self.store(access: .readOnly) }
    disk.killProcess()
    try disk.place([], at: "/s.json.larder-tmp-0123456789abcdef")
    func state() throws -> [FileAttributes?] {
      try disk.contentsOfDirectory(at: "/").map { try disk.attributes(at: "/" + $0) }
    }
    let before = try state()
    let first = try await store(access: .readOnly)
    let second = try await store(access: .readOnly)
    await expectStoreError(.locked) { try await self.store() }
    #expect(try await first.values(forKeys: ["a", "b"]) == ["1", "2"])
    await expectStoreError(.notPermitted) { try await first.setValue("3", forKey: "c") }
    await expectStoreError(.notPermitted) { try await first.update("c") { $0 = "3" } }
    await expectStoreError(.notPermitted) { try await first.compact() }
    try await first.synchronize()
    #expect(try await first.verify().findings == [])
    try await first.close()
    try await second.close()
    #expect(try state() == before)
  }

  @Test(arguments: [
    "{\"name\":\"x\"}", "", "not JSON", "{\"larder\":\"1\"}", "{\"entries\":{}}", "[\"larder\"]",
  ]) func `a foreign file gets no lock`(_ text: String) async throws {
    try disk.place(Array(text.utf8), at: "/s.json")
    await #expect(throws: StoreError.self) { try await self.store() }
    if text != "{\"larder\":\"1\"}" { #expect(try disk.contentsOfDirectory(at: "/") == ["s.json"]) }
  }
}
