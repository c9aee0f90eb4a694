#if Postgres
import Foundation
import Larder
import LarderPostgres
import LarderTesting
import TestSupport
import Testing

/// Servers whose disks are full: that of the tables, and that of the write-ahead log.
@Suite(
  .enabled(if: TemporaryFileSystem.obstacle == nil, "\(TemporaryFileSystem.obstacle ?? "")"), .timeLimit(.minutes(60)))
struct PostgresFullDiskTests {
  private func expectFull(sourceLocation: SourceLocation = #_sourceLocation, _ body: () async throws -> Void) async {
    let error = await expectStoreError(.full, sourceLocation: sourceLocation, body)
    #expect(error?.outcome == .nothingChanged, sourceLocation: sourceLocation)
    #expect(error?.isRetryable == true, sourceLocation: sourceLocation)
  }

  /// Frees the space of a file, also if another process, such as a server that was started while it was written, has
  /// inherited it and would keep it after its removal.
  private func discard(_ path: String) throws {
    let file = try FileHandle(forWritingTo: URL(filePath: path))
    try file.truncate(atOffset: 0)
    try file.close()
  }

  @Test func `a disk of tables that is full drains`() async throws {
    let disk = try TemporaryFileSystem(size: "6m")
    try PostgresServer.giveToServer(disk.path)
    let ballast = "\(disk.path)/ballast"
    try Data(count: 2 << 20).write(to: URL(filePath: ballast))
    try await PostgresServer.withOwn(settings: ["autovacuum": "off"]) { server in
      try await server.run(psql: "CREATE TABLESPACE small LOCATION '\(disk.path)'")
      let schema = try await server.newSchema()
      let database = try await PostgresDatabase(
        "\(server.connectionString) options=-cdefault_tablespace=small", schema: schema)
      let store = try await PostgresStore<[UInt8]>(in: database, name: "bytes", codec: .raw)
      let queue = try await PostgresQueue<[UInt8]>(
        in: database, name: "queue", codec: .raw,
        configuration: PostgresQueueConfiguration(policy: QueuePolicy(retryPolicy: .immediate)))
      // Long enough that each version of a row needs space, and such that it cannot be compressed.
      let value = (0..<1000).map { _ in UInt8.random(in: .min ... .max) }
      try await queue.enqueue((0..<400).map { QueueInput(value, id: $0 < 100 ? StoreKey("\($0)") : nil) })
      let leased = try await queue.receive(max: 200, lease: .seconds(600))
      var written = 0
      while written < 10_000 {
        do {
          try await store.setValue(value, forKey: StoreKey(integer: written))
          written += 1
        } catch StoreError.Code.full {
          break
        }
      }
      #expect(written > 100 && written < 10_000)
      let batch = ChangeBatch((0..<50).map { .set(StoreKey("new \($0)"), value) })
      let inputs = (0..<50).map { _ in QueueInput(value) }
      for _ in 0..<3 {
        await expectFull { try await store.apply(batch) }
        await expectFull { try await database.write { try await $0.apply(batch, to: store) } }
        await expectFull { try await queue.enqueue(inputs) }
        // Leased items are new versions of their rows.
        await expectFull { _ = try await queue.receive(max: 200, lease: .seconds(600)) }
        // So are the memories of ids.
        await expectFull { _ = try await queue.acknowledge(leased[..<100].map(\.receipt)) }
      }
      #expect(try await store.count() == written)
      #expect(try await queue.counts() == QueueCounts(waiting: 200, leased: 200))
      // These calls need no space.
      #expect(try await queue.acknowledge(leased[100...].map(\.receipt)) == [])
      try await store.removeValue(forKey: StoreKey(integer: 0))
      try await store.apply([.removeAll(StoreKey(integer: 10)...)])
      #expect(try await store.count() == 9)
      #expect(try await queue.counts() == QueueCounts(waiting: 200, leased: 100))

      // A vacuum needs some pages itself.
      try discard(ballast)
      #expect(try await queue.acknowledge(leased[..<100].map(\.receipt)) == [])
      try await server.run(psql: "VACUUM")
      #expect(try await queue.receive(max: 200, lease: .seconds(600)).count == 200)
      try await store.apply(batch)
      try await queue.enqueue(inputs)
      #expect(try await store.count() == 59)
      await database.close()
    }
  }

  /// The server ends when it cannot write its log, and recovers when there is room again.
  @Test func `a disk of the log that is full loses nothing`() async throws {
    let disk = try TemporaryFileSystem(size: "80m")
    try PostgresServer.giveToServer(disk.path)
    let rounds = max(1, ConformanceSuite.killsOfProcess / 4)
    let settings = ["min_wal_size": "32MB", "max_wal_size": "48MB"]
    try await PostgresServer.withOwn(settings: settings) { server in
      try await server.stop()
      let log = "\(try server.folder)/data/pg_wal"
      for name in try FileManager.default.contentsOfDirectory(atPath: log) {
        try FileManager.default.copyItem(atPath: "\(log)/\(name)", toPath: "\(disk.path)/\(name)")
        try PostgresServer.giveToServer("\(disk.path)/\(name)")
      }
      try FileManager.default.removeItem(atPath: log)
      try FileManager.default.createSymbolicLink(atPath: log, withDestinationPath: disk.path)
      try await server.start()
      let folder = try TemporaryFolder()
      let schema = try await server.newSchema()
      let workload = try await FaultWorkload(server.connectionString, schema: schema, log: folder.path("log"))
      try await workload.run {
        for _ in 0..<rounds {
          try await workload.makeProgress()
          let ballast = "\(disk.path)/ballast"
          #expect(FileManager.default.createFile(atPath: ballast, contents: nil))
          let file = try FileHandle(forWritingTo: URL(filePath: ballast))
          while (try? file.write(contentsOf: Data(count: 1 << 20))) != nil {}
          try file.close()
          // Until the server has used up its last file.
          try await waitUntil { (try? await server.run(psql: "SELECT pg_switch_wal()")) == nil }
          try discard(ballast)
          // The server recovers by itself, unless it gave up before there was room.
          try await waitUntil {
            if (try? await server.run(psql: "SELECT 1")) != nil { return true }
            try? await server.start()
            return false
          }
          try await workload.makeProgress()
        }
      }
      await workload.close()
      let report = try FaultReport(logs: [folder.path("log")])
      try await report.expectNothingLost(on: server, schema: schema)
      let messages = try String(contentsOfFile: "\(server.folder)/log", encoding: .utf8).split(separator: "\n")
      let ends = messages.filter { $0.contains("PANIC") && $0.contains("No space left on device") }
      #expect(ends.count >= rounds)
    }
  }
}
#endif
