import Foundation
import GRDB
import Larder
import LarderGRDB
import LarderSQLite
import Testing

/// Stores that are created in the migrations of the program.
@Suite(.timeLimit(.minutes(5))) struct MigrationTests {
  private struct Undo: Error {}

  /// The migrations of a program, which erases its database during development if they have changed.
  private func migrator(withNote: Bool = false) -> DatabaseMigrator {
    var migrator = DatabaseMigrator()
    migrator.eraseDatabaseOnSchemaChange = true
    migrator.registerMigration("orders") { db in
      try db.execute(
        sql: "CREATE TABLE orders(id INTEGER PRIMARY KEY, total INTEGER NOT NULL\(withNote ? ", note TEXT" : ""))")
    }
    migrator.registerMigration("stores") { db in
      try GRDBStore<User>.create(named: "users", in: db)
      try GRDBStore<User>.create(named: "guests", codec: .json(), in: db)
    }
    return migrator
  }

  @Test func `a store of a migration is not erased at the next launch`() async throws {
    let file = try TestDatabase()
    for launch in 1...3 {
      let pool = try DatabasePool(path: file.path)
      try migrator().migrate(pool)
      let users = try await GRDBStore<User>(in: pool, name: "users")
      let guests = try await GRDBStore<User>(in: pool, name: "guests", codec: .json())
      #expect(try await users.count() == launch - 1)
      #expect(try await guests.count() == launch - 1)
      #expect(try await pool.read { try Order.fetchCount($0) } == launch - 1)
      try await users.setValue(User(name: "Ada"), forKey: "\(launch)")
      try await guests.setValue(User(name: "Eve"), forKey: "\(launch)")
      try await pool.write { try Order(id: launch, total: 5).insert($0) }
      try await users.close()
      try await guests.close()
      try pool.close()
    }
    #expect(try file.command("SELECT value->>'name' FROM guests_text LIMIT 1") == "Eve")
    // A migration that has changed erases everything, the stores too.
    let pool = try DatabasePool(path: file.path)
    try migrator(withNote: true).migrate(pool)
    #expect(try await GRDBStore<User>(in: pool, name: "users", createsIfMissing: false).count() == 0)
    #expect(try await pool.read { try Order.fetchCount($0) } == 0)
  }

  /// The guide warns of this mistake.
  @Test func `a store outside of the migrations is erased`() async throws {
    let file = try TestDatabase()
    for launch in 1...2 {
      let pool = try DatabasePool(path: file.path)
      try migrator().migrate(pool)
      let others = try await GRDBStore<User>(in: pool, name: "others")
      #expect(try await others.count() == 0)
      #expect(try await pool.read { try Order.fetchCount($0) } == 0)
      try await others.setValue(User(name: "Ada"), forKey: "\(launch)")
      try await pool.write { try Order(id: launch, total: 5).insert($0) }
    }
  }

  @Test func `a store that exists is left`() async throws {
    let file = try TestDatabase()
    let queue = try DatabaseQueue(path: file.path)
    let users = try await GRDBStore<User>(in: queue, name: "users")
    try await users.setValue(User(name: "Ada"), forKey: "a")
    try migrator().migrate(queue)
    #expect(try await users.value(forKey: "a") == User(name: "Ada"))
    try await users.setValue(User(name: "Ada"), forKey: "b")
    // Without a transaction, the method has one of its own.
    try await queue.writeWithoutTransaction { db throws in
      try GRDBStore<User>.create(named: "more", in: db)
      #expect(!db.isInsideTransaction)
    }
    #expect(try await GRDBStore<User>(in: queue, name: "more", createsIfMissing: false).count() == 0)
  }

  @Test func `a refused creation leaves the transaction`() async throws {
    let file = try TestDatabase()
    let pool = try file.pool()
    try await pool.write { db throws in
      try GRDBStore<User>.create(named: "users", in: db)
      func refused(_ code: StoreError.Code, _ body: () throws -> Void) {
        let error = #expect(throws: StoreError.self) { try body() }
        #expect(error?.code == code, "\(String(describing: error))")
      }
      refused(.unsupported) { try GRDBStore<User>.create(named: "orders", in: db) }
      refused(.invalidArgument) { try GRDBStore<User>.create(named: "USERS", in: db) }
      refused(.invalidArgument) { try GRDBStore<User>.create(named: "larder", in: db) }
      refused(.versionMismatch) { try GRDBStore<User>.create(named: "users", codec: .json(), in: db) }
      // The table was created before its view was refused.
      try db.execute(sql: "CREATE TABLE guests_text(id)")
      refused(.unsupported) { try GRDBStore<User>.create(named: "guests", in: db) }
      try Order(id: 1, total: 5).insert(db)
    }
    try await pool.read { db throws in
      let error = #expect(throws: StoreError.self) { try GRDBStore<User>.create(named: "readers", in: db) }
      #expect(error?.code == .notPermitted)
    }
    #expect(
      try file.command(
        "SELECT group_concat(name) FROM (SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name)")
        == "guests_text,larder,orders,users")
    #expect(try file.command("SELECT * FROM orders; SELECT * FROM larder") == "1|5\nusers|cbor|1")
  }

  /// The statements are those of the guide.
  @Test func `a migration removes a store`() async throws {
    let file = try TestDatabase()
    let pool = try DatabasePool(path: file.path)
    try migrator().migrate(pool)
    let users = try await GRDBStore<User>(in: pool, name: "users")
    try await users.setValue(User(name: "Ada"), forKey: "a")
    for _ in 1...2 {
      var next = migrator()
      next.registerMigration("removal") { db in
        try db.execute(sql: "DROP VIEW users_text; DROP TABLE users; DELETE FROM larder WHERE name = 'users'")
      }
      try next.migrate(pool)
    }
    await expectStoreError(.conflict) { try await users.setValue(User(name: "Eve"), forKey: "b") }
    try await users.close()
    await expectStoreError(.notFound) { try await GRDBStore<User>(in: pool, name: "users", createsIfMissing: false) }
    #expect(try await GRDBStore<User>(in: pool, name: "users", codec: .json()).count() == 0)
  }

  @Test func `a migration that fails creates no store`() async throws {
    let file = try TestDatabase()
    let queue = try DatabaseQueue(path: file.path)
    var migrator = DatabaseMigrator()
    migrator.registerMigration("stores") { db in
      try GRDBStore<User>.create(named: "users", in: db)
      throw Undo()
    }
    #expect(throws: Undo.self) { try migrator.migrate(queue) }
    await expectStoreError(.notFound) { try await GRDBStore<User>(in: queue, name: "users", createsIfMissing: false) }
  }

  /// SQLite tells the two names apart, and a dictionary of Swift, such as GRDB's cache of statements, does not.
  @Test func `a name that is canonically equal to another is refused`() async throws {
    let file = try TestDatabase()
    let pool = try file.pool()
    let first = try await GRDBStore(in: pool, name: "caf\u{E9}", codec: .raw)
    try await first.setValue([1], forKey: "a")
    await expectStoreError(.invalidArgument) { try await GRDBStore(in: pool, name: "cafe\u{301}", codec: .raw) }
    await expectStoreError(.invalidArgument) {
      try await pool.write { try GRDBStore.create(named: "cafe\u{301}", codec: .raw, in: $0) }
    }
    await expectStoreError(.invalidArgument) {
      try await SQLiteStore(path: file.path, name: "cafe\u{301}", codec: .raw)
    }
    let ascii = try await GRDBStore(in: pool, name: "Kelvin", codec: .raw)
    await expectStoreError(.invalidArgument) { try await GRDBStore(in: pool, name: "\u{212A}elvin", codec: .raw) }
    #expect(try await ascii.count() == 0)
    #expect(try await first.value(forKey: "a") == [1])
  }
}
