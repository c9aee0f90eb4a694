import Foundation
import GRDB
import Larder
import LarderGRDB
import LarderSQLite
import Testing

/// The events that observers of the store receive, and their cost.
@Suite(.timeLimit(.minutes(5))) struct ObservationTests {
  /// SQLite can remove all rows without looking at each, unless there is an observer when the statement is prepared.
  @Test(arguments: [false, true]) func `without an observer all rows are removed at once`(isObserved: Bool) async throws
  {
    let file = try TestDatabase()
    let pool = try file.pool()
    let store = try await GRDBStore(in: pool, codec: .raw)
    let observation = isObserved ? store.observe(.all) { _ in } : nil
    let rows = RowCounter()
    try await pool.writeWithoutTransaction { $0.add(transactionObserver: rows) }
    let batch = ChangeBatch((0..<100).map { .set("\($0)" as StoreKey, [UInt8(1)]) })
    // The first call prepares the statement.
    for isCounting in [false, true] {
      rows.isCounting.withLock { $0 = false }
      try await store.apply(batch)
      rows.isCounting.withLock { $0 = isCounting }
      try await store.removeAll()
      rows.isCounting.withLock { $0 = false }
      try await store.apply(batch)
      rows.isCounting.withLock { $0 = isCounting }
      try await pool.write { try store.removeAll(in: $0) }
      #expect(try await store.count() == 0)
    }
    observation?.cancel()
    #expect(rows.count.withLock { $0 } == (isObserved ? 200 : 0))
  }

  /// Without an observer, statements that the program has prepared remove all rows in one step, so GRDB reports no rows.
  @Test func `a statement that was prepared before is reported`() async throws {
    let file = try TestDatabase()
    let pool = try file.pool()
    let store = try await GRDBStore(in: pool, codec: .raw)
    let removal = "DELETE FROM \"default\""
    try await store.setValue([1], forKey: "a")
    try await pool.write { try $0.cachedStatement(sql: removal).execute() }
    try await store.setValue([1], forKey: "a")
    let events = Events()
    let observation = store.observe(.all) { events.receive($0) }
    try await pool.write { try $0.cachedStatement(sql: removal).execute() }
    observation.cancel()
    #expect(await events.finish() == [.changed([.range(.all)])])
  }

  /// The observer reads before the commit, so it must learn of it.
  @Test(arguments: [false, true]) func `an observer that is added during a transaction learns of it`(isOwn: Bool)
    async throws
  {
    let file = try TestDatabase()
    let pool = try file.pool()
    let store = try await GRDBStore(in: pool, codec: .raw)
    let events = Events()
    let observation = try await pool.write { db in
      if isOwn {
        try store.setValue([1], forKey: "a", in: db)
      } else {
        try db.execute(sql: "INSERT INTO \"default\" VALUES(x'61', x'01')")
      }
      return store.observe(.all) { events.receive($0) }
    }
    try await store.setValue([1], forKey: "b")
    observation.cancel()
    #expect(await events.finish() == [.changed([.range(.all)]), .changed([.key("b")])])
  }

  /// GRDB does not report a transaction that SQLite itself has rolled back.
  @Test func `sql after a transaction that SQLite has rolled back is reported`() async throws {
    let file = try TestDatabase()
    let pool = try file.pool()
    let store = try await GRDBStore(in: pool, codec: .raw)
    try await pool.write { db in
      try db.execute(sql: "CREATE TRIGGER undo BEFORE INSERT ON orders BEGIN SELECT RAISE(ROLLBACK, 'no'); END")
    }
    let events = Events()
    let observation = store.observe(.all) { events.receive($0) }
    await #expect(throws: (any Error).self) {
      try await pool.write { db in
        try store.setValue([1], forKey: "a", in: db)
        try Order(id: 1, total: 5).insert(db)
      }
    }
    try await pool.write { db in
      try db.execute(sql: "INSERT INTO \"default\" VALUES(x'62', x'01')")
      try store.setValue([1], forKey: "c", in: db)
    }
    try await store.setValue([1], forKey: "d")
    observation.cancel()
    #expect(await events.finish() == [.changed([.range(.all)]), .changed([.key("d")])])
  }

  @Test func `cascades and triggers of other tables are reported`() async throws {
    let file = try TestDatabase()
    let pool = try file.pool()
    try await pool.write { db in
      try db.execute(
        sql: """
          CREATE TABLE notes(key BLOB NOT NULL PRIMARY KEY REFERENCES parents(id) ON DELETE CASCADE, value BLOB NOT NULL) STRICT;
          CREATE TABLE parents(id BLOB PRIMARY KEY);
          INSERT INTO parents VALUES(x'61'), (x'62');
          """)
    }
    let store = try await GRDBStore(in: pool, name: "notes", codec: .raw)
    try await store.apply([.set("a", [1]), .set("b", [2])])
    let events = Events()
    let observation = store.observe(.all) { events.receive($0) }
    try await pool.write { db in
      try db.inSavepoint {
        try db.execute(sql: "DELETE FROM parents WHERE id = x'61'")
        return .commit
      }
    }
    try await store.setValue([3], forKey: "b")
    observation.cancel()
    #expect(await events.finish() == [.changed([.range(.all)]), .changed([.key("b")])])
    #expect(try await store.keys(in: .all, limit: 9, order: .ascending) == ["b"])
  }

  @Test func `sql that changes a clustered table is reported`() async throws {
    let file = try TestDatabase()
    let written = try await SQLiteStore(path: file.path, name: "notes", codec: .raw, layout: .clustered)
    try await written.close()
    let pool = try file.pool()
    let store = try await GRDBStore(in: pool, name: "notes", codec: .raw)
    let events = Events()
    let observation = store.observe(.all) { events.receive($0) }
    try await pool.write { try $0.execute(sql: "INSERT INTO notes VALUES(x'61', x'01')") }
    try await pool.write { try Order(id: 1, total: 5).insert($0) }
    observation.cancel()
    #expect(await events.finish() == [.changed([.range(.all)])])
  }

  /// Triggers on other tables do not disable a cache.
  @Test func `reports stay exact beside triggers on other tables`() async throws {
    let file = try TestDatabase()
    let pool = try file.pool()
    let store = try await GRDBStore(in: pool, codec: .raw)
    try await pool.write { db in
      try db.execute(
        sql: "CREATE TABLE log(id); CREATE TRIGGER log AFTER INSERT ON orders BEGIN INSERT INTO log VALUES(new.id); END"
      )
    }
    let events = Events()
    let observation = store.observe(.all) { events.receive($0) }
    try await pool.write { db throws in
      try Order(id: 1, total: 5).insert(db)
      // An update that an error undoes is not reported.
      #expect(throws: Order.Missing.self) { try store.update("x", in: db) { _ in throw Order.Missing() } }
      try store.apply([.set("a", [1]), .set("b", [1])], in: db)
    }
    observation.cancel()
    #expect(await events.finish() == [.changed([.key("a"), .key("b")])])
  }
}

/// Counts the rows that GRDB reports.
private final class RowCounter: TransactionObserver, Sendable {
  let isCounting = Locked(false)
  let count = Locked(0)
  func observes(eventsOfKind eventKind: DatabaseEventKind) -> Bool { isCounting.withLock { $0 } }
  func databaseDidChange(with event: DatabaseEvent) { count.withLock { $0 += 1 } }
  func databaseDidCommit(_ db: Database) {}
  func databaseDidRollback(_ db: Database) {}
}
