#if Postgres
import Foundation
import Larder
import TestSupport
import Testing

@testable import LarderPostgres

@Suite struct FailureTests {
  private func expectError(
    _ code: StoreError.Code, isRetryable: Bool = false, sourceLocation: SourceLocation = #_sourceLocation,
    _ body: () async throws -> Void
  ) async {
    let error = await #expect(throws: StoreError.self, sourceLocation: sourceLocation) { try await body() }
    #expect(error?.code == code, sourceLocation: sourceLocation)
    #expect(error?.outcome == .nothingChanged, sourceLocation: sourceLocation)
    #expect(error?.isRetryable == isRetryable, sourceLocation: sourceLocation)
  }

  @Test func `connections that cannot be made`() async throws {
    let server = try await PostgresServer.shared
    await expectError(.ioFailed, isRetryable: true) { _ = try await PostgresDatabase("host=/nowhere dbname=postgres") }
    await expectError(.notFound) { _ = try await PostgresDatabase(server.connectionString + " dbname=missing") }
    await expectError(.notPermitted) { _ = try await PostgresDatabase(server.connectionString + " user=stranger") }
    await expectError(.notFound) { _ = try await PostgresDatabase(server.connectionString, schema: "missing") }
    await expectError(.invalidArgument) { _ = try await PostgresDatabase(server.connectionString, connections: 0) }
    await expectError(.invalidArgument) { _ = try await PostgresDatabase(server.connectionString, timeout: .zero) }
  }

  @Test func `no error shows a password`() async throws {
    for connection in [
      "host=/nowhere password=secret", "postgresql://user:secret@localhost:1/db", "postgresql://user:secret@[",
      "password='secret", "password=secret port=none",
    ] {
      let error = await #expect(throws: StoreError.self) { _ = try await PostgresDatabase(connection) }
      #expect(error?.detailedDescription.contains("secret") == false)
    }
  }

  @Test func `names that cannot be tables`() async throws {
    try await Setting.run { setting in
      for name in ["", String(repeating: "a", count: 64), "larder_stores", "nul\0"] {
        await expectError(.invalidArgument) { _ = try await PostgresStore<Int>(in: setting.database, name: name) }
      }
      for name in [String(repeating: "ä", count: 31), "Two Words", "quote\"s", "select", "a.b", "é", "e\u{301}"] {
        let store = try await PostgresStore<Int>(in: setting.database, name: name)
        try await store.setValue(1, forKey: "k")
        #expect(try await store.value(forKey: "k") == 1)
        try await store.close()
      }
      #expect(try await setting.database.storeNames().count == 7)
    }
  }

  @Test func `tables of others are refused`() async throws {
    try await Setting.run { setting in
      try await setting.psql(
        """
        CREATE TABLE text_key(key text PRIMARY KEY, value bytea);
        CREATE TABLE no_primary(key bytea, value bytea);
        CREATE TABLE more(key bytea PRIMARY KEY, value bytea, other int);
        CREATE TABLE jsonb(key bytea PRIMARY KEY, value jsonb);
        CREATE VIEW seen AS SELECT 1 AS key, 2 AS value;
        CREATE TABLE json_values(key bytea PRIMARY KEY, value json);
        """)
      for name in ["text_key", "no_primary", "more", "jsonb", "seen"] {
        await expectError(.unsupported) { _ = try await PostgresStore<Int>(in: setting.database, name: name) }
      }
      await expectError(.unsupported) { _ = try await PostgresStore<Int>(in: setting.database, name: "json_values") }
      let adopted = try await PostgresStore<Int>(in: setting.database, name: "json_values", codec: .json())
      try await adopted.setValue(1, forKey: "k")
      #expect(try await setting.psql("SELECT value FROM json_values") == "1")
    }
  }

  @Test func `a table of another program has the codec that is chosen`() async throws {
    try await Setting.run { setting in
      try await setting.psql(
        """
        CREATE TABLE texts(key bytea PRIMARY KEY, value json);
        CREATE TABLE blobs(key bytea PRIMARY KEY, value bytea);
        """)
      func open(_ name: String, newCodecName: String? = nil) async throws -> UntypedTable {
        try await UntypedTable(
          in: setting.database, isOwned: false, name: name, createsIfMissing: true, newCodecName: newCodecName,
          reportsChanges: false)
      }
      #expect(try await open("texts").codecName == "json")
      #expect(try await open("new").codecName == "cbor")
      // Anything else would be recorded among values of an unknown kind.
      await expectError(.invalidArgument) { _ = try await open("blobs") }
      let store = try await open("blobs", newCodecName: "raw").typed(codec: .raw)
      try await store.setValue([0xFF], forKey: "k")
      #expect(try await setting.psql("SELECT name, codec FROM larder_stores") == "blobs|raw")
      #expect(try await open("blobs").codecName == "raw")
    }
  }

  @Test func `another codec is refused`() async throws {
    try await Setting.run { setting in
      _ = try await PostgresStore<Int>(in: setting.database, name: "numbers")
      await expectError(.versionMismatch) {
        _ = try await PostgresStore<Int>(in: setting.database, name: "numbers", codec: .json())
      }
      await expectError(.notFound) {
        _ = try await PostgresStore<Int>(in: setting.database, name: "none", createsIfMissing: false)
      }
      // An administrator's repair that left a record without its codec.
      try await setting.psql(
        "ALTER TABLE larder_stores ALTER COLUMN codec DROP NOT NULL; UPDATE larder_stores SET codec = NULL")
      await expectError(.corrupted) { _ = try await PostgresStore<Int>(in: setting.database, name: "numbers") }
      try await setting.psql("UPDATE larder_stores SET codec = 'cbor', format = 3")
      await expectError(.versionMismatch) { _ = try await PostgresStore<Int>(in: setting.database, name: "numbers") }
    }
  }

  @Test func `a dropped table is a conflict`() async throws {
    try await Setting.run { setting in
      let store = try await PostgresStore<Int>(in: setting.database, name: "numbers")
      try await store.setValue(1, forKey: "k")
      try await setting.psql("DROP TABLE numbers")
      await expectError(.conflict) { _ = try await store.value(forKey: "k") }
      await expectError(.conflict) { try await store.setValue(1, forKey: "k") }
      await expectError(.conflict) { try await store.update(["k"]) { $0[0] = 2 } }
      await expectError(.conflict) { try await store.removeAll() }
      // With its table again, it works as before.
      try await setting.psql("CREATE TABLE numbers(key bytea PRIMARY KEY, value bytea)")
      try await store.setValue(2, forKey: "k")
      #expect(try await store.value(forKey: "k") == 2)
    }
  }

  @Test func `a refusal of the users own rules is not permitted`() async throws {
    try await Setting.run { setting in
      let store = try await PostgresStore<Int>(in: setting.database, name: "numbers", codec: .json())
      try await setting.psql("ALTER TABLE numbers ADD CHECK ((value #>> '{}')::int < 10)")
      await expectError(.notPermitted) { try await store.apply([.set("a", 1), .set("b", 10)]) }
      #expect(try await store.count(in: .all) == 0)
      try await setting.psql(
        """
        CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RAISE ''no''; END';
        CREATE CONSTRAINT TRIGGER late AFTER INSERT ON numbers DEFERRABLE INITIALLY DEFERRED
          FOR EACH ROW EXECUTE FUNCTION refuse();
        """)
      // This one is refused by the commit itself.
      await expectError(.notPermitted) { try await store.setValue(1, forKey: "a") }
      await expectError(.notPermitted) { try await store.update(["a"]) { $0[0] = 1 } }
      await expectError(.notPermitted) {
        try await setting.database.write { try await $0.setValue(1, forKey: "a", in: store) }
      }
      #expect(try await store.count(in: .all) == 0)
    }
  }

  @Test func `a lock is waited for with a limit`() async throws {
    try await Setting.run(timeout: .seconds(4)) { setting in
      let store = try await PostgresStore<Int>(in: setting.database, name: "numbers")
      let (isLocked, mayEnd) = (Gate(), Gate())
      let other = try await PostgresDatabase(setting.server.connectionString, schema: setting.schema)
      let same = try await PostgresStore<Int>(in: other, name: "numbers")
      async let lock: Void = other.write { transaction in
        try await transaction.setValue(1, forKey: "k", in: same)
        isLocked.open()
        try await mayEnd.wait()
      }
      try await isLocked.wait()
      await expectError(.timedOut, isRetryable: true) { try await store.setValue(2, forKey: "k") }
      #expect(try await store.value(forKey: "k") == nil)
      try await store.setValue(3, forKey: "other")
      mayEnd.open()
      try await lock
      await other.close()
      #expect(try await store.value(forKey: "k") == 1)
    }
  }

  @Test func `a closure that takes longer than the limit is not repeated again and again`() async throws {
    try await Setting.run(timeout: .seconds(4)) { setting in
      let store = try await PostgresStore<Int>(in: setting.database)
      let runs = Locked(0)
      await expectStoreError(.ioFailed) {
        try await setting.database.write { transaction in
          runs.withLock { $0 += 1 }
          try await transaction.setValue(1, forKey: "k", in: store)
          // The server ends a transaction that is idle for as long as the limit.
          let idle =
            "SELECT count(*) FROM pg_stat_activity WHERE application_name = '\(setting.schema)' AND state LIKE 'idle in %'"
          try await waitUntil { try await setting.psql(idle) == "0" }
          try await transaction.setValue(2, forKey: "k", in: store)
        }
      }
      #expect(runs.withLock { $0 } <= 2)
    }
  }

  @Test func `a role may have few rights`() async throws {
    try await Setting.run(on: PostgresServer.local) { setting in
      let store = try await PostgresStore<Int>(in: setting.database, name: "numbers")
      try await store.setValue(1, forKey: "k")
      _ = try await PostgresQueue<Int>(in: setting.database, name: "queue")
      try await setting.psql(
        """
        CREATE ROLE reader_\(setting.schema) LOGIN; CREATE ROLE stranger_\(setting.schema) LOGIN;
        GRANT USAGE ON SCHEMA \(setting.schema) TO reader_\(setting.schema), stranger_\(setting.schema);
        GRANT SELECT ON ALL TABLES IN SCHEMA \(setting.schema) TO reader_\(setting.schema);
        """)
      for access in [StoreAccess.readOnly, .readWrite] {
        func open(_ role: String) async throws -> PostgresDatabase {
          let connection = "\(setting.server.connectionString) user=\(role)_\(setting.schema)"
          return try await PostgresDatabase(connection, schema: setting.schema, access: access)
        }
        let (reader, stranger) = (try await open("reader"), try await open("stranger"))
        let reading = try await PostgresStore<Int>(in: reader, name: "numbers")
        #expect(try await reading.value(forKey: "k") == 1)
        await expectError(.notPermitted) { try await reading.setValue(2, forKey: "k") }
        await expectError(.notPermitted) { _ = try await PostgresStore<Int>(in: stranger, name: "numbers") }
        await expectError(.notPermitted) { _ = try await PostgresQueue<Int>(in: stranger, name: "queue") }
        if access == .readOnly {
          #expect(try await PostgresQueue<Int>(in: reader, name: "queue").count() == 0)
        } else {
          await expectError(.notPermitted) { _ = try await PostgresQueue<Int>(in: reader, name: "queue") }
        }
        await reader.close()
        await stranger.close()
      }
    }
  }

  @Test func `only a stronger durability of the role is kept`() async throws {
    try await Setting.run(on: PostgresServer.local) { setting in
      let role = "writer_\(setting.schema)"
      try await setting.psql("CREATE ROLE \(role) LOGIN; GRANT ALL ON SCHEMA \(setting.schema) TO \(role)")
      for (own, expected) in [("off", "on"), ("local", "on"), ("remote_write", "on"), ("remote_apply", "remote_apply")]
      {
        try await setting.psql("ALTER ROLE \(role) SET synchronous_commit = \(own)")
        for durability in [Durability.File.synced, .buffered] {
          let database = try await PostgresDatabase(
            "\(setting.server.connectionString) user=\(role)", schema: setting.schema, durability: durability)
          let rows = try await database.write { try await $0.execute("SHOW synchronous_commit") }
          #expect(rows == [["synchronous_commit": durability == .synced ? expected : "off"]], "\(own)")
          await database.close()
        }
      }
    }
  }

  @Test func `durability is that of the server`() async throws {
    let server = try await PostgresServer(settings: ["fsync": "off"])
    let unsafe = try await PostgresDatabase(server.connectionString)
    #expect(try await PostgresStore<Int>(in: unsafe).information.durability == .buffered)
    await unsafe.close()
    try await server.close()
    try await Setting.run { setting in
      #expect(try await PostgresStore<Int>(in: setting.database).information.durability == .synced)
      let buffered = try await PostgresDatabase(
        setting.server.connectionString, schema: setting.schema, durability: .buffered)
      let store = try await PostgresStore<Int>(in: buffered)
      #expect(store.information.durability == .buffered)
      try await store.synchronize()
      await buffered.close()
    }
  }

  @Test func `a host that is frozen leaves time for the next`() async throws {
    let (frozen, good) = (try await PostgresServer(), try await PostgresServer.local)
    let schema = try await good.newSchema()
    let process = try await frozen.run(psql: "SELECT pg_read_file('postmaster.pid')").split(separator: "\n")[0]
    let postmaster = try #require(Int32(process))
    kill(postmaster, SIGSTOP)
    let hosts = try "host=\(frozen.folder),\(good.folder) port=5432,5432 user=larder dbname=postgres"
    let database = try await PostgresDatabase(hosts, schema: schema, timeout: .seconds(10))
    await database.close()
    kill(postmaster, SIGCONT)
    try await frozen.close()
  }

  @Test func `a server that does not answer is given up`() async throws {
    try await Setting.run(connections: 1, timeout: .seconds(4)) { setting in
      let store = try await PostgresStore<Int>(in: setting.database, name: "numbers")
      try await store.setValue(1, forKey: "k")
      func backends() async throws -> [Int32] {
        let pids = try await setting.psql(
          "SELECT pid FROM pg_stat_activity WHERE application_name = '\(setting.schema)'")
        return pids.split(separator: "\n").compactMap { Int32($0) }
      }
      /// Runs a closure while all processes of the server that serve the database are stopped, and ends them.
      ///
      /// A process that is only resumed first performs what it had received, at any time.
      func whileFrozen(_ body: () async throws -> Void) async throws {
        let frozen = try await backends()
        for backend in frozen { kill(backend, SIGSTOP) }
        do {
          defer {
            for backend in frozen {
              kill(backend, SIGTERM)
              kill(backend, SIGCONT)
            }
          }
          try await body()
        }
        while try await !Set(frozen).isDisjoint(with: backends()) {}
      }
      try await whileFrozen {
        await expectError(.timedOut, isRetryable: true) { _ = try await store.value(forKey: "k") }
        let value = try await store.value(forKey: "k")
        #expect(value == 1, "on a new connection")
      }
      try await whileFrozen {
        let error = await expectStoreError(.timedOut) { try await store.setValue(2, forKey: "k") }
        #expect(error?.outcome == .unknown, "the commit may be under way")
      }
      // The next calls use new connections.
      #expect(try await store.value(forKey: "k") == 1)
      try await store.setValue(3, forKey: "k")
      #expect(try await store.value(forKey: "k") == 3)
    }
  }

  @Test func `a database that only reads changes nothing`() async throws {
    try await Setting.run { setting in
      let store = try await PostgresStore<Int>(in: setting.database, name: "numbers")
      try await store.setValue(1, forKey: "k")
      let reading = try await PostgresDatabase(
        setting.server.connectionString, schema: setting.schema, access: .readOnly)
      let same = try await PostgresStore<Int>(in: reading, name: "numbers")
      #expect(try await same.value(forKey: "k") == 1)
      await expectError(.notPermitted) { try await same.setValue(2, forKey: "k") }
      await expectError(.notFound) { _ = try await PostgresStore<Int>(in: reading, name: "new") }
      await reading.close()
    }
  }
}
#endif
