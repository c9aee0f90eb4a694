#if Postgres
import Foundation
import Larder
import LarderPostgres
import LarderTesting
import TestSupport
import Testing

/// The round trips of calls, and the errors and results of those whose connection is lost, above all during a commit.
@Suite(.timeLimit(.minutes(60))) struct OutcomeTests {
  @Test func `each call takes the round trips of the guide`() async throws {
    try await Setting.runBehindProxy { proxy, database, _ in
      let store = try await PostgresStore<Int>(in: database)
      let keys = (0..<500).map { StoreKey(integer: $0) }
      let batch = ChangeBatch(keys.map { .set($0, 1) } + [.remove(keys[7])])
      // The first calls also make connections.
      try await store.apply(batch)
      try await store.update([keys[0]]) { $0[0] = 2 }
      // So that the parts of a long flight arrive together, also on a machine with more to do.
      proxy.delay(toServer: .milliseconds(100), toClient: .zero)
      func expect(_ count: Int, sourceLocation: SourceLocation = #_sourceLocation, _ body: () async throws -> Void)
        async throws
      {
        let counted = try await proxy.countRoundTrips(body)
        #expect(counted == count, sourceLocation: sourceLocation)
      }
      try await expect(1) { _ = try await store.value(forKey: keys[0]) }
      try await expect(1) { _ = try await store.values(forKeys: keys) }
      try await expect(1) { _ = try await store.entries(in: .all, limit: 100, order: .descending) }
      try await expect(1) { _ = try await store.count(in: .all) }
      try await expect(1) { try await store.setValue(1, forKey: keys[0]) }
      try await expect(1) { try await store.apply(batch) }
      try await expect(1) { try await store.apply([.removeAll(.only(keys[3])), .set(keys[3], 1)]) }
      try await expect(2) { try await store.update(keys) { $0[5] = 9 } }
    }
  }

  @Test(arguments: [PostgresProxy.CutInstant.beforeCommit, .beforeCommitInNetwork, .afterCommit])
  func `a connection that is lost during the commit is found out`(instant: PostgresProxy.CutInstant) async throws {
    try await Setting.runBehindProxy { proxy, database, setting in
      let store = try await PostgresStore<Int>(in: database, name: "numbers")
      try await setting.psql(
        """
        CREATE TABLE writes(n bigint GENERATED ALWAYS AS IDENTITY, key bytea);
        CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS
          'BEGIN INSERT INTO \(setting.schema).writes(key) VALUES(NEW.key); RETURN NEW; END';
        CREATE TRIGGER note BEFORE UPDATE ON numbers FOR EACH ROW EXECUTE FUNCTION note();
        INSERT INTO numbers VALUES('a', '\\x00'), ('b', '\\x00'), ('c', '\\x00'), ('d', '\\x00');
        """)
      /// Applies a batch, again if the connection was lost before even the number of the transaction had arrived.
      func apply(_ batch: ChangeBatch<Int>) async throws {
        do {
          try await store.apply(batch)
        } catch let error as StoreError where error.outcome == .unknown && instant != .afterCommit {
          try await store.apply(batch)
        }
      }
      for round in 1...ConformanceSuite.killsOfProcess {
        proxy.cut(instant)
        try await apply([.set("a", round)])
        #expect(proxy.pendingCuts == 0)
        proxy.cut(instant)
        try await store.update(["b"]) { $0[0] = ($0[0] ?? 0) + 1 }
        #expect(proxy.pendingCuts == 0)
        proxy.cut(instant)
        try await database.write { try await $0.setValue(round, forKey: "c", in: store) }
        #expect(proxy.pendingCuts == 0)
        proxy.cut(instant)
        try await apply([.removeAll(.only("e")), .set("d", round)])
        #expect(proxy.pendingCuts == 0)
        #expect(try await store.values(forKeys: ["a", "b", "c", "d"]) == [round, round, round, round])
      }
      let counts = try await setting.psql(
        "SELECT convert_from(key, 'UTF8'), count(*) FROM writes GROUP BY 1 ORDER BY 1")
      let expected = ["a", "b", "c", "d"].map { "\($0)|\(ConformanceSuite.killsOfProcess)" }
      #expect(counts.split(separator: "\n").map { String($0) } == expected, "each write was committed once")
    }
  }

  @Test func `a write that is ended while it waits for a lock is repeated`() async throws {
    try await Setting.run(connections: 2) { setting in
      let store = try await PostgresStore<Int>(in: setting.database)
      let (isWritten, mayCommit) = (Gate(), Gate())
      async let holder: Void = setting.database.write { transaction in
        try await transaction.setValue(9, forKey: "k", in: store)
        isWritten.open()
        try await mayCommit.wait()
      }
      try await isWritten.wait()
      async let waiter: Void = store.setValue(1, forKey: "k")
      try await setting.waitForBlocked(1)
      try await setting.psql(
        """
        SELECT pg_terminate_backend(pid) FROM pg_stat_activity
        WHERE wait_event_type = 'Lock' AND application_name = '\(setting.schema)'
        """)
      try await setting.waitForBlocked(1)
      mayCommit.open()
      _ = try await (holder, waiter)
      #expect(try await store.value(forKey: "k") == 1)
    }
  }

  @Test func `the outcome is unknown if the server may have lost commits`() async throws {
    let server = try await PostgresServer()
    try await Setting.runBehindProxy(on: server) { proxy, database, setting in
      let store = try await PostgresStore<Int>(in: database)
      try await store.setValue(1, forKey: "k")
      // A server that recovers from a crash resets these statistics too, and may use numbers of transactions again.
      try await setting.psql("SELECT pg_stat_reset_shared('bgwriter')")
      proxy.cut(.afterCommit)
      let error = await #expect(throws: StoreError.self) { try await store.setValue(2, forKey: "k") }
      #expect(error?.outcome == .unknown)
      #expect(error?.isRetryable == true)
      #expect(error?.code == .ioFailed)
      #expect(try await store.value(forKey: "k") == 2)
    }
    try await server.close()
  }
}
#endif
