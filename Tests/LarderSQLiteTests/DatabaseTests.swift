#if SQLite
import Foundation
import Larder
import LarderCBOR
import LarderFiles
import LarderSQLite
import LarderTesting
import TestSupport
import Testing

/// Transactions over several stores, observation, sharing and maintenance.
@Suite(.timeLimit(.minutes(60))) struct DatabaseTests {
  private let folder: TemporaryFolder
  private var path: String { folder.path("app.sqlite") }

  init() throws {
    folder = try TemporaryFolder()
  }

  struct Refused: Error {}

  @Test func `a transaction changes several stores or none`() async throws {
    let database = try await SQLiteDatabase(path: path)
    let names = try await SQLiteStore(in: database, name: "names", codec: .json(String.self))
    let counts = try await SQLiteStore(in: database, name: "counts", codec: .cbor(Int.self), layout: .clustered)
    try await names.setValue("Ada", forKey: "1")
    let count = try await database.write { transaction in
      try transaction.setValue("Bob", forKey: "2", in: names)
      try transaction.apply([.set("a", 1), .set("b", 2), .remove("a"), .set("c", 3)], to: counts)
      try transaction.removeValue(forKey: "1", in: names)
      // Reads see the transaction's own writes.
      return try transaction.count(of: counts) + transaction.count(of: names)
    }
    #expect(count == 3)
    await #expect(throws: Refused.self) {
      try await database.write { transaction in
        try transaction.removeAll(in: .prefix("b"), of: counts)
        #expect(try transaction.keys(of: counts) == ["c"])
        try transaction.removeAll(of: names)
        throw Refused()
      }
    }
    try database.read { transaction in
      #expect(try transaction.entries(of: counts).map(\.value) == [2, 3])
      #expect(try transaction.entries(limit: 1, order: .descending, of: counts).map(\.key) == ["c"])
      #expect(try transaction.value(forKey: "2", in: names) == "Bob")
      // Nested uses of one statement do not disturb each other.
      try transaction.withBytes(forKey: "2", in: names) { outer in
        let isMissing = try transaction.withBytes(forKey: "missing", in: names) { $0 == nil }
        #expect(isMissing)
        let text = outer?.withUnsafeBytes { String(decoding: $0, as: UTF8.self) }
        #expect(text == "\"Bob\"")
      }
    }
    let other = try await SQLiteDatabase(path: folder.path("other.sqlite"))
    await expectStoreError(.invalidArgument) {
      try await other.write { try $0.setValue("x", forKey: "1", in: names) }
    }
    try await other.close()
    try await database.close()
    await expectStoreError(.closed) { try await database.write { _ in } }
    expectStoreError(.closed) { try names.value(forKey: "1") }
  }

  @Test func `a store of several programs refuses an older one`() async throws {
    let database = try await SQLiteDatabase(path: path)
    try await VersionDeployment().check { AnyDataStore(try await SQLiteStore(in: database, name: "users", codec: $0)) }
    try await database.close()
  }

  @Test func `a snapshot stays while others write`() async throws {
    let database = try await SQLiteDatabase(path: path)
    let store = try await SQLiteStore(in: database, codec: .cbor(Int.self))
    try await store.setValue(1, forKey: "a")
    let other = try await OtherConnection(path)
    try database.read { transaction in
      #expect(try transaction.count(of: store) == 1)
      try other.run("INSERT INTO \"default\" VALUES(x'62', x'02')")
      #expect(try transaction.count(of: store) == 1)
      #expect(try store.count(in: .all) == 2)
    }
    other.close()
    try await database.close()
  }

  @Test func `types and accesses are kept apart`() async throws {
    let database = try await SQLiteDatabase(path: path)
    let store = try await SQLiteStore(in: database, codec: .cbor(Int.self))
    await expectStoreError(.invalidArgument) { try await SQLiteStore(in: database, codec: .cbor(String.self)) }
    let link = folder.path("link.sqlite")
    try FileManager.default.createSymbolicLink(atPath: link, withDestinationPath: path)
    let second = try await SQLiteStore(path: link, codec: .cbor(Int.self))
    try await second.setValue(5, forKey: "a")
    #expect(try store.value(forKey: "a") == 5)
    await expectStoreError(.locked) { try await SQLiteDatabase(path: path, access: .readOnly) }
    await expectStoreError(.locked) { try await SQLiteDatabase(path: path, durability: .buffered) }
    try await second.close()
    try await store.close()
    // The claim of the type has ended with the store.
    let text = try await SQLiteStore(in: database, name: "text", codec: .cbor(String.self))
    try await text.close()
    try await SQLiteStore(in: database, name: "text", codec: .cbor(Substituted.self)).close()
    try await database.close()
    try await database.close()
    #expect(try folder.names == ["app.sqlite", "link.sqlite"])
  }

  private struct Substituted: Codable {
    var text: String
  }

  /// A trigger may change any entry, so all keys are reported.
  @Test func `a trigger that changes other entries is reported`() async throws {
    let store = try await SQLiteStore(path: path, codec: .cbor(Int.self))
    let events = StoreEvents()
    let observation = events.observe(store)
    try await store.setValue(1, forKey: "a")
    #expect(events.take() == [.changed([.key("a")])])
    let other = try await OtherConnection(path)
    try other.run("CREATE TRIGGER t AFTER INSERT ON \"default\" BEGIN DELETE FROM \"default\" WHERE key = x'61'; END")
    other.close()
    try await store.setValue(2, forKey: "b")
    #expect(events.take().last == .changed([.range(.all)]))
    try await store.setValue(3, forKey: "c")
    #expect(events.take() == [.changed([.range(.all)])])
    observation.cancel()
    try await store.close()
  }

  @Test func `commits are reported`() async throws {
    let database = try await SQLiteDatabase(path: path)
    let store = try await SQLiteStore(in: database, name: "s", codec: .cbor(Int.self))
    let neighbour = try await SQLiteStore(in: database, name: "n", codec: .cbor(Int.self))
    let events = StoreEvents()
    let observation = events.observe(store)
    try await neighbour.setValue(1, forKey: "x")
    #expect(events.take() == [])
    try await database.write { transaction in
      try transaction.setValue(1, forKey: "a", in: store)
      try transaction.setValue(2, forKey: "b", in: store)
    }
    #expect(events.take() == [.changed([.key("a"), .key("b")])])
    try await store.update("a") { $0 = 1 }
    #expect(events.take() == [.changed([.key("a")])])
    // Another connection has changed something, which the next commit finds if the poll has not come.
    let other = try await OtherConnection(path)
    try other.run("DELETE FROM s WHERE key = x'62'")
    try await store.setValue(3, forKey: "c")
    #expect(events.take().filter { $0 != .changed([.key("c")]) } == [.changed([.range(.all)])])
    try other.run("DELETE FROM s WHERE key = x'61'")
    while events.take().last != .changed([.range(.all)]) { try await Task.sleep(for: .milliseconds(5)) }
    other.close()
    try await database.close()
    #expect(events.take() == [.closed])
    withExtendedLifetime(observation) {}
  }

  @Test func `backups are complete and compacting makes them smaller`() async throws {
    let database = try await SQLiteDatabase(path: path, durability: .buffered)
    let store = try await SQLiteStore(in: database, codec: .raw)
    try await store.apply(
      ChangeBatch((0..<2000).map { .set(StoreKey(integer: $0), [UInt8](repeating: 1, count: 500)) }))
    try await store.removeAll(in: StoreKey(integer: 100)...)
    for compacting in [false, true] {
      let copy = folder.path("copy-\(compacting)")
      try await database.backup(to: copy, compacting: compacting)
      await expectStoreError(.invalidArgument) { try await database.backup(to: copy, compacting: compacting) }
      let attributes = try #require(try POSIXFileSystem().attributes(at: copy))
      #expect(attributes.permissions & 0o777 == 0o600)
      #expect(compacting ? attributes.size < 200_000 : attributes.size > 1_000_000)
      let restored = try await SQLiteStore(path: copy, codec: .raw)
      #expect(try restored.count(in: .all) == 100)
      try await restored.close()
    }
    let before = try await database.statistics()
    #expect(before.freePageCount > 200)
    try await store.compact()
    let after = try await database.statistics()
    #expect(after.freePageCount == 0 && after.pageCount < before.pageCount / 4 && after.logSize == 0)
    #expect(try store.count(in: .all) == 100)
    let other = try await OtherConnection(path)
    // Indexes and triggers of a store do not matter.
    try other.run("CREATE INDEX sizes ON \"default\"(length(value)); ANALYZE")
    try other.run("CREATE TRIGGER \"default\" AFTER DELETE ON \"default\" BEGIN SELECT 1; END")
    try await store.compact()
    try other.run("CREATE TABLE mine(x)")
    await expectStoreError(.unsupported) { try await store.compact() }
    other.close()
    let statistics = try await store.storeStatistics()
    #expect(statistics.entryCount == 100)
    try await database.close()
    #expect(try folder.names == ["app.sqlite", "copy-false", "copy-true"])
  }

  @Test func `the log is moved into the file`() async throws {
    let store = try await SQLiteStore(path: path, codec: .raw, durability: .buffered)
    let value = [UInt8](repeating: 9, count: 4000)
    for number in 0..<3000 { try await store.setValue(value, forKey: StoreKey(integer: number % 50)) }
    // 3,000 commits of several pages are more than 24 MB. Each 1,000 pages the log begins anew.
    let size = try #require(try POSIXFileSystem().attributes(at: path + "-wal")).size
    #expect(size < 12 << 20)
    try await store.close()
  }

  @Test func `concurrent writers lose nothing`() async throws {
    let database = try await SQLiteDatabase(path: path, durability: .buffered)
    let store = try await SQLiteStore(in: database, codec: .cbor(Int.self))
    try await withThrowingTaskGroup(of: Void.self) { group in
      for _ in 0..<8 {
        group.addTask {
          for _ in 0..<50 { try await store.update("n") { $0 = ($0 ?? 0) + 1 } }
        }
        group.addTask {
          for _ in 0..<200 { _ = try store.value(forKey: "n") }
        }
      }
      try await group.waitForAll()
    }
    #expect(try store.value(forKey: "n") == 400)
    try await database.close()
  }
}
#endif
