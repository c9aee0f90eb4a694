#if SQLite
import CSQLite
import Foundation
import Larder
import LarderSQLite
import LarderTesting
import TestSupport
import Testing

/// Databases of applications: their triggers, keys, functions and tables, which stand beside those of stores.
@Suite(
  .enabled(if: ForeignSQLite.obstacle == nil, "\(ForeignSQLite.obstacle ?? "")"), .timeLimit(.minutes(60)))
struct ApplicationTests {
  private let folder: TemporaryFolder
  private var path: String { folder.path("app.sqlite") }

  init() throws {
    folder = try TemporaryFolder()
  }

  /// SQLite reports nothing if a trigger ignores a change.
  @Test func `changes that a trigger ignores are errors`() async throws {
    let database = try await SQLiteDatabase(path: path)
    let store = try await SQLiteStore(in: database, name: "s", codec: .json(Int.self))
    try await store.apply([.set("a", 1), .set("kept", 2)])
    try ForeignSQLite.run(
      path,
      """
      CREATE TRIGGER full BEFORE INSERT ON s WHEN NEW.value > '5' BEGIN SELECT RAISE(IGNORE); END;
      CREATE TRIGGER once BEFORE UPDATE ON s BEGIN SELECT RAISE(IGNORE); END;
      CREATE TRIGGER forever BEFORE DELETE ON s WHEN OLD.key = CAST('kept' AS BLOB) BEGIN SELECT RAISE(IGNORE); END;
      """)
    let refused: [@Sendable () async throws -> Void] = [
      { try await store.setValue(9, forKey: "new") }, { try await store.setValue(3, forKey: "a") },
      { try await store.apply([.set("b", 1), .set("c", 9)]) }, { try await store.update("a") { $0 = 3 } },
      { try await store.removeValue(forKey: "kept") }, { try await store.removeAll(in: .prefix("k")) },
      { try await store.removeAll() }, { try await database.write { try $0.setValue(9, forKey: "new", in: store) } },
    ]
    for (number, write) in refused.enumerated() {
      let error = await expectStoreError(.notPermitted) { try await write() }
      #expect(error?.outcome == .nothingChanged && "\(error!)".contains("ignored"), "\(number)")
    }
    #expect(try store.keys(in: .all, limit: 9, order: .ascending) == ["a", "kept"])
    try await store.removeValue(forKey: "missing")
    try await store.removeValue(forKey: "a")
    try await store.setValue(4, forKey: "d")
    #expect(try store.keys(in: .all, limit: 9, order: .ascending) == ["d", "kept"])
    try await database.close()
  }

  @Test func `foreign keys are enforced`() async throws {
    let users = try await SQLiteStore(path: path, name: "users", codec: .json(Int.self))
    try await users.apply([.set("a", 1), .set("b", 2), .set("c", 3)])
    try ForeignSQLite.run(
      path,
      """
      CREATE TABLE orders(id INTEGER PRIMARY KEY, user BLOB REFERENCES users(key));
      CREATE TABLE notes(id INTEGER PRIMARY KEY, user BLOB REFERENCES users(key) DEFERRABLE INITIALLY DEFERRED);
      CREATE TABLE visits(id INTEGER PRIMARY KEY, user BLOB REFERENCES users(key) ON DELETE CASCADE);
      INSERT INTO orders(user) VALUES(CAST('a' AS BLOB)); INSERT INTO notes(user) VALUES(CAST('b' AS BLOB));
      INSERT INTO visits(user) VALUES(CAST('c' AS BLOB));
      """)
    for key in ["a", "b"] as [StoreKey] {
      await expectStoreError(.notPermitted) { try await users.apply([.remove("c"), .remove(key)]) }
    }
    #expect(try users.count(in: .all) == 3)
    try await users.removeValue(forKey: "c")
    #expect(try ForeignSQLite.run(path, "SELECT count(*) FROM visits; PRAGMA foreign_key_check") == ["0"])
    try await users.close()
  }

  @Test func `collations and functions of the application`() async throws {
    try await SQLiteStore(path: path, name: "users", codec: .json(String.self)).close()
    _ = try ForeignSQLite.python(
      """
      db = sqlite3.connect(argv[1])
      db.create_collation('app', lambda a, b: (a > b) - (a < b))
      db.create_function('fold', 1, lambda s: s, deterministic=True)
      db.execute('CREATE TABLE person(id INTEGER PRIMARY KEY, name TEXT COLLATE app UNIQUE)')
      db.execute("INSERT INTO person(name) VALUES('x'), ('y')")
      db.execute('CREATE INDEX folded ON users(fold(value))')
      db.execute('CREATE TABLE checked(x CHECK(fold(x) = x))')
      db.commit()
      """, path)
    // Without them, the database is read, verified and backed up.
    let store = try await SQLiteStore(path: path, name: "users", codec: .json(String.self))
    #expect(try await store.verify().findings == [])
    await expectStoreError(.notPermitted) { try await store.setValue("A", forKey: "a") }
    try await store.backup(to: folder.path("copy"), compacting: false)
    await expectStoreError(.unsupported) { try await store.backup(to: folder.path("small"), compacting: true) }
    try await store.close()

    let database = try await SQLiteDatabase(path: path) { setup in
      try setup.run("PRAGMA cache_size = -100")
      sqlite3_create_function_v2(
        setup.pointer, "fold", 1, SQLITE_UTF8 | SQLITE_DETERMINISTIC, nil,
        { context, _, arguments in sqlite3_result_value(context, arguments?[0]) }, nil, nil, nil)
      sqlite3_create_collation_v2(
        setup.pointer, "app", SQLITE_UTF8, nil,
        { _, firstCount, first, secondCount, second in
          let order = memcmp(first!, second!, Int(min(firstCount, secondCount)))
          return order == 0 ? firstCount - secondCount : order
        }, nil)
    }
    let users = try await SQLiteStore(in: database, name: "users", codec: .json(String.self))
    try await users.setValue("A", forKey: "a")
    #expect(try users.value(forKey: "a") == "A")
    #expect(try await users.verify().findings == [])
    try await users.backup(to: folder.path("small"), compacting: true)
    try await database.close()
  }

  struct Refused: Error {}

  @Test func `an error of the closure that prepares connections is thrown`() async throws {
    await #expect(throws: Refused.self) { try await SQLiteDatabase(path: path) { _ in throw Refused() } }
    #expect(try folder.names == [])
    await expectStoreError(.notPermitted) { try await SQLiteDatabase(path: path) { try $0.run("no SQL") } }
  }

  @Test(arguments: [("places", true), ("nope", false), ("sqlite_x", true), ("PLACES", true)])
  func `a refused database is left as it is`(name: String, createsIfMissing: Bool) async throws {
    try ForeignSQLite.run(path, "CREATE TABLE places(id INTEGER PRIMARY KEY, url TEXT)")
    let before = try Data(contentsOf: URL(filePath: path))
    await #expect(throws: StoreError.self) {
      try await SQLiteStore(path: path, name: name, codec: .json(Int.self), createsIfMissing: createsIfMissing)
    }
    #expect(try Data(contentsOf: URL(filePath: path)) == before)
    #expect(try folder.names == ["app.sqlite"])
  }

  @Test func `a database is converted before the first write`() async throws {
    try ForeignSQLite.run(
      path,
      "CREATE TABLE t(key BLOB NOT NULL PRIMARY KEY, value TEXT NOT NULL) STRICT; INSERT INTO t VALUES(x'61', '1')")
    let store = try await SQLiteStore(path: path, name: "t", codec: .json(Int.self), access: .readOnly)
    #expect(try store.value(forKey: "a") == 1)
    try await store.close()
    #expect(try ForeignSQLite.run(path, "PRAGMA journal_mode; SELECT count(*) FROM sqlite_schema") == ["delete", "2"])
    let database = try await SQLiteDatabase(path: path)
    try await database.synchronize()
    try await database.checkpoint()
    #expect(try ForeignSQLite.run(path, "PRAGMA journal_mode") == ["delete"])
    let writer = try await SQLiteStore(in: database, name: "t", codec: .json(Int.self))
    try await writer.setValue(2, forKey: "a")
    #expect(try ForeignSQLite.run(path, "PRAGMA journal_mode; SELECT value FROM t") == ["wal", "2"])
    try await database.close()
  }

  @Test(arguments: [
    "DROP VIEW s_text; DROP TABLE s", "DROP VIEW s_text; DROP TABLE s; CREATE TABLE s(id INTEGER)",
    "ALTER TABLE s ADD COLUMN extra TEXT", "DROP VIEW s_text; ALTER TABLE s RENAME COLUMN value TO v",
    "DROP VIEW s_text; DROP TABLE s; CREATE VIEW s AS SELECT x'61' AS key, '7' AS value",
    "DROP VIEW s_text; DROP TABLE s; CREATE TABLE S(key BLOB NOT NULL PRIMARY KEY, value TEXT NOT NULL) STRICT",
    "DROP TABLE larder; CREATE TABLE larder(x)",
  ]) func `a changed table is a conflict`(change: String) async throws {
    let store = try await SQLiteStore(path: path, name: "s", codec: .json(Int.self))
    try await store.setValue(1, forKey: "a")
    try ForeignSQLite.run(path, change)
    let error = await expectStoreError(.conflict) { try await store.setValue(2, forKey: "a") }
    #expect(error?.outcome == .nothingChanged)
    try await store.close()
  }

  @Test func `reads are statements on the name of the table`() async throws {
    let store = try await SQLiteStore(path: path, name: "s", codec: .json(Int.self))
    try await store.setValue(1, forKey: "a")
    #expect(try store.value(forKey: "a") == 1)
    try ForeignSQLite.run(
      path, "DROP VIEW s_text; DROP TABLE s; CREATE VIEW s AS SELECT x'61' AS key, '7' AS value")
    #expect(try store.value(forKey: "a") == 7)
    try ForeignSQLite.run(path, "DROP VIEW s; CREATE TABLE s(id INTEGER)")
    expectStoreError(.conflict) { try store.value(forKey: "a") }
    try await store.close()
  }

  @Test func `tables of other programs are opened with a codec that is chosen`() async throws {
    try ForeignSQLite.run(
      path,
      """
      CREATE TABLE t(key BLOB NOT NULL PRIMARY KEY, value TEXT NOT NULL) STRICT; INSERT INTO t VALUES(x'61', '1');
      CREATE TABLE b(key BLOB NOT NULL PRIMARY KEY, value BLOB NOT NULL) STRICT; INSERT INTO b VALUES(x'61', x'ff');
      """)
    let registry = StoreRegistry(providers: [SQLiteStoreProvider()])
    let text = try await registry.open(StoreURL("sqlite:\(path)#t"))
    #expect(text.codecName == "json")
    #expect(try await text.typed(codec: .json(Int.self)).value(forKey: "a") == 1)
    await expectStoreError(.invalidArgument) { try await registry.open(StoreURL("sqlite:\(path)#b")) }
    #expect(try ForeignSQLite.run(path, "SELECT name, codec FROM larder") == ["t|json"])
    let bytes = try await registry.open(StoreURL("sqlite:\(path)#b"), newCodecName: "raw")
    #expect(try await bytes.typed(codec: .raw).value(forKey: "a") == [255])
    #expect(try ForeignSQLite.run(path, "SELECT name, codec FROM larder") == ["t|json", "b|raw"])
  }

  @Test func `a store is removed with its table and record`() async throws {
    let database = try await SQLiteDatabase(path: path)
    let store = try await SQLiteStore(in: database, name: "s\"x", codec: .raw)
    let neighbour = try await SQLiteStore(in: database, name: "n", codec: .raw)
    for store in [store, neighbour] { try await store.setValue([1], forKey: "a") }
    try ForeignSQLite.run(
      path,
      "CREATE TABLE mine(key BLOB NOT NULL PRIMARY KEY, value BLOB NOT NULL) STRICT; CREATE VIEW mine_text AS SELECT 1")
    let events = StoreEvents()
    let observation = events.observe(store)
    try await database.removeStore("s\"x")
    #expect(events.take().contains(.changed([.range(.all)])))
    await expectStoreError(.notFound) { try await database.removeStore("s\"x") }
    await expectStoreError(.unsupported) { try await database.removeStore("mine") }
    expectStoreError(.conflict) { try store.value(forKey: "a") }
    await expectStoreError(.conflict) { try await store.setValue([2], forKey: "a") }
    #expect(try neighbour.value(forKey: "a") == [1])
    #expect(try await database.storeNames() == ["mine", "n"])
    #expect(
      try ForeignSQLite.run(
        path, "SELECT name FROM larder; SELECT name FROM sqlite_schema WHERE type = 'view' ORDER BY 1")
        == ["n", "mine_text", "n_text"])
    observation.cancel()
    try await store.close()
    // The name is free for another type.
    let again = try await SQLiteStore(in: database, name: "s\"x", codec: .json(Int.self))
    #expect(try again.count(in: .all) == 0)
    try await database.close()
  }

  @Test func `keys that no store would write are found and removed`() async throws {
    let store = try await SQLiteStore(path: path, codec: .raw)
    try await store.setValue([1], forKey: "a")
    try ForeignSQLite.run(
      path, "INSERT INTO \"default\" VALUES(x'', x'01'); INSERT INTO \"default\" VALUES(zeroblob(600), x'01')")
    #expect(try store.keys(in: .all, limit: 9, order: .ascending).map(\.count) == [0, 600, 1])
    #expect(try await store.verify().findings.count == 2)
    try await store.removeAll(in: ..<StoreKey("a"))
    #expect(try store.keys(in: .all, limit: 9, order: .ascending) == ["a"])
    try await store.close()
  }
}
#endif
