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

  /// Files can be created in it, but it cannot be opened.
  ///
  /// SQLite reports no error.
  @Test func `a folder that cannot be synced is buffered`() async throws {
    let file = try TestDatabase()
    try file.pool().close()
    if geteuid() == 0 { for path in [file.folder, file.path] { #expect(chown(path, 65534, 65534) == 0) } }
    #expect(chmod(file.folder, 0o300) == 0)
    await #expect(processExitsWith: .success) { [path = file.path as String] in
      // Permissions do not apply to root.
      let isRoot = geteuid() == 0
      if isRoot { try #require(setegid(65534) == 0 && seteuid(65534) == 0) }
      var configuration = Configuration()
      configuration.prepareDatabase { try $0.execute(sql: "PRAGMA synchronous = FULL") }
      let pool = try DatabasePool(path: path, configuration: configuration)
      try await pool.writeWithoutTransaction { try $0.execute(sql: "PRAGMA synchronous = FULL; PRAGMA fullfsync = ON") }
      let refused = await expectStoreError(.unsupported) {
        try await GRDBStore(in: pool, codec: .raw, requiresSynced: true)
      }
      #expect(refused?.message.contains("the folder of the database cannot be synced") == true)
      let store = try await GRDBStore(in: pool, codec: .raw)
      #expect(store.information.durability == .buffered)
      try await store.setValue([1], forKey: "a")
      let error = await expectStoreError(.notPermitted) { try await store.synchronize() }
      #expect(error?.outcome == .unknown)
      #expect(try await store.value(forKey: "a") == [1])
      await expectStoreError(.notPermitted) { try await store.close() }
      try pool.close()
      // So that the counts of coverage can be written.
      if isRoot { try #require(seteuid(0) == 0 && setegid(0) == 0) }
    }
    #expect(chmod(file.folder, 0o700) == 0)
    let pool = try file.pool()
    let store = try await GRDBStore(in: pool, codec: .raw)
    try await store.synchronize()
    #expect(try await store.value(forKey: "a") == [1])
    try await store.close()
  }

  /// A file, or a symbolic link that leads in a circle, in the place of the folder.
  @Test(arguments: [false, true]) func `a file that cannot be examined is not written`(isLink: Bool) async throws {
    let file = try TestDatabase()
    // One connection, which stays open.
    let queue = try DatabaseQueue(path: file.path)
    try await queue.writeWithoutTransaction {
      try $0.execute(sql: "PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL")
    }
    let store = try await GRDBStore(in: queue, codec: .raw)
    try await store.setValue([1], forKey: "a")
    let (files, away) = (FileManager.default, file.folder + "-away")
    try files.moveItem(atPath: file.folder, toPath: away)
    if isLink {
      try files.createSymbolicLink(atPath: file.folder, withDestinationPath: file.folder)
    } else {
      try Data().write(to: URL(filePath: file.folder))
    }
    for error in [
      await expectStoreError(.ioFailed) { try await store.setValue([2], forKey: "a") },
      await expectStoreError(.ioFailed) { try await store.update("a") { $0 = [2] } },
      await expectStoreError(.ioFailed) { try await store.value(forKey: "a") },
      await expectStoreError(.ioFailed) { try await store.synchronize() },
      await expectStoreError(.invalidArgument) { try await GRDBStore(in: queue, name: "new", codec: .raw) },
    ] {
      #expect(error?.outcome == .nothingChanged)
      #expect(error?.message.hasPrefix("the file of the database c") == true)
    }
    try files.removeItem(atPath: file.folder)
    try files.moveItem(atPath: away, toPath: file.folder)
    // The same file is there again.
    #expect(try await store.value(forKey: "a") == [1])
    try await store.setValue([3], forKey: "a")
    try await GRDBStore(in: queue, name: "new", codec: .raw).close()
    try await store.close()
    #expect(try file.command("SELECT hex(value) FROM \"default\"") == "03")
  }

  @Test func `a log that cannot be examined has no size`() async throws {
    let file = try TestDatabase()
    // A pool would open another connection, and so the log.
    let queue = try DatabaseQueue(path: file.path)
    try await queue.writeWithoutTransaction { try $0.execute(sql: "PRAGMA journal_mode = WAL") }
    let store = try await GRDBStore(in: queue, codec: .raw)
    try await store.setValue([1], forKey: "a")
    let log = file.path + "-wal"
    try FileManager.default.moveItem(atPath: log, toPath: log + "-moved")
    try FileManager.default.createSymbolicLink(atPath: log, withDestinationPath: log)
    let error = await expectStoreError(.ioFailed) { try await store.storeStatistics() }
    #expect(error?.operation == .statistics && error?.message.contains("log") == true)
    try FileManager.default.removeItem(atPath: log)
    try FileManager.default.moveItem(atPath: log + "-moved", toPath: log)
    #expect(try await store.storeStatistics().entryCount == 1)
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
