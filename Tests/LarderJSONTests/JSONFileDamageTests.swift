import Larder
import LarderFiles
import LarderTesting
import TestSupport
import Testing

@testable import LarderJSON

/// Damage is reported, never returned as data, and does not affect other entries.
@Suite struct JSONFileDamageTests {
  let disk = SimulatedFileSystem(seed: 1)

  private func store(_ access: StoreAccess = .readWrite) async throws -> JSONFileStore<Int> {
    try await JSONFileStore(path: "/s.json", codec: .json(), access: access, fileSystem: disk)
  }

  /// Changes the bytes of a file without the file system's knowledge, so its times stay.
  private func damage(_ path: String = "/s.json", _ body: (inout [UInt8]) -> Void) throws {
    let time = try #require(try disk.attributes(at: path)?.modificationTime)
    var content = try #require(disk.content(at: path))
    body(&content)
    try disk.place(content, at: path)
    try disk.open(path, .readWrite).setModificationTime(time)
  }

  private func fill(_ count: Int) async throws -> [StoreKey: Int] {
    let store = try await store()
    let entries = (0..<count).map { (StoreKey("key-\($0 + 1_000)"), $0) }
    try await store.apply(ChangeBatch(entries.map { .set($0.0, $0.1) }))
    try await store.close()
    return Dictionary(uniqueKeysWithValues: entries)
  }

  /// Opens the store for reading, and checks that each result is correct or reports damage.
  private func expectHonesty(_ entries: [StoreKey: Int], _ what: String) async throws {
    let store: JSONFileStore<Int>
    do {
      store = try await self.store(.readOnly)
    } catch let error as StoreError {
      #expect([.corrupted, .versionMismatch, .unrecognizedFormat].contains(error.code), "\(what): \(error)")
      return
    }
    for (key, value) in entries {
      do { #expect(try store.value(forKey: key) == value, "\(what)") } catch StoreError.Code.corrupted {}
    }
    do { #expect(try store.count(in: .all) == entries.count, "\(what)") } catch StoreError.Code.corrupted {}
    try await store.close()
  }

  @Test func `no flipped bit of a document is returned`() async throws {
    let entries = try await fill(12)
    let sound = try #require(disk.content(at: "/s.json"))
    for index in sound.indices {
      let bit = UInt8(1) << UInt8(index * 5 % 8)
      try damage { $0[index] ^= bit }
      try await expectHonesty(entries, "bit \(bit) of byte \(index)")
      do {
        // A flip in the recorded attributes of the file makes it look like a copy. Its entries are still correct.
        let opened = try await store()
        for (key, value) in entries { #expect(try opened.value(forKey: key) == value, "byte \(index)") }
        #expect(try opened.count(in: .all) == entries.count)
        try await opened.close()
      } catch let error as StoreError {
        #expect([.corrupted, .versionMismatch, .unrecognizedFormat].contains(error.code), "byte \(index): \(error)")
      }
      try damage { $0 = sound }
    }
  }

  @Test(arguments: [false, true]) func `no truncation of a document goes unnoticed`(_ isCopy: Bool) async throws {
    let entries = try await fill(12)
    let sound = try #require(disk.content(at: "/s.json"))
    for count in 0..<sound.count - 1 {
      if isCopy {
        try disk.place(Array(sound.prefix(count)), at: "/s.json")
      } else {
        try damage { $0 = Array(sound.prefix(count)) }
      }
      await expectStoreError(.corrupted) { try await self.store() }
      try await expectHonesty(entries, "\(count) bytes")
    }
  }

  @Test func `the rest of a damaged document stays readable`() async throws {
    _ = try await fill(2_000)
    try damage { text in
      let place = text.firstRange(of: Array("\"key-2000\":1000".utf8)).map(\.upperBound) ?? 0
      text[place - 1] = UInt8(ascii: "7")
    }
    await expectStoreError(.corrupted) { try await self.store() }
    let store = try await store(.readOnly)
    let findings = try await store.verify().findings
    #expect(findings.count == 1 && findings.first?.place.hasPrefix("/s.json, line ") == true)
    #expect(try await store.storeStatistics().details.first { $0.name == "damagedPlaces" }?.value == 1)
    #expect(expectStoreError(.corrupted) { try store.value(forKey: "key-2000") }?.key == "key-2000")
    expectStoreError(.corrupted) { try store.value(forKey: "key-2000x") }
    #expect(try store.value(forKey: "key-1000x") == nil)
    #expect(try await store.values(forKeys: ["key-1000", "key-2999"]) == [0, 1_999])
    await expectStoreError(.corrupted) { try await store.values(forKeys: ["key-1000", "key-2000"]) }
    expectStoreError(.corrupted) { try store.count(in: .all) }
    #expect(try store.count(in: ..<"key-1100") == 100)
    #expect(try await store.entries(in: .all, limit: 300, order: .ascending).count == 300)
    #expect(try store.keys(in: .all, limit: 300, order: .descending).last == "key-2700")
    #expect(try store.keys(in: .all, limit: 0, order: .descending) == [])
    for order in ScanOrder.allCases {
      expectStoreError(.corrupted) { try store.keys(in: .all, limit: 1_200, order: order) }
      await expectStoreError(.corrupted) { try await store.entries(in: .all, limit: 1_200, order: order) }
    }
    await expectStoreError(.corrupted) { try await store.backup(to: "/copy.json") }
  }

  @Test func `an unreadable page hides only its entries`() async throws {
    _ = try await fill(2_000)
    let size = try #require(disk.content(at: "/s.json")).count
    let damaged = UnreadablePages(base: disk, path: "/s.json", pages: 2..<3)
    await expectStoreError(.ioFailed) {
      try await JSONFileStore<Int>(path: "/s.json", codec: .json(), fileSystem: damaged)
    }
    let store = try await JSONFileStore<Int>(path: "/s.json", codec: .json(), access: .readOnly, fileSystem: damaged)
    var readable = 0
    for number in 0..<2_000 {
      do {
        #expect(try store.value(forKey: StoreKey("key-\(number + 1_000)")) == number)
        readable += 1
      } catch StoreError.Code.corrupted {}
    }
    #expect(readable > 2_000 - 2 * 4_096 * 2_000 / size && readable < 2_000)
  }

  @Test func `a manual edit is not damage`() async throws {
    _ = try await fill(3)
    let text = String(decoding: try #require(disk.content(at: "/s.json")), as: UTF8.self)
    try disk.place(Array(text.replacing("\"key-1001\":1", with: "\"key-1001\":100").utf8), at: "/s.json")
    let edited = try await store()
    #expect(try edited.value(forKey: "key-1001") == 100)
    try await edited.close()
    try disk.place(Array(text.replacing(/,"written":.*/, with: "}").utf8), at: "/s.json")
    #expect(try await store().value(forKey: "key-1001") == 1)
  }

  // MARK: The journal

  @Test func `damage to the last acknowledged batch is found`() async throws {
    let store = try await store()
    for number in 0..<3 { try await store.setValue(number, forKey: "k\(number)") }
    disk.killProcess()
    let sound = try #require(disk.content(at: "/s.json.journal"))
    let ends = sound.indices.filter { sound[$0] == UInt8(ascii: "\n") }
    // The batch and its line end. The mark follows them.
    for index in ends[2]...ends[3] {
      var damaged = sound
      damaged[index] ^= 4
      try disk.place(damaged, at: "/s.json.journal")
      await expectStoreError(.corrupted) { try await self.store() }
    }
    let reader = try await self.store(.readOnly)
    expectStoreError(.corrupted) { try reader.value(forKey: "k0") }
    expectStoreError(.corrupted) { try reader.count(in: .all) }
    #expect(try await reader.verify().findings.isEmpty == false)
    try await reader.close()
    // Without the mark, the batch could be the torn tail of a write that never returned.
    try disk.place(Array(sound[...(ends[3] - 3)]), at: "/s.json.journal")
    #expect(try await self.store().count(in: .all) == 2)
  }

  @Test func `a journal of another document is reported`() async throws {
    func document(_ value: Int) async throws -> [UInt8] {
      let store = try await self.store()
      try await store.setValue(value, forKey: "a")
      try await store.close()
      return try #require(disk.content(at: "/s.json"))
    }
    let second = try await document(2)
    let third = try await document(3)
    let fourthStore = try await self.store()
    try await fourthStore.setValue(4, forKey: "b")
    disk.killProcess()
    let journal = try #require(disk.content(at: "/s.json.journal"))
    // An older document next to a newer journal.
    try disk.place(second, at: "/s.json")
    let error = await expectStoreError(.corrupted) { try await self.store() }
    #expect(error?.message.contains("put the right document back") == true)
    // The next document: a crash came between writing it and removing the journal.
    try disk.removeFile(at: "/s.json.journal")
    try disk.place(third, at: "/s.json")
    let fourth = try await document(40)
    try disk.place(journal, at: "/s.json.journal")
    let after = try await self.store()
    #expect(try await after.values(forKeys: ["a", "b"]) == [40, nil])
    try await after.close()
    #expect(disk.content(at: "/s.json.journal") == nil)
    // A later document, and one of the same generation with other content.
    _ = try await document(50)
    try disk.place(journal, at: "/s.json.journal")
    await expectStoreError(.corrupted) { try await self.store() }
    let other = String(decoding: fourth, as: UTF8.self).replacing("\"generation\":4", with: "\"generation\":3")
    try disk.place(Array(other.utf8), at: "/s.json")
    await expectStoreError(.corrupted) { try await self.store() }
  }
}
