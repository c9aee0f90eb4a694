#if Postgres
import Foundation
import TestSupport
import Testing

@Suite(.serialized) struct PostgresProxyTests {
  /// An empty table in a schema of its own.
  private static func table(_ server: PostgresServer) async throws -> String {
    let table = try await server.newSchema() + ".t"
    try await server.run(psql: "CREATE TABLE \(table) (i int)")
    return table
  }

  @Test func `round trips are counted and delayed`() async throws {
    let server = try await PostgresServer.local
    let proxy = try PostgresProxy(server)
    let count = try await proxy.countRoundTrips {
      let output = try await server.run(psql: "SELECT 1; SELECT 2;", connectionString: proxy.connectionString)
      #expect(output == "1\n2")
    }
    #expect(count == 2)
    #expect(proxy.connections == 1)
    proxy.delay(toServer: .milliseconds(20), toClient: .milliseconds(30))
    let duration = try await ContinuousClock().measure {
      try await server.run(psql: "SELECT 1; SELECT 2;", connectionString: proxy.connectionString)
    }
    // Connecting is a round trip too.
    #expect(duration >= .milliseconds(150))
    await proxy.close()
    await proxy.close()
    await #expect(throws: PostgresFailure.self) {
      try await server.run(psql: "SELECT 1", connectionString: proxy.connectionString)
    }
  }

  @Test(arguments: ["LISTEN c", "SELECT pg_notify('c', '')"]) func `notifications are refused`(sql: String) async throws
  {
    let server = try await PostgresServer.local
    let proxy = try PostgresProxy(server)
    try await server.run(psql: sql, connectionString: proxy.connectionString)
    #expect(proxy.roundTrips == 0, "they are not counted")
    proxy.refuseNotifications()
    await #expect(throws: PostgresFailure.self) {
      try await server.run(psql: sql, connectionString: proxy.connectionString)
    }
    #expect(try await server.run(psql: "SELECT 1", connectionString: proxy.connectionString) == "1")
    await proxy.close()
  }

  @Test func `large messages pass`() async throws {
    let server = try await PostgresServer.local
    let proxy = try PostgresProxy(server)
    let text = String(repeating: "x", count: 300_000)
    let output = try await server.run(
      psql: "SELECT length('\(text)'); SELECT '\(text)'", connectionString: proxy.connectionString)
    #expect(output == "300000\n\(text)")
  }

  @Test(arguments: ["INSERT INTO t VALUES (2);", "BEGIN; INSERT INTO t VALUES (2); COMMIT;"])
  func `commits are cut`(sql: String) async throws {
    let server = try await PostgresServer.local
    let proxy = try PostgresProxy(server)
    let table = try await PostgresProxyTests.table(server)
    let sql = sql.replacing(" t ", with: " \(table) ")
    for (instant, expected) in [(PostgresProxy.CutInstant.beforeCommit, "0"), (.afterCommit, "1")] {
      proxy.cut(instant)
      let error = await #expect(throws: PostgresFailure.self) {
        try await server.run(psql: "SELECT 7;" + sql, connectionString: proxy.connectionString)
      }
      #expect(error?.description.contains("closed the connection") == true)
      #expect(proxy.pendingCuts == 0)
      #expect(try await server.run(psql: "SELECT count(*) FROM \(table)") == expected)
      try await server.run(psql: "SELECT 7", connectionString: proxy.connectionString)
    }
  }

  /// Sends the statements of a pipeline with the extended protocol, as `pgbench` does.
  @Test(arguments: ["INSERT INTO t VALUES (2);", "BEGIN;\nINSERT INTO t VALUES (2);\nCOMMIT;"])
  func `commits in pipelines are cut`(sql: String) async throws {
    let server = try await PostgresServer.local
    let proxy = try PostgresProxy(server)
    let folder = try TemporaryFolder()
    let table = try await PostgresProxyTests.table(server)
    let script = "\\startpipeline\nSELECT 1;\n\(sql.replacing(" t ", with: " \(table) "))\n\\endpipeline\n"
    try script.write(toFile: folder.path("script"), atomically: true, encoding: .utf8)
    let arguments = ["-n", "-M", "prepared", "-t", "1", "-f", folder.path("script")]
    let run = try await server.run(pgbench: arguments, connectionString: proxy.connectionString)
    #expect(run.status == 0, "\(run.errors)")
    // Each statement is prepared in a round trip of its own, also the `SELECT`. The pipeline takes one.
    #expect(proxy.roundTrips == sql.split(separator: "\n").count + 2)
    for (instant, expected) in [(PostgresProxy.CutInstant.beforeCommit, "1"), (.afterCommit, "2")] {
      proxy.cut(instant)
      let run = try await server.run(pgbench: arguments, connectionString: proxy.connectionString)
      #expect(run.status != 0)
      #expect(run.errors.contains("the backend died"), "\(run.errors)")
      #expect(proxy.pendingCuts == 0)
      #expect(try await server.run(psql: "SELECT count(*) FROM \(table)") == expected)
    }
  }

  @Test func `a transaction stays in progress if the network fails`() async throws {
    let server = try await PostgresServer.local
    let proxy = try PostgresProxy(server)
    let table = try await PostgresProxyTests.table(server)
    proxy.cut(.beforeCommitInNetwork)
    await #expect(throws: PostgresFailure.self) {
      try await server.run(
        psql: "BEGIN; INSERT INTO \(table) VALUES (2); COMMIT;", connectionString: proxy.connectionString)
    }
    let sessions = "SELECT count(*) FROM pg_locks WHERE relation = '\(table)'::regclass"
    #expect(try await server.run(psql: sessions) == "1")
    await proxy.cutAll()
    // The server notices the end of the connection some time later, and the lock waits for that.
    let count = "SET lock_timeout = '10s'; BEGIN; LOCK \(table); SELECT count(*) FROM \(table); COMMIT"
    #expect(try await server.run(psql: count) == "0")
  }

  @Test func `all connections are cut`() async throws {
    let server = try await PostgresServer.local
    let proxy = try PostgresProxy(server)
    try await withThrowingTaskGroup(of: Void.self) { group in
      for _ in 0..<3 {
        group.addTask {
          await #expect(throws: PostgresFailure.self) {
            try await server.run(psql: "SELECT pg_sleep(300)", connectionString: proxy.connectionString)
          }
        }
      }
      try await waitUntil { proxy.connections >= 3 }
      await proxy.cutAll()
    }
    #expect(try await server.run(psql: "SELECT 1", connectionString: proxy.connectionString) == "1")
  }
}
#endif
