#if Postgres
import Foundation
import Larder
import LarderPostgres
import TestSupport
import Testing

/// Plans that were made while a table was small, and locks beside the maintenance of the server.
@Suite(.timeLimit(.minutes(60))) struct PlanTests {
  /// Returns the number of rows and index entries of a table that all calls have read.
  ///
  /// Unlike a time, it does not depend on the machine.
  private static func readCount(of table: String, _ setting: Setting) async throws -> Int {
    // The server counts what a session has read when the session is idle for a while, or is told to.
    try await setting.database.read { _ = try await $0.execute("SELECT pg_stat_force_next_flush()") }
    let text = try await setting.psql(
      """
      SELECT seq_tup_read + (SELECT sum(idx_tup_read) FROM pg_stat_user_indexes AS i WHERE i.relid = t.relid)
      FROM pg_stat_user_tables AS t WHERE relid = '\(table)'::regclass
      """)
    return try #require(Int(text))
  }

  /// Runs a closure with a database on a server of its own.
  ///
  /// A server discards all plans when any session creates a schema, as other tests do.
  private static func run(_ body: (Setting) async throws -> Void) async throws {
    try await PostgresServer.withOwn { server in
      try await Setting.run(on: server, connections: 1, body)
    }
  }

  /// Calls closures on a small table, makes the table large, calls them again, and expects that each reads few rows.
  private static func expectFewReads(
    of table: String, _ setting: Setting, growth: String, _ calls: [(String, () async throws -> Void)]
  ) async throws {
    // Statistics of the small table stay, as before the server has analyzed the large one.
    try await setting.psql("ALTER TABLE \(table) SET (autovacuum_enabled = false)")
    // A server makes up its mind about a plan after five calls.
    for _ in 0..<6 { for (_, call) in calls { try await call() } }
    try await setting.psql("VACUUM ANALYZE \(table)")
    for (_, call) in calls { try await call() }
    try await setting.psql(growth)
    for (name, call) in calls {
      let start = try await readCount(of: table, setting)
      try await call()
      let count = try await readCount(of: table, setting) - start
      // Some calls read a page of 500 items, and a server may count a call with the next one. The table has 200,000.
      #expect(count < 2000, "\(name)")
    }
  }

  @Test func `calls of a store stay fast when its table has grown`() async throws {
    try await PlanTests.run { setting in
      let store = try await PostgresStore<Int>(in: setting.database, name: "numbers")
      let keys = (0..<5).map { StoreKey(integer: $0) }
      try await store.apply(ChangeBatch(keys.map { .set($0, 1) }))
      try await PlanTests.expectFewReads(
        of: "numbers", setting,
        growth: "INSERT INTO numbers SELECT convert_to('k' || i, 'UTF8'), '\\x01' FROM generate_series(1, 200000) AS i",
        [
          ("value", { _ = try await store.value(forKey: keys[0]) }),
          ("values", { _ = try await store.values(forKeys: keys) }),
          ("entries", { _ = try await store.entries(in: .all, limit: 3) }),
          ("last", { _ = try await store.keys(in: .all, limit: 3, order: .descending) }),
          ("set", { try await store.setValue(2, forKey: keys[0]) }),
          ("batch", { try await store.apply([.set(keys[1], 1), .remove("none"), .removeAll(.only("none"))]) }),
          ("update", { try await store.update([keys[2], "none"]) { $0[0] = ($0[0] ?? 0) + 1 } }),
          (
            "transaction",
            {
              try await setting.database.write { transaction in
                _ = try await transaction.execute("SELECT 1")
                _ = try await transaction.value(forKey: keys[0], in: store)
                try await transaction.setValue(3, forKey: keys[3], in: store)
              }
            }
          ),
        ])
      let planner = try await setting.database.read { try await $0.execute("SHOW enable_seqscan") }
      #expect(planner == [["enable_seqscan": "on"]], "the user's own SQL has the planner of the server")
    }
  }

  @Test func `calls of a queue stay fast when its table has grown`() async throws {
    try await PlanTests.run { setting in
      let queue = try await PostgresQueue<Int>(in: setting.database, name: "jobs")
      func receive() async throws -> [QueueDelivery<Int>] { try await queue.receive(max: 2, lease: .seconds(3600)) }
      try await PlanTests.expectFewReads(
        of: "jobs", setting,
        growth: """
          INSERT INTO jobs(key, payload, state, arrival, priority)
          SELECT convert_to('k' || i, 'UTF8'), '\\x01', 0, now(), 0 FROM generate_series(1, 100000) AS i;
          INSERT INTO jobs(name, payload, state, since, deliveries, reason)
          SELECT convert_to('d' || i, 'UTF8'), '\\x01', 3, now(), 5, 1 FROM generate_series(1, 50000) AS i;
          INSERT INTO jobs(key, payload, state, arrival, since, until, deliveries, epoch)
          SELECT convert_to('l' || i, 'UTF8'), '\\x01', 2, now(), now(), now() + interval '1 hour' + i * interval '1 microsecond', 1, 2
          FROM generate_series(1, 50000) AS i;
          INSERT INTO jobs(group_key, state) SELECT convert_to('g' || i, 'UTF8'), 6 FROM generate_series(1, 50000) AS i;
          INSERT INTO jobs(key, payload, state, arrival, group_key)
          SELECT convert_to('g' || i, 'UTF8'), '\\x01', 5, now(), convert_to('g' || i, 'UTF8')
          FROM generate_series(1, 50000) AS i;
          """,
        [
          ("enqueue", { try await queue.enqueue([QueueInput(1, priority: 5), QueueInput(2, priority: 5)]) }),
          ("receive and acknowledge", { _ = try await queue.acknowledge(receive().map(\.receipt)) }),
          (
            "groups",
            {
              try await queue.enqueue([QueueInput(1, priority: 5, group: "g"), QueueInput(2, priority: 5, group: "g")])
              for _ in 0..<2 { _ = try await queue.acknowledge(receive().map(\.receipt)) }
            }
          ),
          (
            "release and extend",
            {
              try await queue.enqueue([QueueInput(1, priority: 5)])
              let receipts = try await receive().map(\.receipt)
              _ = try await queue.extend(receipts, lease: .seconds(60))
              _ = try await queue.release(receipts, after: .zero, countsAsAttempt: false)
              _ = try await queue.acknowledge(receive().map(\.receipt))
            }
          ),
          (
            "transaction",
            {
              try await setting.database.write { transaction in
                try await transaction.enqueue([QueueInput(1, priority: 5, group: "h")], in: queue)
              }
              _ = try await queue.acknowledge(receive().map(\.receipt))
            }
          ),
          ("value", { _ = try await queue.value(forKey: "k7") }),
          ("set and remove", { try await queue.apply([.set("x", 1), .remove("x")]) }),
          ("update", { try await queue.update(["y"]) { $0[0] = nil } }),
          ("peek", { _ = try await queue.peek(max: 3) }),
          ("dead letters", { _ = try await queue.deadLetters(limit: 3) }),
          ("leased items", { _ = try await queue.leasedItems(limit: 3, after: nil) }),
          ("groups", { _ = try await queue.groups(limit: 3, after: "g1") }),
          ("requeue", { _ = try await queue.requeue(["none"]) }),
          ("purge", { _ = try await queue.purgeDeadLetters(["none"]) }),
          (
            "pause",
            {
              try await queue.pause()
              #expect(try await queue.isPaused())
              try await queue.resume()
            }
          ),
        ])
    }
  }

  @Test func `a removal of a range neither waits for vacuum nor holds it up`() async throws {
    try await Setting.run(timeout: .seconds(20)) { setting in
      let store = try await PostgresStore<Int>(in: setting.database, name: "numbers")
      let queue = try await PostgresQueue<Int>(in: setting.database, name: "jobs")
      try await store.setValue(1, forKey: "k")
      let (isLocked, mayEnd) = (Gate(), Gate())
      let other = try await PostgresDatabase(setting.server.connectionString, schema: setting.schema)
      // The lock of VACUUM, CREATE INDEX CONCURRENTLY and ANALYZE.
      async let vacuum: Void = other.write { transaction in
        try await transaction.execute("LOCK TABLE numbers, jobs IN SHARE UPDATE EXCLUSIVE MODE")
        isLocked.open()
        try await mayEnd.wait()
      }
      try await isLocked.wait()
      try await store.removeAll(in: .prefix("z"))
      try await store.setValue(2, forKey: "k")
      try await queue.enqueue([QueueInput(1)])
      try await queue.apply([.removeAll(.all)])
      try await queue.update(["a"]) { $0[0] = 1 }
      #expect(try await queue.requeueDeadLetters() == 0)
      mayEnd.open()
      try await vacuum
      await other.close()
    }
  }
}
#endif
