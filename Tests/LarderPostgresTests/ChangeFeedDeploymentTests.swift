#if Postgres
import Larder
import LarderCBOR
import LarderStoreQueue
import LarderTesting
import TestSupport
import Testing

@testable import LarderPostgres

/// Reports of changes on standbys, after restores and failovers, and from tables of other programs.
@Suite(.limitedParallelism, .timeLimit(.minutes(60))) struct ChangeFeedDeploymentTests {
  private static let everything = StoreChange.range(.all)

  // MARK: Restores

  /// As `pg_restore --clean` does, with the number that identified the feed before.
  @Test(arguments: [FeedTable.names.changes, FeedTable.names.state])
  func `a restored table is reported as everything`(_ table: String) async throws {
    try await FeedHost.two { setting, first, second in
      try await first.store.setValue(1, forKey: "a")
      try await second.changes(until: "a")
      try await setting.psql(
        """
        BEGIN;
        CREATE UNLOGGED TABLE copy (LIKE \(table) INCLUDING ALL);
        INSERT INTO copy SELECT * FROM \(table);
        DROP TABLE \(table);
        ALTER TABLE copy RENAME TO \(table);
        COMMIT;
        """)
      #expect(try await second.changes(until: "any") == [Self.everything])
    }
  }

  /// The copy has the number and the files of the original, and lacks its latest changes.
  @Test func `a database in the place of another is reported as everything`() async throws {
    try await PostgresServer.withOwn { server in
      try await server.run(psql: "CREATE DATABASE app")
      let connection = "\(server.connectionString) dbname=app"
      try await server.run(psql: "CREATE SCHEMA larder_app", connectionString: connection)
      let database = try await PostgresDatabase(connection, schema: "larder_app", connections: 4)
      let store = try await PostgresStore<Int>(in: database, name: "users", reportsChanges: true)
      let events = StoreEvents()
      let observation = events.observe(store)
      try await waitUntil { observation.lag < .seconds(1) }
      func endSessions() async throws {
        try await server.run(psql: "SELECT pg_terminate_backend(pid, 9000) FROM pg_stat_activity WHERE datname = 'app'")
      }
      try await server.run(psql: "ALTER DATABASE app ALLOW_CONNECTIONS false")
      try await endSessions()
      try await server.run(psql: "CREATE DATABASE copy TEMPLATE app ALLOW_CONNECTIONS true")
      try await server.run(psql: "ALTER DATABASE app RENAME TO former; ALTER DATABASE copy RENAME TO app")
      try await waitUntil { events.take().contains(.changed([Self.everything])) }
      await database.close()
    }
  }

  // MARK: Other servers

  /// It cannot read the feed, so it does not claim to report what others commit.
  @Test func `a store of a standby is read and reports nothing`() async throws {
    try await PostgresServer.withOwn { primary in
      let standby = try await primary.addStandby(isSynchronous: true)
      let schema = try await primary.newSchema()
      let database = try await PostgresDatabase(primary.connectionString, schema: schema)
      try await primary.run(psql: "ALTER ROLE larder SET synchronous_commit = remote_apply")
      let store = try await PostgresStore<Int>(in: database, name: "users", reportsChanges: true)
      try await store.setValue(1, forKey: "a")
      await database.close()
      let copy = try await PostgresDatabase(standby.connectionString, schema: schema, access: .readOnly)
      let users = try await PostgresStore<Int>(in: copy, name: "users", createsIfMissing: false)
      #expect(users.information.reportedCommits == .ofObject && !users.information.reportsAllCommits)
      #expect(users.observe(.all) { _ in }.lag > .seconds(3600))
      try await waitUntil { try await users.value(forKey: "a") == 1 }
      await copy.close()
      try await standby.close()
    }
  }

  /// A former primary that keeps its connections tells nothing of the commits of the new one.
  @Test func `the former primary is not listened to after a failover`() async throws {
    try await PostgresServer.withOwn { primary in
      let standby = try await primary.addStandby()
      let schema = try await primary.newSchema()
      let hosts = "host=\(try primary.folder),\(try standby.folder) port=5432,5432 user=larder dbname=postgres"
      let database = try await PostgresDatabase(
        "\(hosts) target_session_attrs=read-write", schema: schema, connections: 1)
      let store = try await PostgresStore<Int>(in: database, name: "users", reportsChanges: true)
      try await store.setValue(1, forKey: "a")
      let events = StoreEvents()
      let observation = events.observe(store)
      try await waitUntil { observation.lag < .seconds(1) }
      try await standby.promote()
      try await primary.set(["default_transaction_read_only": "on"])
      // Those of the pool, which run no look.
      let ended = try await primary.run(
        psql: """
          SELECT count(pg_terminate_backend(pid, 9000)) FROM pg_stat_activity
          WHERE backend_type = 'client backend' AND pid <> pg_backend_pid() AND query NOT LIKE '%pg_current_snapshot%'
          """)
      #expect(ended != "0")
      try await store.setValue(2, forKey: "b")
      // The reader has found the new server, which has lost the feed.
      try await waitUntil { events.take().contains(.changed([Self.everything])) }
      await database.close()
      try await standby.close()
    }
  }

  // MARK: Records

  @Test func `an open store notices a new format`() async throws {
    try await Setting.run { setting in
      let store = try await PostgresStore<Int>(in: setting.database, name: "users")
      try await store.setValue(1, forKey: "a")
      try await setting.psql("UPDATE larder_stores SET format = 2")
      await expectStoreError(.versionMismatch) { try await store.setValue(2, forKey: "a") }
      await expectStoreError(.versionMismatch) { try await store.update("a") { $0 = 2 } }
      #expect(try await store.value(forKey: "a") == 1)
    }
  }

  /// Without triggers, what the program writes would not be reported.
  @Test func `a table of another program needs triggers`() async throws {
    try await FeedHost.two { setting, first, second in
      try await setting.psql("CREATE TABLE theirs(key bytea PRIMARY KEY, value bytea)")
      func open() async throws -> PostgresStore<[UInt8]> {
        try await PostgresStore<[UInt8]>(in: first.database, name: "theirs", codec: .raw, reportsChanges: true)
      }
      await expectStoreError(.unsupported) { _ = try await open() }
      #expect(try await setting.psql("SELECT count(*) FROM larder_stores WHERE name = 'theirs'") == "0")
      let triggers = try ChangeFeedFailureTests.triggers(schema: setting.schema)
      try await setting.psql(triggers.replacing("\(setting.schema).users", with: "\(setting.schema).theirs"))
      #expect(try await open().information.reportsAllCommits)
    }
  }

  // MARK: A feed that cannot be read

  /// Consumers look by themselves, and the application hears of it.
  @Test func `a queue is polled while the feed cannot be read`() async throws {
    try await Setting.run { setting in
      let events = Locked<[PostgresConnectionEvent]>([])
      let database = try await PostgresDatabase(
        setting.server.connectionString, schema: setting.schema, connections: 4
      ) { event in events.withLock { $0.append(event) } }
      func open(_ database: PostgresDatabase) async throws -> StoreQueue<PostgresStore<[UInt8]>, Int> {
        let store = try await PostgresStore<[UInt8]>(in: database, name: "jobs", codec: .raw, reportsChanges: true)
        return try await StoreQueue(
          store, prefix: "q/", codec: .cbor(),
          configuration: StoreQueueConfiguration(pollInterval: .milliseconds(20)))
      }
      let (consumer, producer) = (try await open(database), try await open(setting.database))
      let observation = consumer.observe(.all) { _ in }
      try await waitUntil { observation.lag < .seconds(1) }
      try await setting.psql("DROP TABLE larder_feed")
      try await waitUntil { observation.lag > .seconds(2) }
      let received = Task { try await consumer.nextDelivery(lease: .seconds(60)).get() }
      try await producer.enqueue(7)
      #expect(try await received.valueInTime().value == 7)
      try await waitUntil {
        events.withLock { $0.contains { if case .changesUnread = $0 { true } else { false } } }
      }
      await database.close()
    }
  }

  // MARK: Retention

  @Test func `old changes are removed in portions`() async throws {
    try await PostgresServer.withOwn { server in
      try await FeedHost.two(on: server) { setting, first, second in
        try await setting.psql(
          "INSERT INTO larder_changes(store, keys) SELECT 'other', '{}' FROM generate_series(1, 25000)")
        for _ in 0..<2 {
          try await setting.psql("UPDATE larder_feed SET noted = noted - interval '11 minutes'")
          try await waitUntil {
            try await setting.psql("SELECT noted > clock_timestamp() - interval '1 minute' FROM larder_feed") == "t"
          }
        }
        try await waitUntil { try await setting.psql("SELECT count(*) FROM larder_changes") == "0" }
      }
    }
  }
}
#endif
