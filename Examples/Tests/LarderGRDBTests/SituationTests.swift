import Foundation
import GRDB
import Larder
import LarderGRDB
import Testing

/// Habits of programs with the database of a store, and their consequences.
@Suite(.timeLimit(.minutes(5))) struct SituationTests {
  @Test func `a temporary table of the same name hides nothing`() async throws {
    let file = try TestDatabase()
    let pool = try file.pool()
    let users = try await GRDBStore<User>(in: pool, name: "users")
    try await pool.writeWithoutTransaction { db in
      try db.execute(sql: "CREATE TEMP TABLE users(key BLOB PRIMARY KEY, value BLOB)")
      try db.execute(sql: "CREATE TEMP TABLE larder(name, codec, format)")
    }
    try await users.setValue(User(name: "Ada"), forKey: "a")
    #expect(try await users.value(forKey: "a") == User(name: "Ada"))
    #expect(try file.command("SELECT count(*) FROM users") == "1")
    #expect(try await GRDBStore<User>(in: pool, name: "users").count() == 1)
  }

  /// The function of the connection answers in place of a library that is too old for strict tables.
  @Test func `an old library is refused and nothing is created`() async throws {
    let file = try TestDatabase()
    var configuration = Configuration()
    configuration.prepareDatabase { db in
      db.add(function: DatabaseFunction("sqlite_version", argumentCount: 0, pure: true) { _ in "3.36.0" })
    }
    let pool = try file.pool(configuration)
    for error in [
      await expectStoreError(.unsupported) { try await GRDBStore<User>(in: pool, name: "users") },
      await expectStoreError(.unsupported) {
        try await pool.write { try GRDBStore<User>.create(named: "users", in: $0) }
      },
    ] {
      #expect(error?.operation == .open && error?.message.contains("version 3.36.0") == true)
    }
    #expect(try file.command("SELECT group_concat(name) FROM sqlite_schema") == "orders")
  }

  @Test func `names that hide SQLite s functions are refused`() async throws {
    let file = try TestDatabase()
    let pool = try file.pool()
    await expectStoreError(.invalidArgument) { try await GRDBStore<User>(in: pool, name: "pragma_table_list") }
  }

  @Test func `a refused opening leaves nothing`() async throws {
    let file = try TestDatabase()
    let pool = try file.pool()
    await expectStoreError(.unsupported) {
      try await GRDBStore<User>(in: pool, name: "users", requiresSynced: true)
    }
    #expect(try file.command("SELECT group_concat(name) FROM sqlite_schema") == "orders")
  }

  @Test func `a symbolic link is followed to the log`() async throws {
    let file = try TestDatabase()
    let real = file.folder + "/real"
    try FileManager.default.createDirectory(atPath: real, withIntermediateDirectories: false)
    try FileManager.default.createSymbolicLink(atPath: file.path, withDestinationPath: real + "/app.sqlite")
    let pool = try file.pool()
    let store = try await GRDBStore(in: pool, codec: .raw)
    try await store.setValue([1], forKey: "a")
    try await store.synchronize()
    // A log that cannot be opened is noticed where it is looked for, beside the file.
    let log = real + "/app.sqlite-wal"
    try FileManager.default.removeItem(atPath: log)
    try FileManager.default.createSymbolicLink(atPath: log, withDestinationPath: log)
    await #expect(throws: StoreError.self) { try await store.synchronize() }
  }

  @Test func `an update notices a replaced table before it reads`() async throws {
    let file = try TestDatabase()
    let pool = try file.pool()
    let users = try await GRDBStore<User>(in: pool, name: "users")
    try await users.setValue(User(name: "Ada"), forKey: "a")
    _ = try file.command("UPDATE larder SET codec = 'other' WHERE name = 'users'")
    await expectStoreError(.versionMismatch) { try await users.update("a") { _ in Issue.record("it was decoded") } }
    _ = try file.command("UPDATE larder SET codec = 'cbor' WHERE name = 'users'")
    try await users.update("a") { $0?.name = "Eve" }
    _ = try file.command("DROP TABLE users")
    await expectStoreError(.conflict) { try await users.update("a") { $0 = nil } }
    let other = try TestDatabase()
    let otherPool = try other.pool()
    try await otherPool.write { db throws in
      _ = #expect(throws: StoreError.self) { try users.update("a", in: db) { _ in } }
    }
  }

  @Test func `a record is compared again after a savepoint is rolled back`() async throws {
    let file = try TestDatabase()
    let pool = try file.pool()
    _ = try await GRDBStore(in: pool, name: "users", codec: OldCodec())
    let users = try await GRDBStore(in: pool, name: "users", codec: NewCodec())
    try await pool.write { db in
      try db.inSavepoint {
        try users.setValue([1], forKey: "a", in: db)
        try users.setValue([2], forKey: "b", in: db)
        return .rollback
      }
      #expect(try String.fetchOne(db, sql: "SELECT codec FROM larder") == "old")
      try users.setValue([3], forKey: "c", in: db)
    }
    #expect(try file.command("SELECT codec FROM larder") == "new")
  }

  @Test func `a statement that a trigger stops in the middle is undone`() async throws {
    let file = try TestDatabase()
    let pool = try file.pool()
    let store = try await GRDBStore(in: pool, codec: .raw)
    try await store.apply(ChangeBatch((0..<5).map { .set("\($0)", [UInt8($0)]) }))
    try await pool.write { db in
      try db.execute(
        sql: """
          CREATE TRIGGER stop BEFORE DELETE ON "default" WHEN old.value = x'03' BEGIN SELECT RAISE(FAIL, 'no'); END
          """)
    }
    try await pool.write { db throws in
      #expect(throws: StoreError.self) { try store.removeAll(in: "1"..."4", in: db) }
      try Order(id: 1, total: 1).insert(db)
    }
    #expect(try await store.count() == 5)
    #expect(try await pool.read { try Order.fetchCount($0) } == 1)
  }

  @Test func `a batch that the library refuses ends the transaction`() async throws {
    let file = try TestDatabase()
    let queue = try DatabaseQueue(path: file.path)
    let store = try await GRDBStore(in: queue, codec: .raw)
    try await queue.write { try $0.execute(sql: "CREATE TABLE other(id INTEGER)") }
    let pages = try await queue.read { try Int.fetchOne($0, sql: "PRAGMA page_count") ?? 0 }
    try await queue.writeWithoutTransaction { try $0.execute(sql: "PRAGMA max_page_count = \(pages + 10)") }
    let batch = ChangeBatch((0..<100).map { .set("\($0)" as StoreKey, [UInt8](repeating: 1, count: 4000)) })
    await #expect(throws: (any Error).self) {
      try await queue.write { db in
        try db.execute(sql: "INSERT INTO other VALUES(1)")
        do {
          try store.apply(batch, in: db)
        } catch let error as StoreError {
          #expect(error.code == .full)
        }
        // GRDB knows that the transaction is gone.
        try db.execute(sql: "INSERT INTO other VALUES(2)")
      }
    }
    #expect(try await store.count() == 0)
    #expect(try await queue.read { try Int.fetchOne($0, sql: "SELECT count(*) FROM other") } == 0)
  }

  @Test func `damaged text is an error and not another value`() async throws {
    let file = try TestDatabase()
    let pool = try file.pool()
    let users = try await GRDBStore(in: pool, name: "users", codec: .json(User.self))
    _ = try file.command(
      "INSERT INTO users VALUES(x'61', CAST(x'7B226E616D65223A22FF227D' AS TEXT)),"
        + "(x'62', '{\"name\":\"Ada\"}' || char(0) || 'x')")
    for key in ["a", "b"] as [StoreKey] {
      await #expect(throws: StoreError.self) { try await users.value(forKey: key) }
    }
    #expect(try await users.verify().findings.count == 2)
  }

  @Test func `a write that has begun completes despite a cancellation`() async throws {
    let file = try TestDatabase()
    let pool = try file.pool()
    let store = try await GRDBStore(in: pool, codec: .raw)
    let isInBody = Locked(false)
    let cancelled = DispatchSemaphore(value: 0)
    let write = Task {
      try await store.update("a") { value in
        isInBody.withLock { $0 = true }
        cancelled.wait()
        value = [1]
      }
    }
    while !isInBody.withLock({ $0 }) { await Task.yield() }
    write.cancel()
    cancelled.signal()
    try await write.value
    #expect(try await store.value(forKey: "a") == [1])
    let late = Task {
      while !Task.isCancelled { await Task.yield() }
      try await store.setValue([2], forKey: "a")
    }
    late.cancel()
    await #expect(throws: CancellationError.self) { try await late.value }
    #expect(try await store.value(forKey: "a") == [1])
  }

  @Test func `a write that is cancelled while it waits changes nothing`() async throws {
    let file = try TestDatabase()
    let pool = try file.pool()
    let store = try await GRDBStore(in: pool, codec: .raw)
    let (isInside, mayEnd) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
    let blocking = Task {
      try await pool.write { _ in
        isInside.signal()
        mayEnd.wait()
      }
    }
    await withCheckedContinuation { continuation in
      DispatchQueue.global().async {
        isInside.wait()
        continuation.resume()
      }
    }
    let writes: [Task<Void, any Error>] = [
      Task { try await store.setValue([1], forKey: "a") },
      Task { try await store.update("a") { $0 = [2] } },
    ]
    // Long enough for the writes to wait behind the transaction. A write that does not wait yet throws as well.
    for _ in 0..<10_000 { await Task.yield() }
    for write in writes { write.cancel() }
    mayEnd.signal()
    try await blocking.value
    for write in writes { await #expect(throws: CancellationError.self) { try await write.value } }
    #expect(try await store.count() == 0)
  }

  /// Only SQL can insert them.
  @Test(arguments: [0, 512]) func `a key of a wrong length is listed and removed with its range`(length: Int)
    async throws
  {
    let file = try TestDatabase()
    let pool = try file.pool()
    let store = try await GRDBStore(in: pool, codec: .raw)
    try await store.apply([.set("a", [1]), .set("z", [2])])
    let key = [UInt8](repeating: 0x6B, count: length)
    try await pool.write { db in
      try db.execute(sql: "INSERT INTO \"default\" VALUES(?, x'03')", arguments: [Data(key)])
    }
    #expect(
      try await store.keys(in: .all, limit: 9, order: .ascending).map(\.count).sorted() == [1, 1, length].sorted())
    #expect(try await store.verify().findings.count == 1)
    await expectStoreError(.invalidKey) { try await store.removeValue(forKey: StoreKey(bytes: key)) }
    try await pool.write { db in
      try db.execute(sql: "DELETE FROM \"default\" WHERE length(key) NOT BETWEEN 1 AND 511")
    }
    #expect(try await store.verify() == VerificationReport(entryCount: 2))
  }

  @Test func `closing waits for the programs transactions`() async throws {
    let file = try TestDatabase()
    let pool = try file.pool()
    let store = try await GRDBStore(in: pool, codec: .raw)
    let (isInside, mayEnd) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
    let writing = Task {
      try await pool.write { db in
        try store.update("a", in: db) { value in
          isInside.signal()
          mayEnd.wait()
          value = [1]
        }
      }
    }
    await withCheckedContinuation { continuation in
      DispatchQueue.global().async {
        isInside.wait()
        continuation.resume()
      }
    }
    let isClosed = Locked(false)
    let closing = Task {
      try await store.close()
      isClosed.withLock { $0 = true }
    }
    await expectStoreErrorEventually(.closed) { try await store.count() }
    #expect(!isClosed.withLock { $0 })
    mayEnd.signal()
    try await writing.value
    try await closing.value
  }

  /// Repeats a call until it fails with a code.
  private func expectStoreErrorEventually(
    _ code: StoreError.Code, _ body: () async throws -> some Any
  ) async {
    while true {
      do {
        _ = try await body()
        await Task.yield()
      } catch {
        #expect((error as? StoreError)?.code == code)
        return
      }
    }
  }

  /// The code says that the index of the log cannot grow.
  ///
  /// An observer of the program's throws it in place of the system.
  @Test func `a log without room for its index is a full disk`() async throws {
    let file = try TestDatabase()
    let pool = try file.pool()
    let store = try await GRDBStore(in: pool, codec: .raw)
    let refusal = CommitRefusal()
    try await pool.writeWithoutTransaction { $0.add(transactionObserver: refusal) }
    let error = await expectStoreError(.full) { try await store.setValue([1], forKey: "a") }
    #expect(error?.isRetryable == true)
    #expect(try await store.count() == 0)
    withExtendedLifetime(refusal) {}
  }

  @Test func `an older program cannot write once a newer one has written`() async throws {
    let file = try TestDatabase()
    let queue = try DatabaseQueue(path: file.path)
    let base = JSONCodec<User>()
    let migration = ValueMigration(from: 1, base) { $0 }
    func open(_ codec: VersionedCodec<JSONCodec<User>>) async throws -> GRDBStore<User> {
      try await GRDBStore(in: queue, name: "users", codec: codec)
    }
    let old = try await open(base.versioned(1))
    let first = try await open(base.versioned(2, migration, writing: OlderVersion(1, base) { $0 }))
    try await old.setValue(User(name: "Ada"), forKey: "a")
    try await first.setValue(User(name: "Bob"), forKey: "b")
    let second = try await open(base.versioned(2, migration))
    try await second.setValue(User(name: "Ada L."), forKey: "a")
    await expectStoreError(.versionMismatch) { try await old.setValue(User(name: "x"), forKey: "a") }
    await expectStoreError(.versionMismatch) { try await old.update("b") { $0?.name = "x" } }
    await expectStoreError(.versionMismatch) { try await open(base.versioned(1)) }
    // The program of the first step is refused once, and then writes version 2.
    await expectStoreError(.conflict) { try await first.setValue(User(name: "x"), forKey: "b") }
    try await first.setValue(User(name: "Bob L."), forKey: "b")
    let text = try await queue.read { try String.fetchOne($0, sql: "SELECT value FROM users WHERE key = x'62'") }
    #expect(text == #"{"$version":2,"$value":{"name":"Bob L."}}"#)
    #expect(try await second.value(forKey: "b") == User(name: "Bob L."))
  }

  @Test func `a suspended database is a time out`() async throws {
    let file = try TestDatabase()
    var configuration = Configuration()
    configuration.observesSuspensionNotifications = true
    configuration.journalMode = .default
    let queue = try DatabaseQueue(path: file.path, configuration: configuration)
    let store = try await GRDBStore(in: queue, codec: .raw)
    NotificationCenter.default.post(name: Database.suspendNotification, object: nil)
    let error = await #expect(throws: StoreError.self) { try await store.setValue([1], forKey: "a") }
    #expect(error?.code == .timedOut && error?.isRetryable == true)
    NotificationCenter.default.post(name: Database.resumeNotification, object: nil)
    try await store.setValue([1], forKey: "a")
  }
}

/// An observer of the program that refuses every commit.
private final class CommitRefusal: TransactionObserver, Sendable {
  func observes(eventsOfKind eventKind: DatabaseEventKind) -> Bool { false }
  func databaseDidChange(with event: DatabaseEvent) {}
  func databaseWillCommit() throws { throw DatabaseError(resultCode: .SQLITE_IOERR_SHMSIZE) }
  func databaseDidCommit(_ db: Database) {}
  func databaseDidRollback(_ db: Database) {}
}

/// A codec of bytes under a name of its own.
private struct OldCodec: Codec {
  var name: String { "old" }
  var format: CodecFormat { .binary }
  func encode(_ value: [UInt8], into bytes: inout [UInt8], context: ValueContext) { bytes += value }
  func decode(_ bytes: RawSpan, context: ValueContext) -> [UInt8] { bytes.withUnsafeBytes { Array($0) } }
}

/// A codec that takes over stores of ``OldCodec``.
private struct NewCodec: Codec {
  var name: String { "new" }
  var format: CodecFormat { .binary }
  var adoptedNames: [String] { ["old"] }
  func encode(_ value: [UInt8], into bytes: inout [UInt8], context: ValueContext) { bytes += value }
  func decode(_ bytes: RawSpan, context: ValueContext) -> [UInt8] { bytes.withUnsafeBytes { Array($0) } }
}
