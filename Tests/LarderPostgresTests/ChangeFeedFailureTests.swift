#if Postgres
import Foundation
import Larder
import LarderTesting
import TestSupport
import Testing

@testable import LarderPostgres

/// Reports of changes when the server, the connection or the reader was away, and what the feed costs when it is idle.
@Suite(.limitedParallelism, .timeLimit(.minutes(60))) struct ChangeFeedFailureTests {
  /// A change that covers every key, as after a gap.
  private static let everything = StoreChange.range(.all)

  /// A stopped server keeps what it has recorded, and one that was killed has lost it.
  @Test(arguments: [PostgresServer.StopMode.fast, .immediate])
  func `a restart is reported as everything`(_ mode: PostgresServer.StopMode) async throws {
    try await PostgresServer.withOwn { server in
      try await FeedHost.two(on: server) { setting, first, second in
        try await first.store.setValue(1, forKey: "a")
        try await second.changes(until: "a")
        try await server.stop(mode)
        try await server.start()
        #expect(try await second.changes(until: "any") == [Self.everything])
        try await waitUntil { second.lag < .seconds(1) }
        _ = second.events.take()
        try await first.store.setValue(2, forKey: "b")
        // After a crash, a reader writes the row that identifies the feed, which is a gap once more.
        try await waitUntil { try await setting.psql("SELECT count(*) FROM larder_feed") == "1" }
        try await second.changes(until: "b")
        try await waitUntil { second.lag < .milliseconds(400) }
        try await first.store.setValue(3, forKey: "c")
        #expect(try await second.changes(until: "c").contains(.key("c")))
      }
    }
  }

  @Test func `the lag grows while the server is away`() async throws {
    try await PostgresServer.withOwn { server in
      try await FeedHost.two(on: server) { setting, first, second in
        try await waitUntil { second.lag < .seconds(1) }
        try await server.stop()
        try await waitUntil { second.lag > .seconds(2) }
        try await server.start()
        try await waitUntil { second.lag < .seconds(1) }
      }
    }
  }

  @Test func `the lag is unknown before the first look`() async throws {
    try await Setting.run { setting in
      let store = try await PostgresStore<Int>(in: setting.database, name: "users", reportsChanges: true)
      let observation = store.observe(.all) { _ in }
      try await waitUntil { observation.lag < .seconds(1) }
      let closed = observation
      await setting.database.close()
      try await waitUntil { closed.lag > .milliseconds(600) }
    }
  }

  /// The connection of the reader is cut, and what was written in between is reported by its keys.
  @Test func `changes during a lost connection are reported`() async throws {
    try await Setting.runBehindProxy { proxy, database, setting in
      let writer = try await FeedHost(setting)
      let reader = try await FeedHost(setting, connection: proxy.connectionString)
      for number in 0..<5 {
        await proxy.cutAll()
        let key = StoreKey(integer: number)
        try await writer.store.setValue(number, forKey: key)
        #expect(try await reader.changes(until: key) == [.key(key)])
      }
      await writer.database.close()
      await reader.database.close()
    }
  }

  /// A commit whose answer is lost is reported by its writer.
  @Test(arguments: [PostgresProxy.CutInstant.beforeCommit, .afterCommit])
  func `a write that is found out later is reported`(_ instant: PostgresProxy.CutInstant) async throws {
    try await Setting.runBehindProxy { proxy, database, setting in
      let writer = try await FeedHost(setting, connection: proxy.connectionString)
      let reader = try await FeedHost(setting)
      proxy.cut(instant)
      do {
        try await writer.store.setValue(1, forKey: "a")
      } catch let error as StoreError where error.outcome == .unknown {
        // Reported too, because it may have been committed.
      }
      #expect(writer.events.take().contains(.changed([.key("a")])))
      if try await writer.store.value(forKey: "a") == 1 { try await reader.changes(until: "a") }
      await writer.database.close()
      await reader.database.close()
    }
  }

  // MARK: Trimming

  /// Runs a closure with two hosts and a server of their own, because open transactions of other tests keep changes.
  private static func withOwn(
    _ body: (_ setting: Setting, _ first: FeedHost, _ second: FeedHost) async throws -> Void
  ) async throws {
    try await PostgresServer.withOwn { try await FeedHost.two(on: $0, body) }
  }

  /// Ends the retention.
  private func endRetention(_ setting: Setting) async throws {
    try await setting.psql("UPDATE larder_feed SET noted = noted - interval '11 minutes'")
  }

  @Test func `old changes are removed and a reader misses none`() async throws {
    try await Self.withOwn { setting, first, second in
      for number in 0..<20 { try await first.store.setValue(number, forKey: StoreKey(integer: number)) }
      try await second.changes(until: StoreKey(integer: 19))
      _ = first.events.take()
      // The first time notes what may be removed, and the second time removes it.
      for round in 0..<2 {
        try await endRetention(setting)
        try await waitUntil {
          try await setting.psql("SELECT noted > clock_timestamp() - interval '1 minute' FROM larder_feed") == "t"
        }
        try await first.store.setValue(1, forKey: "round \(round)")
        let key = StoreKey("round \(round)")
        #expect(try await second.changes(until: key) == [.key(key)])
      }
      #expect(try await setting.psql("SELECT count(*) FROM larder_changes") == "2")
      // No gap was reported to the writer either.
      #expect(!first.events.take().contains(.changed([Self.everything])))
    }
  }

  /// A reader whose store was not observed in the meantime.
  @Test func `a pause longer than the retention is reported as everything`() async throws {
    try await Self.withOwn { setting, first, second in
      let database = try await PostgresDatabase(setting.server.connectionString, schema: setting.schema)
      let store = try await PostgresStore<Int>(in: database, name: "users")
      // The feed begins where it is opened.
      try await first.store.setValue(1, forKey: "a")
      for _ in 0..<2 {
        try await endRetention(setting)
        try await waitUntil {
          try await setting.psql("SELECT noted > clock_timestamp() - interval '1 minute' FROM larder_feed") == "t"
        }
        try await first.store.setValue(1, forKey: "b")
      }
      let events = StoreEvents()
      let observation = events.observe(store)
      try await waitUntil { events.take().contains(.changed([Self.everything])) }
      observation.cancel()
      await database.close()
    }
  }

  /// A transaction that is open for longer than the retention is reported to all.
  @Test func `a long transaction is reported after the retention`() async throws {
    try await Self.withOwn { setting, first, second in
      let (long, end) = try await first.startTransaction(writing: "long")
      for _ in 0..<2 {
        try await endRetention(setting)
        try await waitUntil {
          try await setting.psql("SELECT noted > clock_timestamp() - interval '1 minute' FROM larder_feed") == "t"
        }
      }
      try await first.store.setValue(1, forKey: "a")
      #expect(try await second.changes(until: "a") == [.key("a")])
      end.open()
      try await long.value
      #expect(try await second.changes(until: "long") == [.key("long")])
    }
  }

  @Test func `many new changes are reported as everything`() async throws {
    try await FeedHost.two { setting, first, second in
      try await setting.psql(
        """
        INSERT INTO larder_changes(store, keys)
        SELECT 'users', ARRAY[int8send(n)] FROM generate_series(1, 10001) AS n
        """)
      #expect(try await second.changes(until: "any") == [Self.everything])
    }
  }

  // MARK: Cost

  @Test func `an idle reader takes no transaction number`() async throws {
    try await PostgresServer.withOwn(settings: ["autovacuum": "off"]) { server in
      try await FeedHost.two(on: server) { setting, first, second in
        try await waitUntil { first.lag < .seconds(1) && second.lag < .seconds(1) }
        let next = "SELECT pg_snapshot_xmax(pg_current_snapshot())"
        let reads = "SELECT xact_commit FROM pg_stat_database WHERE datname = current_database()"
        let number = try await setting.psql(next)
        let before = try #require(Int(try await setting.psql(reads)))
        // Both have looked again.
        try await waitUntil { try await Int(setting.psql(reads)) ?? 0 > before + 8 }
        #expect(try await setting.psql(next) == number)
      }
    }
  }

  /// The feed is found by its index, whatever the statistics say and however many changes a long transaction keeps.
  @Test func `a look reads only new changes`() async throws {
    try await FeedHost.two { setting, first, second in
      try await setting.psql(
        "INSERT INTO larder_changes(store, keys) SELECT 'users', '{}' FROM generate_series(1, 100000)")
      let page = FeedTable(schema: setting.schema).page(after: nil, without: 7)
      let sql = page.sql.replacing("$1", with: "'99999999'").replacing("$2", with: "'{5,6}'").replacing(
        "$3", with: "600"
      ).replacing("$4", with: "7").replacing("$5", with: "'\(setting.schema).larder_changes'").replacing(
        "$6", with: "'\(setting.schema).larder_feed'")
      let plan = try await setting.psql(
        "SET enable_seqscan = off; SET enable_nestloop = off; EXPLAIN (COSTS off) \(sql)")
      #expect(!plan.contains("Seq Scan on larder_changes"), "\(plan)")
      #expect(plan.contains("larder_changes_xid"), "\(plan)")
    }
  }

  // MARK: Deployments

  @Test(.enabled(if: DeploymentTests.hasPooler, "pgbouncer is not installed"))
  func `a pooler of sessions may be in between`() async throws {
    try await DeploymentTests.withPooler(mode: "session", size: 20) { connection, server in
      try await Setting.run(on: server) { setting in
        let (writer, reader) = (try await FeedHost(setting), try await FeedHost(setting, connection: connection))
        try await writer.store.setValue(1, forKey: "a")
        #expect(try await reader.changes(until: "a") == [.key("a")])
        try await reader.store.setValue(1, forKey: "b")
        #expect(try await writer.changes(until: "b").contains(.key("b")))
        await writer.database.close()
        await reader.database.close()
      }
    }
  }

  /// The SQL of the article about the feed.
  static func triggers(schema: String) throws -> String {
    let path = "../../Modules/Stores/LarderPostgres/LarderPostgres.docc/PostgresChangeFeed.md"
    let article = URL(filePath: #filePath).deletingLastPathComponent().appending(path: path)
    let blocks = try String(contentsOf: article, encoding: .utf8).components(separatedBy: "```sql\n").dropFirst()
    let text = try #require(blocks.last?.components(separatedBy: "```").first)
    return text.replacing("public.", with: "\(schema).")
  }

  @Test func `changes by SQL are reported with triggers`() async throws {
    try await FeedHost.two { setting, first, second in
      try await setting.psql(Self.triggers(schema: setting.schema))
      try await setting.psql("INSERT INTO users VALUES ('a', NULL), ('b', NULL)")
      #expect(Set(try await first.changes(until: "a")) == [.key("a"), .key("b")])
      try await setting.psql("UPDATE users SET key = 'c' WHERE key = 'b'")
      #expect(Set(try await first.changes(until: "c")).isSuperset(of: [.key("c")]))
      try await setting.psql("DELETE FROM users WHERE key = 'a'")
      #expect(try await first.changes(until: "a").contains(.key("a")))
      try await setting.psql("TRUNCATE users")
      #expect(try await first.changes(until: "x") == [Self.everything])
      try await setting.psql("INSERT INTO users(key) SELECT int8send(n) FROM generate_series(1, 1001) AS n")
      #expect(try await first.changes(until: "x") == [Self.everything])
      // Own writes are still reported once here, and to the other host.
      _ = first.events.take()
      try await first.store.setValue(1, forKey: "own")
      #expect(first.events.take() == [.changed([.key("own")])])
      try await waitUntil {
        second.events.take().contains { event in
          if case .changed(let changes) = event { changes.contains(.range(.only("own"))) } else { false }
        }
      }
      // SQL in a transaction that also writes through Larder.
      _ = first.events.take()
      try await first.database.write { transaction in
        try await transaction.setValue(2, forKey: "own", in: first.store)
        try await transaction.execute("INSERT INTO users VALUES ('sql', NULL)")
      }
      #expect(try await first.changes(until: "sql").contains(.key("own")))
    }
  }
}
#endif
