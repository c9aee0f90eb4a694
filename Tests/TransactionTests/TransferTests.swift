#if LMDB && Postgres && SQLite
import Foundation
import Larder
import LarderCache
import LarderJSON
import LarderLMDB
import LarderPostgres
import LarderSQLite
import LarderTesting
import TestSupport
import Testing

/// Transfers of the guide by several tasks and processes, some of which are killed.
///
/// `LARDER_ROUNDS` and `LARDER_KILL_ROUNDS` set the amount of work.
@Suite struct TransferTests {
  /// Eight tasks work on one store object.
  private func work<Base: DataStore>(_ store: Base, steps: Int) async throws where Base.Value == [UInt8] {
    let seed = SeededGenerator.seedOfProcess
    let bank = try await Bank.open(store)
    try await withThrowingTaskGroup(of: Void.self) { group in
      for task in 0..<8 {
        group.addTask {
          var remaining = steps
          try await bank.work(seed: seed &+ UInt64(task)) {
            remaining -= 1
            return remaining < 0
          }
        }
      }
      try await group.waitForAll()
    }
    try await bank.check()
    try await store.close()
  }

  @Test func `tasks over memory`() async throws {
    try await work(MemoryStore<[UInt8]>(), steps: 40)
  }

  @Test func `tasks over JSON`() async throws {
    let folder = try TemporaryFolder()
    try await work(
      try await JSONFileStore<[UInt8]>(path: folder.path("bank.json"), durability: .buffered), steps: 20)
  }

  @Test func `tasks over a cache`() async throws {
    let folder = try TemporaryFolder()
    let store = try await LMDBStore<[UInt8]>(path: folder.path("bank"), codec: .raw, durability: .buffered)
    try await work(store.cached(), steps: 40)
  }

  /// Another program has changed both entries since the cache has one of them.
  @Test func `copies of a cache are not mixed with entries`() async throws {
    let base = MemoryStore<[UInt8]>()
    let cache = base.cached()
    try base.apply([.set("a", [50]), .set("b", [50])])
    #expect(try await cache.value(forKey: "a") == [50])
    try base.apply([.set("a", [20]), .set("b", [80])])
    let sums = try await cache.transaction { tx in
      let values = try await tx.values(forKeys: ["a", "b"])
      return .discard(values.compactMap { $0?.first })
    }
    #expect(sums == [20, 80])
    // Two caches of one store are two objects.
    let view = base.cached().typed([UInt8].self, prefix: "v/", codec: .raw)
    await expectStoreError(.invalidArgument) {
      try await cache.transaction { tx in .commit(try await tx.value(forKey: "a", in: view)) }
    }
  }

  // MARK: Processes

  /// Kills four processes at a time, each with two tasks.
  private func kill(
    _ work: @escaping @Sendable (_ delay: UInt32, _ seed: UInt64) async -> Void,
    check: () async throws -> Void
  ) async throws {
    var generator = SeededGenerator(seed: SeededGenerator.seedOfProcess, purpose: "killed transfers")
    for _ in 0..<max(1, ConformanceSuite.killsOfProcess / 8) {
      await withTaskGroup(of: Void.self) { group in
        for _ in 0..<4 {
          let (delay, seed) = (UInt32.random(in: 50_000..<400_000, using: &generator), generator.next())
          group.addTask { await work(delay, seed) }
        }
      }
      try await check()
    }
  }

  fileprivate static func die(after microseconds: UInt32) {
    Thread.detachNewThread {
      usleep(microseconds)
      Foundation.kill(getpid(), SIGKILL)
    }
  }

  fileprivate static func workUntilDeath<Base: DataStore>(_ store: Base, seed: UInt64) async throws
  where Base.Value == [UInt8] {
    let bank = try await Bank.open(store)
    async let other: Void = bank.work(seed: seed &+ 1) { false }
    try await bank.work(seed: seed) { false }
    try await other
  }

  fileprivate static func open(_ scheme: String, _ path: String) async throws -> AnyDataStore<[UInt8]> {
    scheme == "lmdb"
      ? AnyDataStore(try await LMDBStore<[UInt8]>(path: path, codec: .raw, durability: .buffered))
      : AnyDataStore(try await SQLiteStore<[UInt8]>(path: path, codec: .raw, durability: .buffered))
  }

  @Test(arguments: ["lmdb", "sqlite"]) func `killed processes`(over scheme: String) async throws {
    let folder = try TemporaryFolder()
    let path = folder.path("bank")
    try await kill { delay, seed in
      await #expect(processExitsWith: .signal(SIGKILL)) {
        [scheme = scheme as String, path = path as String, delay = delay as UInt32, seed = seed as UInt64] in
        TransferTests.die(after: delay)
        try await TransferTests.workUntilDeath(try await TransferTests.open(scheme, path), seed: seed)
      }
    } check: {
      let store = try await TransferTests.open(scheme, path)
      try await Bank.open(store).check()
      try await store.close()
    }
  }

  #if Postgres
  fileprivate static func open(
    _ connection: String, schema: String, isSerializable: Bool
  ) async throws -> (PostgresDatabase, PostgresStore<[UInt8]>) {
    let database = try await PostgresDatabase(
      connection, schema: schema, isolation: isSerializable ? .serializable : .readCommitted)
    return (database, try await PostgresStore<[UInt8]>(in: database, codec: .raw))
  }

  @Test(.limitedParallelism, arguments: [true, false])
  func `killed processes over Postgres`(_ isSerializable: Bool) async throws {
    let server = try await PostgresServer.shared
    let (connection, schema) = (server.connectionString, try await server.newSchema())
    // Otherwise, four programs would create the tables at the same time.
    let (database, store) = try await TransferTests.open(connection, schema: schema, isSerializable: isSerializable)
    let bank = try await Bank.open(store)
    try await kill { delay, seed in
      await #expect(processExitsWith: .signal(SIGKILL)) {
        [
          connection = connection as String, schema = schema as String, isSerializable = isSerializable as Bool,
          delay = delay as UInt32, seed = seed as UInt64
        ] in
        let (_, store) = try await TransferTests.open(connection, schema: schema, isSerializable: isSerializable)
        TransferTests.die(after: delay)
        try await TransferTests.workUntilDeath(store, seed: seed)
      }
    } check: {
      try await bank.check()
    }
    await database.close()
  }
  #endif
}
#endif
