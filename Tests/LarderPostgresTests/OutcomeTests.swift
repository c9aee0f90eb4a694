#if Postgres
import Foundation
import Larder
import LarderPostgres
import LarderTesting
import TestSupport
import Testing

/// The errors and results of calls whose connection is lost, above all during a commit.
@Suite(.timeLimit(.minutes(60))) struct OutcomeTests {
  @Test func eachCallTakesTheRoundTripsOfTheGuide() async throws {
    try await Setting.runBehindProxy { proxy, database, _ in
      let store = try await PostgresStore<Int>(in: database)
      let keys = (0..<500).map { StoreKey(integer: $0) }
      let batch = ChangeBatch(keys.map { .set($0, 1) } + [.remove(keys[7])])
      // The first calls also make connections.
      try await store.apply(batch)
      try await store.update([keys[0]]) { $0[0] = 2 }
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

  @Test func concurrentReadsShareRoundTrips() async throws {
    try await Setting.runBehindProxy(connections: 3) { proxy, database, _ in
      let store = try await PostgresStore<Int>(in: database)
      try await store.apply(ChangeBatch((0..<1000).map { .set(StoreKey(integer: $0), $0) }))
      try await store.update(["other"]) { $0[0] = 1 }
      proxy.delay(toServer: .milliseconds(1), toClient: .milliseconds(1))
      let count = try await proxy.countRoundTrips {
        try await withThrowingTaskGroup(of: Void.self) { group in
          for key in 0..<1000 {
            group.addTask {
              let value = try await store.value(forKey: StoreKey(integer: key))
              #expect(value == key)
            }
          }
          try await group.waitForAll()
        }
      }
      // Four connections, each with fewer than 20 on an idle machine.
      #expect(count < 300)
    }
  }

  @Test(arguments: [PostgresProxy.CutInstant.beforeCommit, .beforeCommitInNetwork, .afterCommit])
  func aConnectionThatIsLostDuringTheCommitIsFoundOut(instant: PostgresProxy.CutInstant) async throws {
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

  @Test func aWriteThatIsEndedWhileItWaitsForALockIsRepeated() async throws {
    try await Setting.run(connections: 2) { setting in
      let store = try await PostgresStore<Int>(in: setting.database)
      let (isWritten, mayCommit) = (Gate(), Gate())
      async let holder: Void = setting.database.write { transaction in
        try await transaction.setValue(9, forKey: "k", in: store)
        isWritten.open()
        await mayCommit.wait()
      }
      await isWritten.wait()
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

  @Test func theOutcomeIsUnknownIfTheServerMayHaveLostCommits() async throws {
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

  @Test func aServerThatCrashesLosesNothingAcknowledged() async throws {
    let server = try await PostgresServer()
    try await Setting.run(on: server) { setting in
      let store = try await PostgresStore<Int>(in: setting.database)
      try await expectNothingLost(in: store, setting.database) {
        for _ in 0..<ConformanceSuite.killsOfProcess { try await server.restart(.immediate) }
      }
    }
    try await server.close()
  }

  /// The ways to lose connections while many tasks write.
  enum Loss: CaseIterable {
    case terminatedBackends, cutConnections, cutBeforeCommit, cutAfterCommit
  }

  @Test(arguments: Loss.allCases) func nothingAcknowledgedIsLostAndNothingRefusedIsKept(loss: Loss) async throws {
    try await Setting.runBehindProxy(connections: 4) { proxy, database, setting in
      let store = try await PostgresStore<Int>(in: database)
      try await expectNothingLost(in: store, database) {
        for _ in 0..<(5 * ConformanceSuite.killsOfProcess) {
          switch loss {
          case .terminatedBackends:
            try await setting.psql(
              """
              SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
              WHERE application_name = '\(setting.schema)'
              """)
          case .cutConnections: await proxy.cutAll()
          case .cutBeforeCommit: proxy.cut(.beforeCommit, times: 2)
          case .cutAfterCommit: proxy.cut(.afterCommit, times: 2)
          }
          try await Task.sleep(for: .milliseconds(30))
        }
      }
    }
  }

  /// The number of failovers: more in `make soak`.
  private static let failovers = max(1, ConformanceSuite.killsOfProcess / 4)

  @Test(arguments: 0..<failovers) func aStandbyTakesOverWithEverythingAcknowledged(round: Int) async throws {
    let primary = try await PostgresServer()
    let standby = try await primary.addStandby(isSynchronous: true)
    let schema = try await primary.newSchema()
    let hosts = try "host=\(primary.folder),\(standby.folder) port=5432,5432 user=larder dbname=postgres"
    let database = try await PostgresDatabase("\(hosts) target_session_attrs=read-write", schema: schema)
    let store = try await PostgresStore<Int>(in: database)
    try await expectNothingLost(in: store, database) {
      try await Task.sleep(for: .milliseconds(100))
      try await primary.stop(.immediate)
      try await standby.promote()
      // It counts on by itself.
      let value = try await next(store) ?? 0
      while try await next(store) ?? 0 <= value {}
    }
    await database.close()
    try await primary.close()
    try await standby.close()
  }

  /// Returns the count as soon as a server can be reached.
  private func next(_ store: PostgresStore<Int>) async throws -> Int? {
    while true {
      do {
        return try await store.value(forKey: "k")
      } catch let error as StoreError where error.isRetryable {}
    }
  }

  /// Counts up in eight tasks during a closure that makes connections fail, and compares the sum with what the tasks know.
  private func expectNothingLost(
    in store: PostgresStore<Int>, _ database: PostgresDatabase, during body: () async throws -> Void
  ) async throws {
    let mustEnd = Flag()
    let (acknowledged, unknown) = try await withThrowingTaskGroup(of: (Int, Int).self) { group in
      for writer in 0..<8 {
        group.addTask {
          var (acknowledged, unknown) = (0, 0)
          while !mustEnd.isRaised {
            do {
              if writer.isMultiple(of: 2) {
                try await store.update(["k"]) { $0[0] = ($0[0] ?? 0) + 1 }
              } else {
                try await database.write { transaction in
                  try await transaction.update(["k"], in: store) { $0[0] = ($0[0] ?? 0) + 1 }
                }
              }
              acknowledged += 1
            } catch let error as StoreError where error.isRetryable {
              if error.outcome == .unknown { unknown += 1 }
            }
          }
          return (acknowledged, unknown)
        }
      }
      try await body()
      mustEnd.raise()
      return try await group.reduce(into: (0, 0)) { $0 = ($0.0 + $1.0, $0.1 + $1.1) }
    }
    let value = try await store.value(forKey: "k") ?? 0
    #expect(acknowledged > 0)
    #expect((acknowledged...(acknowledged + unknown)).contains(value), "\(acknowledged), and \(unknown) unknown")
  }
}
#endif
