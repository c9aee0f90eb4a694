#if Postgres
import Foundation
import Larder
import LarderPostgres
import LarderTesting
import TestSupport
import Testing

/// Connections, servers and processes that end while 8 writers and 8 consumers work.
///
/// `LARDER_KILL_ROUNDS` sets the number of rounds of each.
@Suite(.limitedParallelism, .timeLimit(.minutes(60))) struct PostgresFaultTests {
  /// Prints the numbers of a report, if there are many rounds.
  private func note(_ report: FaultReport, _ what: String, rounds: Int) {
    guard ConformanceSuite.killsOfProcess >= 20 else { return }
    let writes = ["done", "refused", "unknown"].map { "\($0) \(report.count($0))" }
    let items = ["acknowledged", "stale", "kept", "maybe"].map { "\($0) \(report.items($0).count)" }
    print("\(what), \(rounds) rounds: writes: \(writes); acknowledgements: \(items)")
  }

  // MARK: Connections

  /// A way to lose connections.
  enum Loss: CaseIterable {
    case terminatedBackends, cutConnections, cutBeforeCommit, cutBeforeCommitInNetwork, cutAfterCommit
  }

  @Test(arguments: Loss.allCases, PostgresIsolation.allCases)
  func `connections that are lost lose nothing`(loss: Loss, isolation: PostgresIsolation) async throws {
    let rounds = max(5, ConformanceSuite.killsOfProcess)
    let (server, folder) = (try await PostgresServer.local, try TemporaryFolder())
    let (schema, proxy) = (try await server.newSchema(), try PostgresProxy(server))
    let workload = try await FaultWorkload(
      "\(proxy.connectionString) application_name=\(schema)", schema: schema, log: folder.path("log"),
      isolation: isolation)
    try await workload.run {
      for _ in 0..<rounds {
        switch loss {
        case .terminatedBackends:
          try await server.run(
            psql: """
              SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE application_name = '\(schema)'
              """)
        case .cutConnections: await proxy.cutAll()
        case .cutBeforeCommit: proxy.cut(.beforeCommit, times: 2)
        case .cutBeforeCommitInNetwork: proxy.cut(.beforeCommitInNetwork, times: 2)
        case .cutAfterCommit: proxy.cut(.afterCommit, times: 2)
        }
        try await waitUntil { proxy.pendingCuts == 0 }
        try await workload.makeProgress()
      }
    }
    await workload.close()
    await proxy.close()
    let report = try FaultReport(logs: [folder.path("log")])
    try await report.expectNothingLost(on: server, schema: schema)
    note(report, "\(loss), \(isolation)", rounds: rounds)
    guard loss == .cutAfterCommit else { return }
    #expect(report.count("unknown") == 0, "a call whose connection is lost after its commit returns")
    #expect(report.items("maybe").isEmpty)
    // Serializable transactions may be in conflict too often.
    if isolation == .readCommitted { #expect(report.count("refused") == 0 && report.items("kept").isEmpty) }
  }

  // MARK: Servers

  @Test func `a server that crashes loses nothing`() async throws {
    try await PostgresServer.withOwn { server in
      let folder = try TemporaryFolder()
      let schema = try await server.newSchema()
      let workload = try await FaultWorkload(server.connectionString, schema: schema, log: folder.path("log"))
      try await workload.run {
        for _ in 0..<ConformanceSuite.killsOfProcess {
          try await server.restart(.immediate)
          try await workload.makeProgress()
        }
      }
      await workload.close()
      let report = try FaultReport(logs: [folder.path("log")])
      try await report.expectNothingLost(on: server, schema: schema)
      note(report, "crashes of the server", rounds: ConformanceSuite.killsOfProcess)
    }
  }

  /// The server stands still for longer than a call may take, as when its machine is suspended.
  @Test func `a server that stands still loses nothing`() async throws {
    try await PostgresServer.withOwn { server in
      let folder = try TemporaryFolder()
      let schema = try await server.newSchema()
      let workload = try await FaultWorkload(
        server.connectionString, schema: schema, log: folder.path("log"), timeout: .seconds(2))
      let file = try String(contentsOfFile: "\(server.folder)/data/postmaster.pid", encoding: .utf8)
      let main = try #require(file.split(separator: "\n").first.flatMap { Int32($0) })
      @Sendable func standStill() async throws {
        // First the one that starts others.
        kill(main, SIGSTOP)
        defer { kill(main, SIGCONT) }
        let processes = try CommandRun(["ps", "-A", "-o", "pid=,ppid="]).lines.compactMap { line -> Int32? in
          let numbers = line.split(separator: " ").compactMap { Int32($0) }
          return numbers.last == main ? numbers.first : nil
        }
        for process in processes { kill(process, SIGSTOP) }
        defer { for process in processes { kill(process, SIGCONT) } }
        try await Task.sleep(for: .seconds(8))
      }
      let rounds = max(2, ConformanceSuite.killsOfProcess / 10)
      try await workload.run {
        for _ in 0..<rounds {
          try await workload.makeProgress()
          try await standStill()
          try await workload.makeProgress()
        }
      }
      await workload.close()
      let report = try FaultReport(logs: [folder.path("log")])
      try await report.expectNothingLost(on: server, schema: schema)
      note(report, "standstills of the server", rounds: rounds)
    }
  }

  /// A cold copy has the identity of the server, which a base backup does not have.
  @Test(arguments: 0..<max(1, ConformanceSuite.killsOfProcess / 4), [false, true])
  func `a standby takes over with all that was acknowledged`(round: Int, isColdCopy: Bool) async throws {
    try await PostgresServer.withOwn { primary in
      let folder = try TemporaryFolder()
      let standby = try await primary.addStandby(isSynchronous: true, isColdCopy: isColdCopy)
      let schema = try await primary.newSchema()
      let hosts = try "host=\(primary.folder),\(standby.folder) port=5432,5432 user=larder dbname=postgres"
      let workload = try await FaultWorkload(
        "\(hosts) target_session_attrs=read-write", schema: schema, log: folder.path("log"))
      try await workload.run {
        for _ in 0..<20 { try await workload.makeProgress() }
        // Commits of the primary wait for the standby, which never gets them.
        try await standby.set(["primary_conninfo": ""])
        try await waitUntil {
          try await primary.run(psql: "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep'") != "0"
        }
        try await primary.stop(.immediate)
        try await standby.promote()
        // Other programs use the numbers of the transactions that were lost.
        try await standby.run(
          psql: """
            CREATE TABLE others(i int);
            DO $$ BEGIN FOR i IN 1..400 LOOP INSERT INTO others VALUES(i); COMMIT; END LOOP; END $$
            """)
        // The callers continue by themselves.
        for _ in 0..<5 { try await workload.makeProgress() }
      }
      await workload.close()
      let report = try FaultReport(logs: [folder.path("log")])
      try await report.expectNothingLost(on: standby, schema: schema)
      note(report, "failover \(round)\(isColdCopy ? " to a cold copy" : "")", rounds: 1)
      try await standby.close()
    }
  }

  // MARK: Processes

  /// Works until this process is killed, some time after its first writes.
  fileprivate static func work(_ connection: String, schema: String, log: String, from first: Int, killedAfter: UInt32)
    async throws
  {
    let workload = try await FaultWorkload(connection, schema: schema, log: log)
    try await workload.run(from: first) {
      // However busy the machine is.
      try await workload.makeProgress()
      Thread.detachNewThread {
        usleep(killedAfter)
        kill(getpid(), SIGKILL)
      }
      try await Task.sleep(for: .seconds(60))
    }
  }

  @Test func `processes that are killed lose nothing`() async throws {
    var generator = SeededGenerator(seed: SeededGenerator.seedOfProcess, purpose: "killed clients of PostgreSQL")
    let folder = try TemporaryFolder()
    let rounds = ConformanceSuite.killsOfProcess
    try await PostgresServer.withOwn { server in
      let schema = try await server.newSchema()
      let logs = (0...rounds).map { folder.path("log \($0)") }
      for round in 0..<rounds {
        let delay = UInt32.random(in: 1000..<60_000, using: &generator)
        await #expect(processExitsWith: .signal(SIGKILL)) {
          [
            connection = server.connectionString as String, schema = schema as String, log = logs[round] as String,
            first = (round + 1) * 1_000_000 as Int, delay = delay as UInt32
          ] in
          try await PostgresFaultTests.work(connection, schema: schema, log: log, from: first, killedAfter: delay)
        }
      }
      // This process takes over what the others have left.
      let workload = try await FaultWorkload(server.connectionString, schema: schema, log: logs[rounds])
      try await workload.run(limit: 5) {}
      await workload.close()
      let report = try FaultReport(logs: logs)
      try await report.expectNothingLost(on: server, schema: schema)
      note(report, "killed clients", rounds: rounds)
    }
  }

  /// The number of writes of each of the 8 writers of a process, a fifth of which are enqueued together with an entry,
  /// and a fifth alone.
  fileprivate static let writes = 20

  @Test(arguments: PostgresIsolation.allCases) func `two processes share a queue`(isolation: PostgresIsolation)
    async throws
  {
    let folder = try TemporaryFolder()
    let server = try await PostgresServer.shared
    let schema = try await server.newSchema()
    let logs = [folder.path("first"), folder.path("second")]
    // Both exist before the other process begins.
    let workload = try await FaultWorkload(
      server.connectionString, schema: schema, log: logs[0], isolation: isolation, lease: .seconds(60))
    async let other = #expect(processExitsWith: .success) {
      [
        connection = server.connectionString as String, schema = schema as String, log = logs[1] as String,
        isSerializable = (isolation == .serializable) as Bool
      ] in
      let workload = try await FaultWorkload(
        connection, schema: schema, log: log, isolation: isSerializable ? .serializable : .readCommitted,
        lease: .seconds(60))
      try await workload.run(from: 1_000_000, limit: PostgresFaultTests.writes) {}
      await workload.close()
    }
    // This one also begins when the other does.
    try await waitUntil { FileManager.default.fileExists(atPath: logs[1]) }
    try await workload.run(limit: PostgresFaultTests.writes) {}
    await workload.close()
    _ = await other
    let report = try FaultReport(logs: logs)
    try await report.expectNothingLost(on: server, schema: schema)
    #expect(report.count("unknown") == 0)
    let acknowledged = report.items("acknowledged")
    #expect(Set(acknowledged).count == acknowledged.count, "each item is acknowledged once")
    if isolation == .readCommitted { #expect(acknowledged.count == 2 * 8 * PostgresFaultTests.writes * 2 / 5) }
    for log in logs { #expect(try !FaultReport(logs: [log]).items("acknowledged").isEmpty, "both consume") }
  }
}
#endif
