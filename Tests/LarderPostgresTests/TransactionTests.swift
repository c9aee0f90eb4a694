#if Postgres
import Larder
import LarderCBOR
import LarderPostgres
import TestSupport
import Testing

@Suite struct TransactionTests {
  @Test func `several stores and SQL are written together`() async throws {
    try await Setting.run { setting in
      let names = try await PostgresStore<String>(in: setting.database, name: "names")
      let ages = try await PostgresStore<Int>(in: setting.database, name: "ages", codec: .json())
      try await setting.psql("CREATE TABLE log(line text, number int)")
      let rows = try await setting.database.write { transaction in
        try await transaction.setValue("Ada", forKey: "1", in: names)
        try await transaction.apply([.set("1", 36), .set("2", 40), .remove("2")], to: ages)
        try await transaction.execute("INSERT INTO log VALUES($1, $2)", ["Ada", "36"])
        #expect(try await names.value(forKey: "1") == nil, "others don't see it yet")
        #expect(try await transaction.value(forKey: "1", in: names) == "Ada")
        #expect(try await transaction.values(forKeys: ["1", "2"], in: ages) == [36, nil])
        return try await transaction.execute("SELECT line, number, NULL AS nothing FROM log WHERE number = $1", ["36"])
      }
      #expect(rows == [["line": "Ada", "number": "36"]])
      #expect(try await ages.value(forKey: "1") == 36)
      #expect(try await setting.psql("SELECT key, value FROM ages") == "\\x31|36", "JSON is a column of JSON")
      #expect(try await setting.database.storeNames() == ["ages", "names"])
      #expect(try await setting.database.codecName(ofStore: "ages") == "json")
    }
  }

  @Test func `an error rolls back and passes through`() async throws {
    struct Refused: Error {}
    try await Setting.run { setting in
      let store = try await PostgresStore<Int>(in: setting.database)
      await #expect(throws: Refused.self) {
        try await setting.database.write { transaction in
          try await transaction.setValue(1, forKey: "k", in: store)
          throw Refused()
        }
      }
      #expect(try await store.value(forKey: "k") == nil)
    }
  }

  @Test func `a statement that fails fails the transaction even if it is caught`() async throws {
    try await Setting.run { setting in
      let store = try await PostgresStore<Int>(in: setting.database)
      let error = await #expect(throws: StoreError.self) {
        try await setting.database.write { transaction in
          try await transaction.setValue(1, forKey: "k", in: store)
          do {
            try await transaction.execute("SELECT * FROM missing")
          } catch {}
          await expectStoreError(.conflict) { try await transaction.count(of: store) }
        }
      }
      #expect((error?.underlying as? PostgresError)?.sqlState == "42P01")
      #expect(error?.outcome == .nothingChanged)
      #expect(try await store.value(forKey: "k") == nil)
    }
  }

  @Test func `a commit that the server rolls back is an error`() async throws {
    try await Setting.run { setting in
      let store = try await PostgresStore<Int>(in: setting.database)
      await expectStoreError(.conflict) {
        try await setting.database.write { transaction in
          try await transaction.setValue(1, forKey: "k", in: store)
          // It is sent before the commit, and the closure does not wait for its failure.
          Task { try await transaction.execute("SELECT 1 / length(pg_sleep(3)::text)") }
          let sleeping =
            "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep' AND application_name = '\(setting.schema)'"
          try await waitUntil { try await setting.psql(sleeping) != "0" }
        }
      }
      #expect(try await store.value(forKey: "k") == nil)
    }
  }

  @Test(arguments: ["ROLLBACK", "COMMIT"]) func `the users SQL cannot end the transaction`(sql: String) async throws {
    try await Setting.run(connections: 1) { setting in
      let store = try await PostgresStore<Int>(in: setting.database)
      await expectStoreError(.invalidArgument) {
        try await setting.database.write { transaction in
          try await transaction.setValue(1, forKey: "k", in: store)
          try await transaction.execute(sql)
        }
      }
      try await store.setValue(2, forKey: "k")
      #expect(try await store.value(forKey: "k") == 2)
    }
  }

  @Test func `a transaction that reads commits nothing`() async throws {
    try await Setting.run(connections: 1) { setting in
      let store = try await PostgresStore<Int>(in: setting.database, name: "numbers")
      for sql in ["COMMIT", "ROLLBACK"] {
        await expectStoreError(.invalidArgument) {
          try await setting.database.read { transaction in
            // The error is noticed even if the closure ignores it.
            do { try await transaction.execute(sql) } catch is StoreError {}
            do { try await transaction.execute("INSERT INTO numbers VALUES('a', '\\x01')") } catch is StoreError {}
          }
        }
      }
      for sql in ["SET TRANSACTION READ WRITE", "INSERT INTO numbers VALUES('a', '\\x01')"] {
        await #expect(throws: StoreError.self) {
          try await setting.database.read { _ = try await $0.execute(sql) }
        }
      }
      #expect(try await store.count(in: .all) == 0)
    }
  }

  /// The settings are changed without the word SET at the beginning.
  @Test(arguments: [
    "SELECT set_config('synchronous_commit', 'off', false), set_config('statement_timeout', '7', false)",
    "SELECT set_config('app.tenant', 'acme', false), pg_advisory_lock(42)",
    "DO $$ BEGIN SET search_path = pg_catalog; SET enable_seqscan = on; END $$", "SET ROLE pg_monitor",
    "LISTEN channel",
    "CREATE TEMPORARY TABLE numbers(key bytea PRIMARY KEY, value bytea)",
    "SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY",
    "DECLARE c CURSOR WITH HOLD FOR SELECT 1", "PREPARE larder AS SELECT 1", "SET timezone = 'Asia/Tokyo'",
  ])
  func `nothing of the users SQL reaches later calls`(sql: String) async throws {
    try await Setting.run(connections: 1) { setting in
      let store = try await PostgresStore<Int>(in: setting.database, name: "numbers")
      func state() async throws -> [[String: String]] {
        try await setting.database.write { transaction in
          try await transaction.execute(
            """
            SELECT current_setting('synchronous_commit') AS a, current_setting('search_path') AS b,
              current_setting('app.tenant', true) AS c, current_user AS d, current_setting('transaction_read_only') AS e,
              current_setting('statement_timeout') AS f, current_setting('timezone') AS g,
              (SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid()) AS h,
              (SELECT count(*) FROM pg_cursors WHERE is_holdable) AS i, (SELECT count(*) FROM pg_listening_channels()) AS j
            """)
        }
      }
      let before = try await state()
      for commits in [true, false] {
        do {
          try await setting.database.write { transaction in
            try await transaction.execute(sql)
            if !commits { throw CancellationError() }
          }
        } catch is CancellationError {}
        // An unset setting of an application is empty afterward.
        let after = try await state().map { $0.filter { !$0.value.isEmpty } }
        #expect(after == before.map { $0.filter { !$0.value.isEmpty } }, "\(sql)")
        try await store.setValue(1, forKey: "k")
        #expect(try await setting.psql("SELECT count(*) FROM numbers") == "1")
      }
      #expect(setting.database.statistics().connects == 1, "the connection is used again")
    }
  }

  @Test func `settings of a transaction apply to all its SQL`() async throws {
    try await Setting.run { setting in
      let store = try await PostgresStore<Int>(in: setting.database, name: "numbers")
      try await setting.database.write { transaction in
        #expect(try await transaction.execute("SHOW jit") == [["jit": "on"]])
        try await transaction.execute("SET LOCAL enable_seqscan = off")
        try await transaction.execute("SET jit = off")
        try await transaction.setValue(1, forKey: "k", in: store)
        #expect(try await transaction.execute("SHOW enable_seqscan") == [["enable_seqscan": "off"]])
        #expect(try await transaction.execute("SHOW jit") == [["jit": "off"]])
        #expect(try await transaction.execute("SHOW plan_cache_mode") == [["plan_cache_mode": "auto"]])
      }
    }
  }

  @Test func `an update that fails in a transaction leaves no row`() async throws {
    struct Refused: Error {}
    try await Setting.run { setting in
      let store = try await PostgresStore<Int>(in: setting.database)
      try await setting.database.write { transaction in
        do {
          try await transaction.update(["missing"], in: store) { _ in throw Refused() }
        } catch is Refused {}
      }
      #expect(try await setting.psql("SELECT count(*) FROM \"default\"") == "0")
    }
  }

  @Test func `sql that cannot run is refused`() async throws {
    try await Setting.run { setting in
      let database = setting.database
      await expectStoreError(.unsupported) {
        try await database.write { try await $0.execute("COPY (SELECT 1) TO STDOUT") }
      }
      await expectStoreError(.invalidArgument) {
        try await database.write { try await $0.execute("SELECT $1", ["a\0b"]) }
      }
      await expectStoreError(.invalidArgument) { try await database.write { try await $0.execute("SELEC") } }
      let many = (1...20_000).map { "$\($0)" }.joined(separator: ",")
      let rows = try await database.write {
        try await $0.execute("SELECT cardinality(ARRAY[\(many)]) AS n", Array(repeating: "1", count: 20_000))
      }
      #expect(rows == [["n": "20000"]])
    }
  }

  @Test func `settings of the user end with their connection`() async throws {
    try await Setting.run(connections: 1) { setting in
      try await setting.database.write { try await $0.execute("SET synchronous_commit = off") }
      let rows = try await setting.database.write { try await $0.execute("SHOW synchronous_commit") }
      #expect(rows == [["synchronous_commit": "on"]])
    }
  }

  @Test(arguments: [true, false]) func `the first write records a codec that adopts another`(inTransaction: Bool)
    async throws
  {
    try await Setting.run { setting in
      _ = try await PostgresStore<Int>(in: setting.database, name: "numbers", codec: .cbor())
      let codec = try CBORCodec<Int>().versioned(1, ValueMigration(from: 0, .cbor(Int.self)) { $0 })
      let store = try await PostgresStore<Int>(in: setting.database, name: "numbers", codec: codec)
      try await store.update(["missing"]) { _ in }
      #expect(try await setting.psql("SELECT codec FROM larder_stores") == "cbor", "nothing was written")
      if inTransaction {
        try await setting.database.write { try await $0.setValue(2, forKey: "k", in: store) }
      } else {
        try await store.setValue(2, forKey: "k")
      }
      #expect(try await setting.psql("SELECT codec FROM larder_stores") == codec.name)
    }
  }

  @Test(arguments: [PostgresIsolation.readCommitted, .serializable])
  func `a store of several programs refuses an older one`(isolation: PostgresIsolation) async throws {
    try await Setting.run(isolation: isolation) { setting in
      try await VersionDeployment().check { codec in
        AnyDataStore(try await PostgresStore(in: setting.database, name: "users", codec: codec))
      }
      #expect(try await setting.psql("SELECT codec FROM larder_stores WHERE name = 'users'") == "json+v2")
    }
  }

  /// A write that waits for the first one of a newer program is refused too, and so is one in a transaction of the user's.
  @Test func `an older program that waits for a newer one is refused`() async throws {
    try await Setting.run { setting in
      let versions = try VersionDeployment()
      func open(
        _ codec: VersionedCodec<JSONCodec<VersionDeployment.User>>
      ) async throws -> PostgresStore<VersionDeployment.User> {
        try await PostgresStore(in: setting.database, name: "users", codec: codec)
      }
      let old = try await open(versions.old)
      try await old.setValue(VersionDeployment.User("Ada"), forKey: "a")
      let second = try await open(versions.second)
      let isWaiting = Locked(false)
      let outcome = Task {
        while !isWaiting.withLock(\.self) { await Task.yield() }
        try await old.setValue(VersionDeployment.User("x"), forKey: "a")
      }
      try await setting.database.write { transaction in
        try await transaction.setValue(VersionDeployment.User("Ada", email: "a"), forKey: "a", in: second)
        isWaiting.withLock { $0 = true }
        try await setting.waitForBlocked(1)
      }
      await expectStoreError(.versionMismatch) { try await outcome.value }
      await expectStoreError(.versionMismatch) {
        try await setting.database.write { try await $0.setValue(VersionDeployment.User("x"), forKey: "a", in: old) }
      }
      await expectStoreError(.versionMismatch) {
        try await setting.database.write { try await $0.update(["a"], in: old) { $0[0]?.name = "x" } }
      }
      #expect(try await second.value(forKey: "a")?.email == "a")
    }
  }

  @Test func `objects that adopt a codec at the same moment dont deadlock`() async throws {
    try await Setting.run { setting in
      let database = setting.database
      _ = try await PostgresStore<Int>(in: database, name: "numbers", codec: .cbor())
      let old = try await PostgresQueue<Int>(in: database, name: "jobs", codec: .cbor())
      try await old.enqueue([QueueInput(1), QueueInput(2)])
      let receipts = try await old.receive(max: 2, lease: .seconds(600)).map(\.receipt)
      let codec = try CBORCodec<Int>().versioned(1, ValueMigration(from: 0, .cbor(Int.self)) { $0 })
      func store() async throws -> PostgresStore<Int> {
        try await PostgresStore(in: database, name: "numbers", codec: codec)
      }
      func queue() async throws -> PostgresQueue<Int> {
        try await PostgresQueue(in: database, name: "jobs", codec: codec)
      }
      let (stores, queues) = (try await [store(), store()], try await [queue(), queue()])
      try await withThrowingTaskGroup(of: Void.self) { group in
        // Each transaction locks an entry, and then the record of the codec; the other call needs both as well.
        try await database.write { transaction in
          try await transaction.update(["k"], in: stores[0]) { _ in }
          group.addTask { try await stores[1].setValue(2, forKey: "k") }
          try await setting.waitForBlocked(1)
          try await transaction.setValue(1, forKey: "l", in: stores[0])
        }
        try await database.write { transaction in
          try await transaction.acknowledge(receipts[0], in: queues[0])
          group.addTask { _ = try await queues[1].acknowledge([receipts[1]]) }
          try await setting.waitForBlocked(1)
          _ = try await transaction.extend([receipts[1]], lease: .seconds(900), in: queues[0])
        }
        try await group.waitForAll()
      }
      #expect(database.statistics().repeats == 0)
    }
  }

  @Test func `a transaction ends with its closure`() async throws {
    try await Setting.run { setting in
      let store = try await PostgresStore<Int>(in: setting.database)
      let transaction = try await setting.database.read { $0 }
      await expectStoreError(.closed) { try await transaction.count(of: store) }
    }
  }

  @Test func `a read sees one snapshot and cannot write`() async throws {
    try await Setting.run { setting in
      let store = try await PostgresStore<Int>(in: setting.database)
      try await store.setValue(1, forKey: "a")
      try await setting.database.read { transaction in
        #expect(try await transaction.count(of: store) == 1)
        try await store.setValue(2, forKey: "b")
        #expect(try await transaction.keys(of: store) == ["a"])
        #expect(try await transaction.entries(of: store).map(\.value) == [1])
      }
      await expectStoreError(.notPermitted) {
        try await setting.database.read { try await $0.setValue(3, forKey: "c", in: store) }
      }
      #expect(try await store.count(in: .all) == 2)
    }
  }

  @Test func `an update that changes nothing leaves no row`() async throws {
    try await Setting.run { setting in
      let store = try await PostgresStore<Int>(in: setting.database)
      try await setting.database.write { transaction in
        let seen = try await transaction.update(["a", "b"], in: store) { slots in Array(slots) }
        #expect(seen == [nil, nil])
        try await transaction.update(["c", "d"], in: store) { $0[0] = 1 }
      }
      #expect(try await store.update(["e"]) { $0[0] } == nil)
      #expect(try await setting.psql("SELECT count(*) FROM \"default\"") == "1")
    }
  }

  @Test func `prepared statements that are gone are prepared again`() async throws {
    try await Setting.run(connections: 1) { setting in
      let store = try await PostgresStore<Int>(in: setting.database)
      try await store.setValue(1, forKey: "k")
      try await setting.database.write { try await $0.execute("DISCARD PLANS") }
      try await store.setValue(2, forKey: "k")
      try await setting.database.write { try await $0.execute("DEALLOCATE ALL") }
      try await store.setValue(3, forKey: "k")
      try await store.update(["k"]) { $0[0] = 4 }
      #expect(try await store.value(forKey: "k") == 4)
    }
  }

  @Test func `a store of another database is refused`() async throws {
    try await Setting.run { setting in
      try await Setting.run { other in
        let store = try await PostgresStore<Int>(in: other.database)
        await expectStoreError(.invalidArgument) {
          try await setting.database.write { try await $0.setValue(1, forKey: "k", in: store) }
        }
      }
    }
  }

  @Test func `many transactions share few connections`() async throws {
    try await Setting.run(connections: 2) { setting in
      let store = try await PostgresStore<Int>(in: setting.database)
      try await withThrowingTaskGroup(of: Void.self) { group in
        for _ in 0..<40 {
          group.addTask { try await store.update(["k"]) { $0[0] = ($0[0] ?? 0) + 1 } }
          group.addTask { _ = try await store.value(forKey: "k") }
        }
        try await group.waitForAll()
      }
      #expect(try await store.value(forKey: "k") == 40)
    }
  }
}
#endif
