import GRDB
import Larder
import LarderGRDB
import LarderSQLite
import Testing

/// The store beside the program's own tables, SQL and tools.
@Suite(.timeLimit(.minutes(5))) struct GRDBStoreTests {
  // MARK: The program's transactions

  @Test func `an entry is committed together with the programs row`() async throws {
    let file = try TestDatabase()
    let pool = try file.pool()
    let users = try await GRDBStore<User>(in: pool, name: "users")
    try await pool.write { db in
      try Order(id: 1, total: 5).insert(db)
      try users.apply([.set("user:7", User(name: "Ada")), .set("user:8", User(name: "Grace"))], in: db)
      // The transaction reads its own writes.
      #expect(try users.value(forKey: "user:7", in: db) == User(name: "Ada"))
    }
    #expect(try await users.value(forKey: "user:7") == User(name: "Ada"))
    #expect(try await pool.read { try users.values(forKeys: ["user:8", "x"], in: $0) } == [User(name: "Grace"), nil])
    await #expect(throws: CancellationError.self) {
      try await pool.write { db in
        try Order(id: 2, total: 5).insert(db)
        try users.removeAll(in: db)
        try users.setValue(User(name: "Eve"), forKey: "user:9", in: db)
        throw CancellationError()
      }
    }
    #expect(try await users.keys(in: .all, limit: 9, order: .ascending) == ["user:7", "user:8"])
    #expect(try await pool.read { try Order.fetchCount($0) } == 1)
  }

  @Test func `reads inside a transaction take ranges limits and orders`() async throws {
    let file = try TestDatabase()
    let pool = try file.pool()
    let store = try await GRDBStore(in: pool, codec: .raw)
    try await store.apply(ChangeBatch((0..<10).map { .set("\($0)", [UInt8($0)]) }))
    try await pool.read { db throws in
      let range = KeyRange(from: "2", upTo: "6")
      #expect(try store.keys(in: range, limit: 2, order: .descending, in: db) == ["5", "4"])
      #expect(try store.entries(in: range, limit: 1, in: db).map(\.value) == [[2]])
      #expect(try store.count(in: range, in: db) == 4)
      #expect(try store.count(in: db) == 10)
      #expect(throws: StoreError.self) { try store.keys(limit: -1, in: db) }
    }
    let sum = try await pool.write { db in
      try store.update(["1", "x"], in: db) { slots in
        let sum = slots.compactMap(\.self).flatMap(\.self).reduce(0, +)
        slots.assign([nil, [sum]])
        return sum
      }
    }
    #expect(sum == 1)
    #expect(try await store.values(forKeys: ["1", "x"]) == [nil, [1]])
  }

  @Test func `a batch that fails changes nothing even if the error is caught`() async throws {
    let file = try TestDatabase()
    let pool = try file.pool()
    let store = try await GRDBStore(in: pool, codec: .raw)
    try await pool.write { db in
      try db.execute(
        sql:
          "CREATE TRIGGER refusal BEFORE INSERT ON \"default\" WHEN NEW.key = x'62' BEGIN SELECT RAISE(ABORT, 'no b'); END"
      )
    }
    try await pool.write { db in
      do {
        try store.apply([.set("a", [1]), .set("b", [2])], in: db)
        Issue.record("the trigger refuses the key b")
      } catch let error as StoreError {
        #expect(error.code == .notPermitted && error.message.contains("no b"), "\(error)")
      }
      try store.setValue([3], forKey: "c", in: db)
    }
    #expect(try await store.keys(in: .all, limit: 9, order: .ascending) == ["c"])
    let error = await expectStoreError(.notPermitted) { try await store.apply([.set("a", [1]), .set("b", [2])]) }
    #expect(error?.outcome == .nothingChanged)
    #expect(try await store.count(in: .all) == 1)
  }

  /// Savepoints of one name nest.
  @Test func `the body of an update writes to other stores`() async throws {
    let file = try TestDatabase()
    let pool = try file.pool()
    let (store, log) = (
      try await GRDBStore(in: pool, codec: .raw), try await GRDBStore(in: pool, name: "log", codec: .raw)
    )
    try await pool.write { db throws in
      for isRefused in [false, true] {
        let update = {
          try store.update("a", in: db) { value in
            value = [isRefused ? 2 : 1]
            try log.apply([.set(isRefused ? "b" : "a", [1]), .removeAll("x"...)], in: db)
            try store.setValue([3], forKey: isRefused ? "c" : "d", in: db)
            try Order(id: isRefused ? 2 : 1, total: 5).insert(db)
            if isRefused { throw Order.Missing() }
          }
        }
        if isRefused { #expect(throws: Order.Missing.self) { try update() } } else { try update() }
      }
    }
    #expect(try await store.entries(in: .all, limit: 9, order: .ascending).map(\.value) == [[1], [3]])
    #expect(try await log.keys(in: .all, limit: 9, order: .ascending) == ["a"])
    #expect(try await pool.read { try Order.fetchCount($0) } == 1)
  }

  @Test func `without a transaction a batch is one of its own`() async throws {
    let file = try TestDatabase()
    let pool = try file.pool()
    let store = try await GRDBStore(in: pool, codec: .raw)
    try await pool.writeWithoutTransaction { db throws in
      try store.apply([.set("a", [1]), .set("b", [2])], in: db)
      #expect(!db.isInsideTransaction)
      try store.update("a", in: db) { $0 = [9] }
      #expect(throws: Order.Missing.self) {
        try store.update("b", in: db) {
          $0 = nil
          throw Order.Missing()
        }
      }
      #expect(!db.isInsideTransaction)
    }
    #expect(try await store.values(forKeys: ["a", "b"]) == [[9], [2]])
  }

  @Test func `a connection of another database is refused`() async throws {
    let (first, second) = (try TestDatabase(), try TestDatabase())
    let (pool, other) = (try first.pool(), try second.pool())
    let store = try await GRDBStore(in: pool, codec: .raw)
    await expectStoreError(.invalidArgument) {
      try await other.write { db in try store.setValue([1], forKey: "a", in: db) }
    }
    await expectStoreError(.invalidArgument) {
      try await pool.read { db in try store.setValue([1], forKey: "a", in: db) }
    }
  }

  // MARK: Observation

  @Test func `value observation tracks an entry`() async throws {
    let file = try TestDatabase()
    let pool = try file.pool()
    let users = try await GRDBStore<User>(in: pool, name: "users")
    let observation = ValueObservation.tracking { db in try users.value(forKey: "user:7", in: db)?.name }
      .removeDuplicates()
    var names = observation.values(in: pool).makeAsyncIterator()
    #expect(try await names.next() == .some(nil))
    try await users.setValue(User(name: "Ada"), forKey: "user:7")
    #expect(try await names.next() == "Ada")
    try await pool.write { db in try users.setValue(User(name: "Grace"), forKey: "user:7", in: db) }
    #expect(try await names.next() == "Grace")
  }

  @Test func `observers learn the keys of the store and the existence of other changes`() async throws {
    let file = try TestDatabase()
    let pool = try file.pool()
    let store = try await GRDBStore(in: pool, codec: .raw)
    let events = Events()
    let observation = store.observe(.all) { events.receive($0) }
    try await store.setValue([1], forKey: "a")
    try await pool.write { db in
      try store.apply([.set("b", [1]), .remove("a")], in: db)
      try Order(id: 1, total: 5).insert(db)
    }
    // The rows of a savepoint of the program come later, so their keys are not certain.
    try await pool.write { db in
      try db.inSavepoint {
        try store.setValue([1], forKey: "c", in: db)
        return .commit
      }
    }
    try await pool.write { db in try db.execute(sql: "UPDATE \"default\" SET value = x'02' WHERE key = x'62'") }
    try await pool.write { db in try Order(id: 2, total: 5).insert(db) }
    _ = try? await pool.write { db in
      try store.setValue([1], forKey: "d", in: db)
      throw Order.Missing()
    }
    try await pool.write { db in
      try db.execute(
        sql: "CREATE TRIGGER copy AFTER INSERT ON orders BEGIN INSERT INTO \"default\" VALUES (x'7A', x'01'); END")
      try Order(id: 3, total: 5).insert(db)
    }
    observation.cancel()
    try await store.setValue([1], forKey: "e")
    #expect(
      await events.finish() == [
        .changed([.key("a")]), .changed([.key("b"), .key("a")]), .changed([.range(.all)]), .changed([.range(.all)]),
        .changed([.range(.all)]),
      ])
  }

  @Test func `a trigger that changes other entries is reported`() async throws {
    let file = try TestDatabase()
    let pool = try file.pool()
    let store = try await GRDBStore(in: pool, codec: .raw)
    try await pool.write { db in
      try db.execute(
        sql: """
          CREATE TRIGGER copy AFTER INSERT ON "default" WHEN NEW.key <> x'7A'
          BEGIN INSERT INTO "default" VALUES (x'7A', x'01'); END
          """)
    }
    let events = Events()
    let observation = store.observe(.all) { events.receive($0) }
    try await store.setValue([1], forKey: "a")
    observation.cancel()
    #expect(await events.finish() == [.changed([.range(.all)])])
  }

  // MARK: The same file as SQLiteStore

  @Test(arguments: [SQLiteTableLayout.ordinary, .clustered])
  func `each store opens the file of the other`(layout: SQLiteTableLayout) async throws {
    let file = try TestDatabase()
    let written = try await SQLiteStore<User>(path: file.path, name: "users", codec: .json(), layout: layout)
    try await written.setValue(User(name: "Ada"), forKey: "user:7")
    try await written.close()
    do {
      let pool = try file.pool()
      let users = try await GRDBStore<User>(in: pool, name: "users", codec: .json())
      #expect(try await users.value(forKey: "user:7") == User(name: "Ada"))
      let observation = ValueObservation.tracking { db in try users.value(forKey: "user:8", in: db)?.name }
        .removeDuplicates()
      var names = observation.values(in: pool).makeAsyncIterator()
      #expect(try await names.next() == .some(nil))
      try await users.setValue(User(name: "Grace"), forKey: "user:8")
      #expect(try await names.next() == "Grace")
      try await users.close()
      try pool.close()
    }
    #expect(try file.command("SELECT key, value->>'name' FROM users_text") == "user:7|Ada\nuser:8|Grace")
    #expect(try file.command("SELECT * FROM larder") == "users|json|1")
    let read = try await SQLiteStore<User>(path: file.path, name: "users", codec: .json())
    #expect(try read.value(forKey: "user:8") == User(name: "Grace"))
    try await read.close()
  }

  @Test func `other programs read and write while the store is open`() async throws {
    let file = try TestDatabase()
    let pool = try file.pool()
    let users = try await GRDBStore<User>(in: pool, name: "users", codec: .json())
    try await users.setValue(User(name: "Ada"), forKey: "user:7")
    #expect(try file.command("SELECT value FROM users") == #"{"name":"Ada"}"#)
    _ = try file.command(#"INSERT INTO users VALUES (CAST('user:8' AS BLOB), '{"name":"Grace"}')"#)
    #expect(try await users.value(forKey: "user:8") == User(name: "Grace"))
    _ = try file.command("DROP VIEW users_text; DROP TABLE users")
    await expectStoreError(.conflict) { try await users.value(forKey: "user:8") }
    await expectStoreError(.conflict) { try await users.setValue(User(name: "Eve"), forKey: "user:9") }
  }

  @Test func `a database in UTF16 holds the same text`() async throws {
    let file = try TestDatabase()
    var configuration = Configuration()
    configuration.prepareDatabase { db in try db.execute(sql: "PRAGMA encoding = 'UTF-16le'") }
    let pool = try file.pool(configuration)
    let users = try await GRDBStore<User>(in: pool, name: "users", codec: .json())
    try await users.setValue(User(name: "Åda €"), forKey: "user:7")
    #expect(try await users.value(forKey: "user:7") == User(name: "Åda €"))
    #expect(try file.command("PRAGMA encoding; SELECT value->>'name' FROM users") == "UTF-16le\nÅda €")
  }

  // MARK: Names, codecs and types

  @Test func `a table that is no store is refused and left`() async throws {
    let file = try TestDatabase()
    let pool = try file.pool()
    await expectStoreError(.unsupported) { try await GRDBStore<User>(in: pool, name: "orders") }
    await expectStoreError(.invalidArgument) { try await GRDBStore<User>(in: pool, name: "ORDERS") }
    await expectStoreError(.invalidArgument) { try await GRDBStore<User>(in: pool, name: "larder") }
    await expectStoreError(.notFound) { try await GRDBStore<User>(in: pool, name: "users", createsIfMissing: false) }
    #expect(try file.command("SELECT name FROM sqlite_schema") == "orders")
    let users = try await GRDBStore<User>(in: pool, name: "users")
    await expectStoreError(.invalidArgument) { try await GRDBStore<Int>(in: pool, name: "users") }
    await expectStoreError(.versionMismatch) { try await GRDBStore<User>(in: pool, name: "users", codec: .json()) }
    // Another object with the same type shares the table.
    let same = try await GRDBStore<User>(in: pool, name: "users")
    try await users.close()
    await expectStoreError(.invalidArgument) { try await GRDBStore<Int>(in: pool, name: "users") }
    try await same.close()
    _ = try await GRDBStore<Int>(in: pool, name: "users")
  }

  @Test func `a codec that another program records stops writing`() async throws {
    let file = try TestDatabase()
    let pool = try file.pool()
    let users = try await GRDBStore<User>(in: pool, name: "users")
    try await users.setValue(User(name: "Ada"), forKey: "a")
    _ = try file.command("UPDATE larder SET codec = 'cbor v2'")
    await expectStoreError(.versionMismatch) { try await users.setValue(User(name: "Ada"), forKey: "b") }
    _ = try file.command("UPDATE larder SET codec = 'cbor'")
    try await users.setValue(User(name: "Ada"), forKey: "b")
  }

  @Test func `a database opened for reading is not written`() async throws {
    let file = try TestDatabase()
    let pool = try file.pool()
    try await GRDBStore<User>(in: pool, name: "users").setValue(User(name: "Ada"), forKey: "a")
    var configuration = Configuration()
    configuration.readonly = true
    let reader = try DatabasePool(path: file.path, configuration: configuration)
    let users = try await GRDBStore<User>(in: reader, name: "users")
    #expect(users.information.access == .readOnly)
    #expect(try await users.value(forKey: "a") == User(name: "Ada"))
    await expectStoreError(.notPermitted) { try await users.setValue(User(name: "Eve"), forKey: "a") }
    await expectStoreError(.notPermitted) { try await users.update("a") { $0 = nil } }
    await expectStoreError(.notPermitted) { try await users.compact() }
    await expectStoreError(.notFound) { try await GRDBStore<User>(in: reader, name: "others") }
    try await users.close()
    #expect(try file.command("SELECT name FROM sqlite_schema WHERE name = 'others'") == "")
  }

  // MARK: Closing

  @Test func `closing the store leaves the database open`() async throws {
    let file = try TestDatabase()
    let pool = try file.pool()
    let users = try await GRDBStore<User>(in: pool, name: "users")
    try await users.close()
    try await users.close()
    await expectStoreError(.closed) { try await users.value(forKey: "a") }
    await expectStoreError(.closed) { try await pool.read { try users.count(in: $0) } }
    await expectStoreError(.closed) { try await pool.write { try users.removeAll(in: $0) } }
    #expect(try await pool.read { try Order.fetchCount($0) } == 0)
  }

  @Test func `a closed database is a closed store`() async throws {
    let file = try TestDatabase()
    let pool = try file.pool()
    let users = try await GRDBStore<User>(in: pool, name: "users")
    try pool.close()
    await expectStoreError(.closed) { try await users.value(forKey: "a") }
    await expectStoreError(.closed) { try await users.setValue(User(name: "Ada"), forKey: "a") }
  }

  // MARK: Locks

  @Test func `another process that holds the lock is a time out`() async throws {
    let file = try TestDatabase()
    let (pool, other) = (try file.pool(), try file.pool())
    let store = try await GRDBStore(in: pool, codec: .raw)
    try await other.writeWithoutTransaction { db throws in
      try db.beginTransaction(.immediate)
      let error = #expect(throws: StoreError.self) {
        try pool.writeWithoutTransaction { db in try store.setValue([1], forKey: "a", in: db) }
      }
      #expect(error?.code == .timedOut && error?.isRetryable == true && error?.outcome == .nothingChanged)
      try db.rollback()
    }
    try await store.setValue([1], forKey: "a")
  }
}

extension Order {
  struct Missing: Error {}
}
