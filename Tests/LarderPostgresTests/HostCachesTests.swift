#if Postgres
import Larder
import LarderCache
import LarderPostgres
import LarderTesting
import TestSupport
import Testing

/// Caches of two hosts over the same store.
@Suite(.limitedParallelism, .timeLimit(.minutes(60))) struct HostCachesTests {
  /// A cache over a store that reports its changes, with a database of its own.
  private struct CachedHost: Sendable {
    let database: PostgresDatabase
    let store: CachedStore<PostgresStore<Int>>

    init(
      _ setting: Setting, timeout: Duration = .seconds(30), configuration: CachedStoreConfiguration<Int> = .init()
    ) async throws {
      database = try await PostgresDatabase(
        setting.server.connectionString, schema: setting.schema, connections: 4, timeout: timeout)
      store = try await PostgresStore<Int>(in: database, name: "users", reportsChanges: true).cached(configuration)
    }

    /// Waits until a cached entry is used.
    func waitForHit(of key: StoreKey) async throws {
      try await waitUntil {
        _ = try await store.value(forKey: key)
        return try await store.value(forKey: key, policy: .cacheOnly) != nil
      }
    }
  }

  @Test func `a value that another host has replaced is not served`() async throws {
    try await Setting.run { setting in
      let (first, second) = (try await CachedHost(setting), try await CachedHost(setting))
      try await first.store.setValue(0, forKey: "a")
      for value in 1...10 {
        try await second.waitForHit(of: "a")
        try await first.store.setValue(value, forKey: "a")
        try await waitUntil { try await second.store.value(forKey: "a") == value }
        // The writer's own entry stays.
        #expect(try await first.store.value(forKey: "a", policy: .cacheOnly) != value - 1)
      }
      #expect(second.store.statistics().hits > 0)
      await first.database.close()
      await second.database.close()
    }
  }

  @Test func `a transaction of the same database is seen when it returns`() async throws {
    try await Setting.run { setting in
      let host = try await CachedHost(setting)
      try await host.store.setValue(0, forKey: "a")
      for value in 1...20 {
        _ = try await host.store.value(forKey: "a")
        try await host.database.write { try await $0.setValue(value, forKey: "a", in: host.store.base) }
        #expect(try await host.store.value(forKey: "a") == value)
      }
      await host.database.close()
    }
  }

  @Test func `nothing is served while the server is away`() async throws {
    try await PostgresServer.withOwn { server in
      try await Setting.run(on: server) { setting in
        var stale = CachedStoreConfiguration<Int>()
        stale.whenReportsLag = .serveStale
        let host = try await CachedHost(setting, timeout: .seconds(30))
        let other = try await CachedHost(setting, timeout: .seconds(30), configuration: stale)
        try await host.store.setValue(1, forKey: "a")
        // Earlier writes are reported when the reader has looked for the first time.
        let observation = other.store.base.observe(.all) { _ in }
        try await waitUntil { observation.lag < .seconds(1) }
        try await host.waitForHit(of: "a")
        try await other.waitForHit(of: "a")
        try await server.stop()
        try await waitUntil {
          do {
            _ = try await host.store.value(forKey: "a")
            return false
          } catch is StoreError {
            return true
          }
        }
        #expect(try await host.store.value(forKey: "a", policy: .cacheOnly) == nil)
        #expect(try await other.store.value(forKey: "a") == 1)
        try await server.start()
        try await host.waitForHit(of: "a")
        await host.database.close()
        await other.database.close()
      }
    }
  }

  /// A counter that one host raises.
  ///
  /// A read that begins a second after a write has returned gets its value or a later one.
  @Test func `no read is older than a second`() async throws {
    try await Setting.runBehindProxy { proxy, _, setting in
      let writer = try await CachedHost(setting)
      let database = try await PostgresDatabase(proxy.connectionString, schema: setting.schema, connections: 4)
      let reader = try await PostgresStore<Int>(in: database, name: "users").cached()
      let written = Locked<[(value: Int, time: ContinuousClock.Instant)]>([])
      let raising = Task {
        for value in 1...400 {
          try await writer.store.setValue(value, forKey: "n")
          let time = ContinuousClock.now
          written.withLock { $0.append((value, time)) }
          if value.isMultiple(of: 50) { await proxy.cutAll() }
          try await Task.sleep(for: .milliseconds(5))
        }
      }
      var (reads, isDone) = (0, false)
      while !isDone {
        let limit = ContinuousClock.now - .seconds(1)
        isDone = written.withLock { $0.last?.value == 400 }
        let least = written.withLock { $0.last { $0.time < limit }?.value ?? 0 }
        let value = try await reader.value(forKey: "n") ?? 0
        #expect(value >= least)
        reads += 1
        if reads.isMultiple(of: 100) { await Task.yield() }
      }
      try await raising.value
      #expect(reader.statistics().hits > 0)
      await writer.database.close()
      await database.close()
    }
  }
}
#endif
