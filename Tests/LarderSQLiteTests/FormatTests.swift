#if SQLite
import Foundation
import Larder
import LarderCBOR
import LarderFiles
import LarderSQLite
import LarderTesting
import TestSupport
import Testing

/// The tables of stores, as the command `sqlite3` and Python see and change them.
@Suite(
  .enabled(if: ForeignSQLite.obstacle == nil, "\(ForeignSQLite.obstacle ?? "")"), .timeLimit(.minutes(60)))
struct FormatTests {
  struct User: Codable, Equatable {
    var name: String
    var age: Int
  }

  private let folder: TemporaryFolder
  private var path: String { folder.path("app.sqlite") }

  init() throws {
    folder = try TemporaryFolder()
  }

  @Test func `the tables are those of the guide`() async throws {
    let users = try await SQLiteStore(path: path, name: "users", codec: .json(User.self))
    let events = try await SQLiteStore(path: path, name: "events", codec: .raw, layout: .clustered)
    try await users.close()
    try await events.close()
    #expect(
      try ForeignSQLite.run(path, "SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY name") == [
        #"CREATE TABLE "events"(key BLOB NOT NULL PRIMARY KEY, value BLOB NOT NULL) STRICT, WITHOUT ROWID"#,
        #"CREATE VIEW "events_text" AS SELECT CAST(key AS TEXT) AS key, value FROM "events""#,
        "CREATE TABLE larder(name TEXT PRIMARY KEY, codec TEXT NOT NULL, format INTEGER NOT NULL) STRICT",
        #"CREATE TABLE "users"(key BLOB NOT NULL PRIMARY KEY, value TEXT NOT NULL) STRICT"#,
        #"CREATE VIEW "users_text" AS SELECT CAST(key AS TEXT) AS key, value FROM "users""#,
      ])
    #expect(
      try ForeignSQLite.run(path, "SELECT * FROM larder ORDER BY name") == ["events|raw|1", "users|json|1"])
    #expect(try ForeignSQLite.run(path, "PRAGMA journal_mode; PRAGMA integrity_check") == ["wal", "ok"])
    // The file and nothing beside it, which only its owner can read.
    #expect(try folder.names == ["app.sqlite"])
    let attributes = try #require(try POSIXFileSystem().attributes(at: path))
    #expect(attributes.permissions & 0o777 == 0o600)
  }

  /// The table of an older tool, or of a text that was imported.
  @Test func `a record that cannot be read is refused until it is repaired`() async throws {
    let store = try await SQLiteStore(path: path, name: "users", codec: .json(Int.self))
    try await store.setValue(1, forKey: "a")
    try await store.close()
    try ForeignSQLite.run(
      path,
      "DROP TABLE larder; CREATE TABLE larder(name, codec, format); INSERT INTO larder VALUES('users', 'json', 'one')")
    let error = await expectStoreError(.corrupted) {
      try await SQLiteStore(path: path, name: "users", codec: .json(Int.self))
    }
    #expect(error?.operation == .open && error?.message.contains("record") == true)
    try ForeignSQLite.run(path, "UPDATE larder SET format = 1")
    let again = try await SQLiteStore(path: path, name: "users", codec: .json(Int.self))
    #expect(try again.value(forKey: "a") == 1)
    try await again.close()
  }

  /// The transaction reads with a statement that was compiled before.
  @Test(arguments: [true, false]) func `a table that another program removes is a conflict in transactions`(
    isRead: Bool
  ) async throws {
    let database = try await SQLiteDatabase(path: path)
    let store = try await SQLiteStore(in: database, name: "users", codec: .json(Int.self))
    try await store.setValue(1, forKey: "a")
    #expect(try database.read { try $0.value(forKey: "a", in: store) } == 1)
    try ForeignSQLite.run(path, "DROP VIEW users_text; DROP TABLE users")
    if isRead {
      let error = expectStoreError(.conflict) { try database.read { try $0.value(forKey: "a", in: store) } }
      #expect(error?.operation == .value)
      expectStoreError(.conflict) { try database.read { try $0.count(of: store) } }
    } else {
      await expectStoreError(.conflict) { try await database.write { try $0.setValue(2, forKey: "a", in: store) } }
    }
    try await database.close()
  }

  @Test func `values are queried and indexed`() async throws {
    let users = try await SQLiteStore(path: path, name: "users", codec: .json(User.self))
    try await users.apply([
      .set("user:1", User(name: "Ada", age: 36)), .set("user:2", User(name: "Bob \u{1F600}", age: 7)),
      .set("zzz", User(name: "Eve", age: 1)),
    ])
    let query = "SELECT value->>'name' FROM users_text WHERE key >= 'user:' AND key < 'user;' ORDER BY key"
    #expect(try ForeignSQLite.run(path, query) == ["Ada", "Bob \u{1F600}"])
    try ForeignSQLite.run(path, "CREATE INDEX users_by_name ON users(value->>'name')")
    let plan = try ForeignSQLite.run(
      path, "EXPLAIN QUERY PLAN SELECT key FROM users WHERE value->>'name' = 'Ada'")
    #expect(plan.contains { $0.contains("USING INDEX users_by_name") }, "\(plan)")
    // Another program's rows are seen immediately, in the same order.
    try ForeignSQLite.run(
      path, #"INSERT INTO users VALUES(CAST('user:15' AS BLOB), '{"name": "Cid", "age": 3}')"#)
    #expect(try users.keys(in: .all, limit: 9, order: .ascending) == ["user:1", "user:15", "user:2", "zzz"])
    #expect(try users.value(forKey: "user:15") == User(name: "Cid", age: 3))
    try await users.setValue(User(name: "Ada L.", age: 37), forKey: "user:1")
    #expect(try ForeignSQLite.run(path, "SELECT key FROM users WHERE value->>'name' = 'Ada L.'") == ["user:1"])
    try await users.close()
  }

  @Test func `keys have the order of their bytes`() async throws {
    let keys: [[UInt8]] = [
      [0], [0, 0], [0, 1], [1], Array("a".utf8), Array("a\u{0}".utf8), Array("aa".utf8), Array("é".utf8), [0x7F],
      [0x80],
      [0xFF], [0xFF, 0], [0xFF, 0xFF], [UInt8](repeating: 0xFF, count: 511),
    ]
    let store = try await SQLiteStore(path: path, codec: .raw)
    try await store.apply(ChangeBatch(keys.map { .set(StoreKey(bytes: $0), $0) }))
    let hexadecimal = try ForeignSQLite.run(path, "SELECT hex(key) FROM \"default\" ORDER BY key").map {
      $0.lowercased()
    }
    #expect(try store.keys(in: .all, limit: 99, order: .ascending).map(\.hexadecimal) == hexadecimal)
    #expect(hexadecimal.count == keys.count)
    // A text key would be a second, invisible entry.
    #expect(throws: ForeignSQLite.Failed.self) {
      try ForeignSQLite.run(path, "INSERT INTO \"default\" VALUES('user:1', x'00')")
    }
    try await store.close()
  }

  @Test func `a table of another program is opened and recorded`() async throws {
    _ = try ForeignSQLite.python(
      """
      db = sqlite3.connect(argv[1])
      db.execute('PRAGMA encoding = "UTF-16le"')
      db.execute('CREATE TABLE notes(key BLOB NOT NULL PRIMARY KEY, value TEXT NOT NULL) STRICT')
      db.execute('CREATE TABLE other(id INTEGER PRIMARY KEY, text TEXT)')
      db.execute('INSERT INTO notes VALUES(?, ?)', (b'n', '"caf\\u00e9"'))
      db.commit()
      """, path)
    await expectStoreError(.unsupported) { try await SQLiteStore(path: path, name: "notes", codec: .raw) }
    let reader = try await SQLiteStore(path: path, name: "notes", codec: .json(String.self), access: .readOnly)
    #expect(try reader.value(forKey: "n") == "café")
    try await reader.close()
    let notes = try await SQLiteStore(path: path, name: "notes", codec: .json(String.self))
    try await notes.update("n") { $0? += " ☕" }
    #expect(try notes.value(forKey: "n") == "café ☕")
    try await notes.close()
    #expect(try ForeignSQLite.run(path, "SELECT codec FROM larder") == ["json"])
    let lines = try ForeignSQLite.python(
      "print(sqlite3.connect(argv[1]).execute('SELECT value FROM notes').fetchone()[0])", path)
    #expect(lines == ["\"café ☕\""])
  }

  @Test(arguments: [
    "CREATE TABLE s(key BLOB NOT NULL PRIMARY KEY, value BLOB NOT NULL)",
    "CREATE TABLE s(key TEXT NOT NULL PRIMARY KEY, value BLOB NOT NULL) STRICT",
    "CREATE TABLE s(key BLOB NOT NULL, value BLOB NOT NULL) STRICT",
    "CREATE TABLE s(key BLOB NOT NULL PRIMARY KEY, value BLOB) STRICT",
    "CREATE TABLE s(key BLOB NOT NULL PRIMARY KEY, value INTEGER NOT NULL) STRICT",
    "CREATE TABLE s(key BLOB NOT NULL PRIMARY KEY, value BLOB NOT NULL, more TEXT) STRICT",
    "CREATE TABLE s(value BLOB NOT NULL, key BLOB NOT NULL PRIMARY KEY) STRICT",
    "CREATE VIEW s AS SELECT x'00' AS key, x'00' AS value",
    "CREATE TABLE t(x); CREATE INDEX s ON t(x)",
    "CREATE TABLE s_text(x)",
    "CREATE TABLE larder(name, codec)",
  ]) func `something else of that name is refused and left`(sql: String) async throws {
    try ForeignSQLite.run(path, "PRAGMA journal_mode = WAL; \(sql)")
    let before = try ForeignSQLite.run(path, "SELECT * FROM sqlite_schema")
    await expectStoreError(.unsupported) { try await SQLiteStore(path: path, name: "s", codec: .raw) }
    #expect(try ForeignSQLite.run(path, "SELECT * FROM sqlite_schema") == before)
  }

  @Test func `names are checked`() async throws {
    let database = try await SQLiteDatabase(path: path)
    let long = String(repeating: "n", count: 512)
    for name in ["", "larder", "LARDER", "sqlite_x", "SQLite_y", "users_text", "users_TEXT", "a\u{0}b", long] {
      await expectStoreError(.invalidArgument) { try await SQLiteStore(in: database, name: name, codec: .raw) }
    }
    for name in ["select", "a\"b", "ä ;--", "é", "x.y", "#"] {
      let store = try await SQLiteStore(in: database, name: name, codec: .raw)
      try await store.setValue(Array(name.utf8), forKey: "name")
      #expect(try store.value(forKey: "name") == Array(name.utf8))
    }
    // Also a name of other bytes that a library written in Swift does not tell from one in the database.
    for name in ["Select", "e\u{301}"] {
      await expectStoreError(.invalidArgument) { try await SQLiteStore(in: database, name: name, codec: .raw) }
    }
    let names = try await database.storeNames()
    #expect(names.count == 6 && names.contains("a\"b"))
    #expect(try await database.codecName(ofStore: "select") == "raw")
    #expect(try await database.codecName(ofStore: "missing") == nil)
    try await database.close()
  }

  @Test func `newer formats and other codecs are refused`() async throws {
    try await SQLiteStore(path: path, codec: .raw).close()
    await expectStoreError(.versionMismatch) { try await SQLiteStore(path: path, codec: .cbor(Int.self)) }
    try ForeignSQLite.run(path, "UPDATE larder SET format = 2")
    let error = await expectStoreError(.versionMismatch) { try await SQLiteStore(path: path, codec: .raw) }
    #expect(error?.message.contains("version 2") == true)
  }

  @Test func `another program changes the store while it is open`() async throws {
    let store = try await SQLiteStore(path: path, name: "s", codec: .raw)
    try await store.setValue([1], forKey: "a")
    try ForeignSQLite.run(path, "UPDATE larder SET codec = 'json' WHERE name = 's'")
    await expectStoreError(.versionMismatch) { try await store.setValue([2], forKey: "a") }
    try ForeignSQLite.run(path, "UPDATE larder SET codec = 'raw' WHERE name = 's'")
    try await store.setValue([3], forKey: "a")
    try ForeignSQLite.run(path, "DROP VIEW s_text; DROP TABLE s")
    await expectStoreError(.conflict) { try await store.setValue([4], forKey: "a") }
    expectStoreError(.conflict) { try store.value(forKey: "a") }
    try await store.close()
    // The record that is left over does not count.
    let again = try await SQLiteStore(path: path, name: "s", codec: .cbor(Int.self))
    #expect(try again.count(in: .all) == 0)
    try await again.close()
    #expect(try ForeignSQLite.run(path, "SELECT codec FROM larder") == ["cbor"])
  }
}
#endif
