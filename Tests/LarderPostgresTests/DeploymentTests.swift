#if Postgres
import Foundation
import Larder
@testable import LarderPostgres
import TestSupport
import Testing

/// The places between a program and its data: poolers, roles with few rights, restored databases.
@Suite(.timeLimit(.minutes(60))) struct DeploymentTests {
  /// Runs a closure with the connection string of a pooler in front of a server.
  static func withPooler(
    mode: String, size: Int, _ body: (_ connection: String, _ server: PostgresServer) async throws -> Void
  ) async throws {
    try await PostgresServer.withOwn { server in
      let folder = try server.folder
      try server.write(
        """
        [databases]
        postgres = host=\(folder) port=5432 user=larder dbname=postgres
        [pgbouncer]
        unix_socket_dir = \(folder)
        listen_port = 6432
        pidfile = \(folder)/pooler.pid
        logfile = \(folder)/pooler.log
        auth_type = any
        pool_mode = \(mode)
        default_pool_size = \(size)
        """, to: "pooler.ini")
      let user = getuid() == 0 ? ["-u", "postgres"] : []
      let start = try CommandRun(["pgbouncer", "-d", "-q"] + user + ["\(folder)/pooler.ini"])
      try #require(start.status == 0, "\(start.errors)")
      defer {
        if let text = try? String(contentsOfFile: "\(folder)/pooler.pid", encoding: .utf8),
          let process = Int32(text.trimmingCharacters(in: .whitespacesAndNewlines))
        {
          kill(process, SIGKILL)
        }
      }
      try await body("host=\(folder) port=6432 user=larder dbname=postgres", server)
    }
  }

  static var hasPooler: Bool { (try? CommandRun(["pgbouncer", "--version"]).status) == 0 }

  @Test(.enabled(if: hasPooler, "pgbouncer is not installed")) func `a pooler of sessions is accepted`() async throws {
    try await DeploymentTests.withPooler(mode: "session", size: 20) { connection, server in
      let database = try await PostgresDatabase(connection, schema: server.newSchema(), connections: 3)
      let store = try await PostgresStore<Int>(in: database)
      try await withThrowingTaskGroup(of: Void.self) { group in
        for number in 0..<100 {
          group.addTask {
            try await store.update([StoreKey(integer: number % 7)]) { $0[0] = ($0[0] ?? 0) + 1 }
          }
        }
        try await group.waitForAll()
      }
      let counts = try await store.entries(in: .all, limit: 9, order: .ascending).map(\.value)
      #expect(counts.reduce(0, +) == 100)
      try await database.write { transaction in
        try await transaction.execute("RESET ALL")
        try await transaction.setValue(1, forKey: "after", in: store)
      }
      #expect(try await store.value(forKey: "after") == 1)
      await database.close()
    }
  }

  /// With one connection of the server, the sessions of both programs have the same process, and exchange settings.
  @Test(.enabled(if: hasPooler, "pgbouncer is not installed"), arguments: [1, 2])
  func `a pooler of transactions is refused before anything happens`(size: Int) async throws {
    try await DeploymentTests.withPooler(mode: "transaction", size: size) { connection, server in
      let schema = try await server.newSchema()
      let direct = try await PostgresDatabase(server.connectionString, schema: schema)
      let precious = try await PostgresStore<Int>(in: direct, name: "precious")
      let orders = try await PostgresStore<Int>(in: direct, name: "orders")
      for store in [precious, orders] {
        try await store.apply(ChangeBatch((0..<50).map { .set(StoreKey(integer: $0), $0) }))
      }
      /// Runs a closure again and again, and returns how often it was refused.
      @Sendable func work(_ name: String, _ body: @Sendable (PostgresStore<Int>, Int) async throws -> Void) async throws
        -> Int
      {
        var refused = 0
        let database: PostgresDatabase
        let store: PostgresStore<Int>
        do {
          database = try await PostgresDatabase(connection, schema: schema, connections: 2)
          store = try await PostgresStore<Int>(in: database, name: name)
        } catch StoreError.Code.unsupported {
          return 1
        }
        for number in 0..<300 {
          do {
            try await body(store, number)
          } catch StoreError.Code.unsupported {
            refused += 1
          }
        }
        await database.close()
        return refused
      }
      async let writer = work("orders") { store, number in
        let key = StoreKey(integer: 100 + number % 10)
        try await store.setValue(1, forKey: key)
        try await store.removeValue(forKey: key)
      }
      async let reader = work("precious") { store, number in
        let key = number % 50
        #expect(try await store.value(forKey: StoreKey(integer: key)) == key)
        let values = try await store.values(forKeys: [StoreKey(integer: key), "none"])
        #expect(values == [key, nil])
      }
      let refused = try await (writer, reader)
      #expect(refused.0 + refused.1 > 0)
      #expect(try await precious.count(in: .all) == 50)
      #expect(try await orders.values(forKeys: (0..<50).map { StoreKey(integer: $0) }) == Array(0..<50))
      await direct.close()
    }
  }

  @Test func `statements of two connections have different names`() async throws {
    try await Setting.run(connections: 1) { setting in
      let other = try await PostgresDatabase(setting.server.connectionString, schema: setting.schema, connections: 1)
      var names: [[String]] = []
      for database in [setting.database, other] {
        let store = try await PostgresStore<Int>(in: database)
        try await store.setValue(1, forKey: "a")
        names.append(
          try await database.write { transaction in
            try await transaction.execute("SELECT name FROM pg_prepared_statements ORDER BY 1").compactMap {
              $0["name"]
            }
          })
      }
      #expect(names.allSatisfy { !$0.isEmpty } && Set(names[0]).isDisjoint(with: names[1]))
      await other.close()
    }
  }

  @Test func `a role without the right to create opens tables of others`() async throws {
    try await PostgresServer.withOwn { server in
      let schema = try await server.newSchema()
      let owner = try await PostgresDatabase(server.connectionString, schema: schema)
      _ = try await PostgresStore<Int>(in: owner, name: "numbers", codec: .json())
      _ = try await PostgresQueue<Int>(in: owner, name: "jobs", codec: .json())
      await owner.close()
      try await server.run(
        psql: """
          CREATE ROLE app LOGIN;
          GRANT USAGE ON SCHEMA \(schema) TO app;
          GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA \(schema) TO app;
          GRANT USAGE ON ALL SEQUENCES IN SCHEMA \(schema) TO app;
          CREATE TABLE \(schema).others(key bytea PRIMARY KEY, value json);
          GRANT SELECT, INSERT, UPDATE, DELETE ON \(schema).others TO app;
          """)
      let database = try await PostgresDatabase("\(server.connectionString) user=app", schema: schema)
      for name in ["numbers", "others"] {
        let store = try await PostgresStore<Int>(in: database, name: name, codec: .json())
        try await store.setValue(1, forKey: "a")
        #expect(try await store.value(forKey: "a") == 1)
      }
      let queue = try await PostgresQueue<Int>(in: database, name: "jobs", codec: .json())
      try await queue.enqueue(1)
      #expect(try await queue.receive(lease: .seconds(60))?.value == 1)
      await database.close()
    }
  }

  @Test(arguments: [PostgresIsolation.readCommitted, .serializable])
  func `a sequence behind its data is advanced`(isolation: PostgresIsolation) async throws {
    try await Setting.run(isolation: isolation) { setting in
      let queue = try await PostgresQueue<Int>(in: setting.database, name: "jobs")
      try await queue.enqueue((1...5).map { QueueInput($0) })
      // As in a logical replica, which has the rows and not the state of the sequence.
      try await setting.psql("SELECT setval('jobs_seq_seq', 1, false)")
      let replica = try await PostgresQueue<Int>(in: setting.database, name: "jobs")
      try await replica.enqueue((6...8).map { QueueInput($0) })
      #expect(try await replica.receive(max: 9, lease: .seconds(60)).map(\.value) == Array(1...8))
    }
  }

  @Test func `a restored dump continues`() async throws {
    try await Setting.run(on: PostgresServer.local) { setting in
      let store = try await PostgresStore<Int>(in: setting.database, name: "numbers")
      let queue = try await PostgresQueue<Int>(in: setting.database, name: "jobs")
      try await store.setValue(7, forKey: "k")
      try await queue.enqueue([QueueInput(1), QueueInput(2, after: .seconds(3600)), QueueInput(3)])
      let leased = try #require(try await queue.receive(lease: .seconds(600)))
      let dump = try CommandRun(["pg_dump", "-n", setting.schema, "-d", setting.server.connectionString])
      try #require(dump.status == 0, "\(dump.errors)")
      let name = "copy_\(setting.schema)"
      let connection = "\(setting.server.connectionString) dbname=\(name)"
      try await setting.psql("CREATE DATABASE \(name)")
      try await setting.server.run(psql: dump.output, connectionString: connection)
      let database = try await PostgresDatabase(connection, schema: setting.schema)
      let copy = try await PostgresQueue<Int>(in: database, name: "jobs")
      #expect(try await PostgresStore<Int>(in: database, name: "numbers").value(forKey: "k") == 7)
      #expect(try await copy.counts() == QueueCounts(waiting: 1, delayed: 1, leased: 1))
      #expect(try await copy.receive(max: 9, lease: .seconds(600)).map(\.value) == [3], "the lease continues")
      #expect(try await copy.enqueue([QueueInput(4)]).map(\.sequence) == [4])
      try await copy.acknowledge(leased.receipt)
      await database.close()
      try await setting.psql("DROP DATABASE \(name) WITH (FORCE)")
    }
  }

  @Test func `a timeline is that of the running server`() async throws {
    try await PostgresServer.withOwn { primary in
      let standby = try await primary.addStandby(isSynchronous: true)
      let before = try await standby.run(psql: Session.identityQuery.sql)
      // The checkpoint that writes the timeline to the control file takes minutes for so many pages.
      try await primary.run(
        psql: """
          SET synchronous_commit = remote_apply;
          CREATE TABLE large AS SELECT repeat('x', 1000) FROM generate_series(1, 10000);
          """)
      try await primary.stop(.immediate)
      try await standby.promote()
      let after = try await standby.run(psql: Session.identityQuery.sql)
      #expect(after.split(separator: "/").contains("00000002") && before != after)
      try await standby.close()
    }
  }

  @Test func `a statement that no server accepts is refused`() {
    let small = Statement("SELECT $1", .bytes([1, 2, 3]))
    #expect(Request.refusal(of: [small, small], limit: 3) == nil)
    let error = Request.refusal(of: [small, Statement("SELECT $1, $2", .bytes([1, 2]), .bytes([3, 4]))], limit: 3)
    #expect(error?.storeErrorCode == .valueTooLarge && error?.isTransient == false)
  }

  @Test func `large updates are sent in parts`() {
    let table = StoreTable(name: "t", schema: "s", valueType: .bytes)
    let value = [UInt8](repeating: 0, count: 9 << 20)
    let keys: [StoreKey] = ["a", "b", "c", "d", "e"]
    #expect(table.change(setting: keys, to: keys.map { _ in value[...] }, removing: []).count == 5)
    #expect(table.change(setting: keys, to: keys.map { _ in [1] }, removing: ["f"]).count == 2)
    #expect(table.change(setting: [], to: [], removing: []).isEmpty)
  }

  @Test func `lack of memory is not a full disk`() {
    #expect(PostgresError(sqlState: "53200", message: "").storeErrorCode == .ioFailed)
    #expect(PostgresError(sqlState: "53100", message: "").storeErrorCode == .full)
    #expect(PostgresError(sqlState: "57P05", message: "").mustRepeat)
  }
}
#endif
