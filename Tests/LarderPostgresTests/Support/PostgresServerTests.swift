#if Postgres
import Foundation
import TestSupport
import Testing

#if canImport(Darwin)
import Darwin
#else
import Glibc
#endif

@Suite struct PostgresServerTests {
  @Test func `the shared server runs SQL and is durable`() async throws {
    let server = try await PostgresServer.shared
    #expect(try await server.run(psql: "SELECT 1, 'a;b'; SELECT 2") == "1|a;b\n2")
    #expect(try await server.run(psql: "SHOW fsync") == "on")
    let error = await #expect(throws: PostgresFailure.self) { try await server.run(psql: "SELECT 1/0; SELECT 2") }
    #expect(error?.description.contains("division by zero") == true)
  }

  @Test func `schemas are empty and have names of their own`() async throws {
    let server = try await PostgresServer.shared
    let names = try await withThrowingTaskGroup(of: String.self) { group in
      for _ in 0..<20 { group.addTask { try await server.newSchema() } }
      return try await group.reduce(into: Set()) { $0.insert($1) }
    }
    #expect(names.count == 20)
    let name = try #require(names.first)
    try await server.run(psql: "CREATE TABLE \(name).t (i int)")
    #expect(try await server.run(psql: "SELECT count(*) FROM \(name).t") == "0")
  }

  @Test func `a standby has what the primary acknowledged`() async throws {
    let primary = try await PostgresServer(settings: ["max_connections": "20", "fsync": "off"])
    let standby = try await primary.addStandby(named: "second", isSynchronous: true)
    #expect(try await primary.run(psql: "SHOW max_connections; SHOW synchronous_standby_names") == "20\nsecond")
    try await primary.run(psql: "CREATE TABLE t AS SELECT 7")
    try await primary.stop(.immediate)
    await #expect(throws: PostgresFailure.self) { try await primary.run(psql: "SELECT 1") }
    await #expect(throws: PostgresFailure.self) { try await standby.run(psql: "INSERT INTO t VALUES (8)") }
    try await standby.promote()
    #expect(try await standby.run(psql: "INSERT INTO t VALUES (8); TABLE t") == "7\n8")
    // The old primary recovers from its log.
    try await primary.start()
    #expect(try await primary.run(psql: "TABLE t") == "7")
    let folders = try [primary.folder, standby.folder]
    for server in [primary, standby] {
      try await server.close()
      try await server.close()
    }
    for folder in folders { #expect(!FileManager.default.fileExists(atPath: folder)) }
  }

  @Test func `a server ends with its process`() async throws {
    let folder = try TemporaryFolder()
    await #expect(processExitsWith: .signal(SIGKILL)) { [path = folder.path as String] in
      // Swift Testing waits until no process has the pipe for the results of this one, not even one that it started.
      for descriptor in Int32(3)..<256 { _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC) }
      let server = try await PostgresServer(settings: ["fsync": "off"])
      let process = try await server.run(psql: "SELECT pg_backend_pid()")
      try "\(server.folder)\n\(process)".write(toFile: path + "/server", atomically: true, encoding: .utf8)
      kill(getpid(), SIGKILL)
    }
    let lines = try String(contentsOfFile: folder.path("server"), encoding: .utf8).split(separator: "\n")
    let server = try #require(lines.first)
    let end = ContinuousClock.now + .seconds(20)
    while FileManager.default.fileExists(atPath: String(server)), ContinuousClock.now < end {
      try await Task.sleep(for: .milliseconds(10))
    }
    #expect(!FileManager.default.fileExists(atPath: String(server)))
    let processes = try CommandRun(["ps", "-A", "-o", "args="]).lines
    // A process of the server names its folder. The shell that ended it may still be there.
    #expect(!processes.contains { $0.contains(server) && $0.contains("-D") && !$0.contains("watchdog") })
  }
}
#endif
