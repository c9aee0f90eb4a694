import Foundation
import GRDB
import Larder
import LarderGRDB
import Testing

/// The durability of commits, which depends on the settings of the program's own connection.
@Suite(.timeLimit(.minutes(60))) struct DurabilityTests {
  @Test func `a pool is buffered unless it is configured`() async throws {
    let file = try TestDatabase()
    let pool = try file.pool()
    let store = try await GRDBStore(in: pool, codec: .raw)
    #expect(store.information.durability == .buffered)
    await expectStoreError(.unsupported) { try await GRDBStore(in: pool, codec: .raw, requiresSynced: true) }
    try await store.setValue([1], forKey: "a")
    try await store.synchronize()
    try await pool.writeWithoutTransaction { try $0.execute(sql: "PRAGMA synchronous = FULL; PRAGMA fullfsync = ON") }
    #expect(
      try await GRDBStore(in: pool, codec: .raw, requiresSynced: true).information.durability == .synced)
  }

  /// Without a log, only EXTRA waits for the removal of the journal.
  @Test(arguments: [
    ("delete", "FULL", Durability.buffered), ("delete", "EXTRA", .synced), ("truncate", "FULL", .synced),
    ("persist", "NORMAL", .buffered), ("memory", "EXTRA", .buffered), ("off", "EXTRA", .buffered),
  ]) func `a queue is as durable as its journal`(journal: String, synchronous: String, durability: Durability)
    async throws
  {
    var configuration = Configuration()
    configuration.prepareDatabase { db in
      try db.execute(sql: "PRAGMA journal_mode = \(journal); PRAGMA synchronous = \(synchronous)")
    }
    let file = try TestDatabase()
    let store = try await GRDBStore(in: DatabaseQueue(path: file.path, configuration: configuration), codec: .raw)
    #expect(store.information.durability == durability)
    try await store.setValue([1], forKey: "a")
    if ["memory", "off"].contains(journal) {
      await expectStoreError(.unsupported) { try await store.synchronize() }
    } else {
      try await store.synchronize()
    }
    try await store.close()
  }

  /// The journal mode that the store has found at opening says nothing about a later commit.
  @Test func `a log that another program has turned on is synced`() async throws {
    let file = try TestDatabase()
    let queue = try DatabaseQueue(path: file.path)
    try await queue.writeWithoutTransaction { try $0.execute(sql: "PRAGMA synchronous = NORMAL") }
    let store = try await GRDBStore(in: queue, codec: .raw)
    try await store.setValue([1], forKey: "a")
    #expect(try file.command("PRAGMA journal_mode = WAL") == "wal")
    try await store.setValue([2], forKey: "a")
    try await store.synchronize()
    // A log that cannot be opened is noticed where it is looked for.
    let log = file.path + "-wal"
    try FileManager.default.moveItem(atPath: log, toPath: log + "-moved")
    try FileManager.default.createSymbolicLink(atPath: log, withDestinationPath: log)
    await expectStoreError(.ioFailed) { try await store.synchronize() }
    try FileManager.default.removeItem(atPath: log)
    try FileManager.default.moveItem(atPath: log + "-moved", toPath: log)
    try await store.synchronize()
    // The log is moved into the file here too.
    try await queue.write { try $0.execute(sql: "DROP TABLE IF EXISTS orders") }
    try await store.compact()
    #expect(try FileManager.default.attributesOfItem(atPath: log)[.size] as? Int == 0)
  }

  @Test(arguments: [false, true]) func `a file that is moved or replaced is a conflict`(isReplaced: Bool) async throws {
    let (file, other) = (try TestDatabase(), try TestDatabase())
    let pool = try file.pool()
    let store = try await GRDBStore(in: pool, codec: .raw)
    try await store.setValue([1], forKey: "a")
    let observer = try await GRDBStore(in: pool, codec: .raw)
    try FileManager.default.moveItem(atPath: file.path, toPath: file.path + "-moved")
    if isReplaced {
      _ = try other.pool()
      try FileManager.default.moveItem(atPath: other.path, toPath: file.path)
    }
    await expectStoreError(.conflict) { try await store.value(forKey: "a") }
    await expectStoreError(.conflict) { try await store.count() }
    await expectStoreError(.conflict) { try await store.setValue([2], forKey: "a") }
    await expectStoreError(.conflict) { try await store.update("a") { $0 = [2] } }
    await expectStoreError(.conflict) { try await pool.write { try store.setValue([2], forKey: "a", in: $0) } }
    await expectStoreError(.conflict) { try await store.synchronize() }
    await expectStoreError(.conflict) { try await store.compact() }
    await expectStoreError(.conflict) { try await store.verify() }
    if isReplaced { try FileManager.default.moveItem(atPath: file.path, toPath: other.path) }
    try FileManager.default.moveItem(atPath: file.path + "-moved", toPath: file.path)
    #expect(try await store.value(forKey: "a") == [1])
    try await observer.close()
    try await store.close()
  }

  @Test func `a database in memory is volatile`() async throws {
    let store = try await GRDBStore<User>(in: DatabaseQueue())
    #expect(store.information.durability == .volatile)
    #expect(store.information.sharing == .exclusive)
    try await store.setValue(User(name: "Ada"), forKey: "a")
    try await store.synchronize()
    #expect(try await store.storeStatistics().bytesOnDisk == nil)
    try await store.close()
  }

  @Test func `maintenance copies the programs tables and leaves their row numbers`() async throws {
    let file = try TestDatabase()
    let pool = try file.pool()
    try await pool.write { db in try Order(id: 1, total: 5).insert(db) }
    let store = try await GRDBStore<User>(in: pool, name: "users", codec: .json())
    try await store.setValue(User(name: "Ada"), forKey: "a")
    await expectStoreError(.unsupported) { try await store.compact() }
    for compacting in [false, true] {
      let path = "\(file.folder)/copy-\(compacting).sqlite"
      try await store.backup(to: path, compacting: compacting)
      await expectStoreError(.invalidArgument) { try await store.backup(to: path, compacting: compacting) }
      let copy = try DatabaseQueue(path: path)
      #expect(try await copy.read { try Order.fetchCount($0) } == 1)
      #expect(try await GRDBStore<User>(in: copy, name: "users", codec: .json()).value(forKey: "a")?.name == "Ada")
      let permissions = try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions]
      #expect(permissions as? Int == 0o600)
    }
    #expect(try FileManager.default.contentsOfDirectory(atPath: file.folder).allSatisfy { !$0.contains("larder-") })
    try await pool.write { db in try db.execute(sql: "INSERT INTO users VALUES (x'62', '{}'), (x'', '{}')") }
    let report = try await store.verify()
    #expect(report.entryCount == 3 && report.findings.count == 2)
    try await pool.write { db in try db.execute(sql: "DROP TABLE orders; DELETE FROM users WHERE key <> x'61'") }
    try await store.compact()
    #expect(try await store.verify() == VerificationReport(entryCount: 1))
  }
}
