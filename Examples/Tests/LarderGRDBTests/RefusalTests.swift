import Dispatch
import GRDB
import Larder
import LarderGRDB
import Testing

/// Changes that the schema of the program refuses or swallows, inside the program's transactions.
@Suite(.timeLimit(.minutes(5))) struct RefusalTests {
  private struct Undo: Error {}

  /// A schema, and a batch that it refuses at its last change.
  struct Refusal: Sendable, CustomTestStringConvertible {
    var testDescription: String
    var schema: String
    var batch: ChangeBatch<[UInt8]>
  }

  static let refusals = [
    Refusal(
      testDescription: "a foreign key that refers to the store",
      schema: """
        CREATE TABLE owners(id INTEGER PRIMARY KEY, entry BLOB REFERENCES "default"(key));
        INSERT INTO owners VALUES(1, x'62')
        """,
      batch: [.set("d", [4]), .remove("b")]),
    Refusal(
      testDescription: "a trigger on another table, which a cascade reaches",
      schema: """
        CREATE TABLE owners(id INTEGER PRIMARY KEY, entry BLOB REFERENCES "default"(key) ON DELETE CASCADE);
        INSERT INTO owners VALUES(1, x'62');
        CREATE TRIGGER refuse BEFORE DELETE ON owners BEGIN SELECT RAISE(ABORT, 'no'); END
        """,
      batch: [.set("d", [4]), .remove("b")]),
    Refusal(
      testDescription: "a trigger that keeps what its statement has changed",
      schema: """
        CREATE TRIGGER refuse BEFORE DELETE ON "default" WHEN old.key = x'62' BEGIN SELECT RAISE(FAIL, 'no'); END
        """,
      batch: [.set("d", [4]), .removeAll(.all)]),
    Refusal(
      testDescription: "a unique index", schema: "CREATE UNIQUE INDEX once ON \"default\"(value)",
      batch: [.set("d", [4]), .set("e", [1])]),
    Refusal(
      testDescription: "a temporary trigger",
      schema: """
        CREATE TEMP TRIGGER refuse BEFORE INSERT ON main."default" WHEN new.key = x'65' BEGIN SELECT RAISE(ABORT, 'no'); END
        """,
      batch: [.set("d", [4]), .set("e", [5])]),
  ]

  @Test(arguments: refusals) func `a refused batch leaves the transaction of the program`(refusal: Refusal) async throws
  {
    let file = try TestDatabase()
    let pool = try file.pool()
    let store = try await GRDBStore(in: pool, codec: .raw)
    try await store.apply([.set("a", [1]), .set("b", [2]), .set("c", [3])])
    try await pool.write { db in try db.execute(sql: refusal.schema) }
    try await pool.write { db in
      try Order(id: 1, total: 5).insert(db)
      let error = #expect(throws: StoreError.self) { try store.apply(refusal.batch, in: db) }
      #expect(error?.code == .notPermitted && error?.outcome == .nothingChanged)
      #expect(db.isInsideTransaction)
      try store.setValue([6], forKey: "f", in: db)
      try Order(id: 2, total: 5).insert(db)
    }
    #expect(try await store.keys(in: .all, limit: 9, order: .ascending) == ["a", "b", "c", "f"])
    #expect(try await pool.read { try Order.fetchCount($0) } == 2)
    await expectStoreError(.notPermitted) { try await store.apply(refusal.batch) }
    #expect(try await store.count() == 4)
  }

  /// No savepoint can prevent this.
  @Test func `a trigger that rolls back ends the transaction`() async throws {
    let file = try TestDatabase()
    let pool = try file.pool()
    let store = try await GRDBStore(in: pool, codec: .raw)
    try await pool.write { db in
      try db.execute(sql: "CREATE TRIGGER refuse BEFORE INSERT ON \"default\" BEGIN SELECT RAISE(ROLLBACK, 'no'); END")
    }
    let aborted = await #expect(throws: DatabaseError.self) {
      try await pool.write { db in
        let error = #expect(throws: StoreError.self) { try store.setValue([1], forKey: "a", in: db) }
        #expect(error?.code == .notPermitted)
        try Order(id: 1, total: 5).insert(db)
      }
    }
    #expect(aborted?.resultCode == .SQLITE_ABORT)
    #expect(try await pool.read { try Order.fetchCount($0) } == 0)
    try await pool.write { db in try db.execute(sql: "DROP TRIGGER refuse") }
    try await pool.write { db in try store.setValue([1], forKey: "a", in: db) }
    #expect(try await store.count() == 1)
  }

  /// A statement cannot undo the batch then, because GRDB runs none.
  @Test func `a transaction that is cancelled during a batch changes nothing`() async throws {
    let file = try TestDatabase()
    let pool = try file.pool()
    let store = try await GRDBStore(in: pool, codec: .raw)
    let running = Locked<Task<Void, any Error>?>(nil)
    let mayBegin = DispatchSemaphore(value: 0)
    let writing = Task {
      try await pool.write { db in
        mayBegin.wait()
        try store.setValue([1], forKey: "a", in: db)
        do {
          try store.update("b", in: db) { value in
            try Order(id: 1, total: 5).insert(db)
            running.withLock { $0?.cancel() }
            value = [1]
          }
          Issue.record("the update was cancelled")
        } catch {
          #expect(!db.isInsideTransaction)
        }
      }
    }
    running.withLock { $0 = writing }
    mayBegin.signal()
    await #expect(throws: (any Error).self) { try await writing.value }
    #expect(try await store.count() == 0)
    #expect(try await pool.read { try Order.fetchCount($0) } == 0)
    try await store.setValue([1], forKey: "a")
  }

  /// The version of a schema that was rolled back is also that of the next one.
  ///
  /// GRDB does not report a transaction that SQLite
  /// itself has rolled back.
  @Test(arguments: [false, true]) func `a schema that was rolled back is forgotten`(isBySQLite: Bool) async throws {
    let file = try TestDatabase()
    let pool = try file.pool()
    let store = try await GRDBStore(in: pool, codec: .raw)
    try await pool.write { db in
      try db.execute(sql: "CREATE TRIGGER undo BEFORE INSERT ON orders BEGIN SELECT RAISE(ROLLBACK, 'no'); END")
    }
    await #expect(throws: (any Error).self) {
      try await pool.write { db in
        try db.execute(sql: "CREATE TABLE extra(x)")
        try store.setValue([1], forKey: "a", in: db)
        if isBySQLite { try Order(id: 1, total: 5).insert(db) }
        throw Undo()
      }
    }
    let error = await #expect(throws: StoreError.self) {
      try await pool.write { db in
        try db.execute(sql: "ALTER TABLE \"default\" ADD COLUMN note TEXT")
        try store.setValue([1], forKey: "b", in: db)
      }
    }
    #expect(error?.code == .conflict)
    #expect(try await store.count() == 0)
  }

  // MARK: Changes that vanish

  @Test(arguments: ["INSERT", "UPDATE", "DELETE"]) func `a change that a trigger ignores is an error`(event: String)
    async throws
  {
    let file = try TestDatabase()
    let pool = try file.pool()
    let store = try await GRDBStore(in: pool, codec: .raw)
    try await store.apply([.set("a", [1]), .set("b", [2])])
    try await pool.write { db in
      let key = event == "INSERT" ? "new.key = x'63'" : "old.key = x'61'"
      try db.execute(
        sql: "CREATE TRIGGER quota BEFORE \(event) ON \"default\" WHEN \(key) BEGIN SELECT RAISE(IGNORE); END")
    }
    let batches: [ChangeBatch<[UInt8]>] =
      switch event {
      case "INSERT": [[.set("c", [3])], [.set("b", [9]), .set("c", [3])]]
      case "UPDATE": [[.set("a", [3])], [.remove("b"), .set("a", [3])]]
      default: [[.remove("a")], [.removeAll(.all)], [.set("b", [9]), .removeAll("0"..."a")]]
      }
    for batch in batches {
      let error = await expectStoreError(.notPermitted) { try await store.apply(batch) }
      #expect(error?.outcome == .nothingChanged)
      try await pool.write { db throws in
        #expect(throws: StoreError.self) { try store.apply(batch, in: db) }
        try db.execute(sql: "DELETE FROM orders")
      }
    }
    await expectStoreError(.notPermitted) {
      try await store.update(["a", "c"]) { slots in slots.assign(event == "DELETE" ? [nil, nil] : [[3], [3]]) }
    }
    #expect(try await store.values(forKeys: ["a", "b", "c"]) == [[1], [2], nil])
    // A key that is missing is removed as ever.
    try await store.apply([.remove("x"), .removeAll("x"..."z"), .set("b", [4])])
  }

  @Test(arguments: ["IGNORE", "REPLACE", "ROLLBACK"])
  func `a table that would replace or ignore rows is refused`(clause: String) async throws {
    let file = try TestDatabase()
    let pool = try file.pool()
    for (number, constraint) in ["value TEXT NOT NULL UNIQUE", "value TEXT NOT NULL, UNIQUE(value)"].enumerated() {
      let columns = "key BLOB NOT NULL PRIMARY KEY, \(constraint)"
      try await pool.write { db in
        try db.execute(sql: "CREATE TABLE loose\(number)(\(columns) ON /* a comment */ conflict \(clause)) STRICT")
        try db.execute(sql: "CREATE TABLE strict\(number)(\(columns)) STRICT")
      }
      await expectStoreError(.unsupported) {
        try await GRDBStore(in: pool, name: "loose\(number)", codec: .json(Int.self))
      }
      let store = try await GRDBStore(in: pool, name: "strict\(number)", codec: .json(Int.self))
      try await store.setValue(1, forKey: "a")
      await expectStoreError(.notPermitted) { try await store.setValue(1, forKey: "b") }
      #expect(try await store.count() == 1)
    }
  }

  /// Only further constraints matter, because a conflict of keys is an update.
  @Test func `a conflict clause of the key is harmless`() async throws {
    let file = try TestDatabase()
    let pool = try file.pool()
    try await pool.write { db in
      try db.execute(
        sql: "CREATE TABLE users(key BLOB NOT NULL PRIMARY KEY ON CONFLICT IGNORE, value TEXT NOT NULL) STRICT")
    }
    let store = try await GRDBStore(in: pool, name: "users", codec: .json(Int.self))
    try await store.setValue(1, forKey: "a")
    try await store.setValue(2, forKey: "a")
    #expect(try await store.value(forKey: "a") == 2)
  }

  // MARK: Tables that change

  @Test(arguments: [
    "DROP VIEW users_text; DROP TABLE users", "DROP VIEW users_text; DROP TABLE users; CREATE TABLE users(id INTEGER)",
    "ALTER TABLE users ADD COLUMN extra TEXT", "DROP VIEW users_text; ALTER TABLE users RENAME TO others",
    "DROP VIEW users_text; ALTER TABLE users RENAME COLUMN value TO v",
    "DROP VIEW users_text; DROP TABLE users; CREATE VIEW users AS SELECT x'61' AS key, '7' AS value",
    """
    DROP VIEW users_text; DROP TABLE users;
    CREATE TABLE USERS(key BLOB NOT NULL PRIMARY KEY, value TEXT NOT NULL) STRICT
    """,
    """
    DROP VIEW users_text; DROP TABLE users;
    CREATE TABLE users(key BLOB NOT NULL PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID
    """,
    """
    DROP VIEW users_text; DROP TABLE users;
    CREATE TABLE users(key BLOB NOT NULL PRIMARY KEY, value TEXT NOT NULL UNIQUE ON CONFLICT IGNORE) STRICT
    """, "DROP TABLE larder; CREATE TABLE larder(x)",
  ]) func `a table that another program changes is a conflict`(change: String) async throws {
    let file = try TestDatabase()
    let pool = try file.pool()
    let store = try await GRDBStore(in: pool, name: "users", codec: .json(Int.self))
    try await store.setValue(1, forKey: "a")
    _ = try file.command(change)
    await expectStoreError(.conflict) { try await store.setValue(2, forKey: "a") }
    await expectStoreError(.conflict) { try await store.update("a") { $0 = 2 } }
    await expectStoreError(.conflict) { try await pool.write { try store.removeAll(in: $0) } }
  }

  /// The table is compared once for each transaction.
  @Test(arguments: [
    "DROP VIEW users_text; DROP TABLE users", "DROP VIEW users_text; ALTER TABLE users RENAME TO customers",
    "DROP VIEW users_text; ALTER TABLE users RENAME COLUMN value TO content",
    "DROP VIEW users_text; DROP TABLE users; CREATE TABLE users(id INTEGER PRIMARY KEY)",
  ]) func `a table that the transaction itself changes is a conflict`(change: String) async throws {
    let file = try TestDatabase()
    let pool = try file.pool()
    let store = try await GRDBStore(in: pool, name: "users", codec: .json(Int.self))
    try await pool.write { db in
      try store.setValue(1, forKey: "a", in: db)
      // Other statements of a schema do not concern the store.
      try db.execute(sql: "CREATE TABLE others(id INTEGER); CREATE INDEX byValue ON users(value)")
      try store.setValue(2, forKey: "a", in: db)
      try db.execute(sql: change)
      for write in [
        { try store.setValue(3, forKey: "a", in: db) }, { try store.update("a", in: db) { $0 = 3 } },
      ] {
        let error = #expect(throws: StoreError.self) { try write() }
        #expect(error?.code == .conflict, "\(String(describing: error))")
      }
      // The rest of the transaction can be committed.
      #expect(db.isInsideTransaction)
      try Order(id: 1, total: 5).insert(db)
    }
    #expect(try await pool.read { try Order.fetchCount($0) } == 1)
  }
}
