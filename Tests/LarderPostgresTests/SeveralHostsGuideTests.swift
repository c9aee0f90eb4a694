#if Postgres
import Larder
import LarderCache
import LarderCBOR
import LarderPostgres
import LarderStoreQueue
import LarderTesting
import TestSupport
import Testing

/// The Swift code of the guide `Modules/Larder/Larder.docc/SeveralHosts.md`, and what it says about queues and observers.
///
/// `Scripts/guide-code` writes the code into the guide. The address of the server stands for that of the test.
@Suite(.timeLimit(.minutes(60))) struct SeveralHostsGuideTests {
  /// Opens the database of the guide's address in a schema of a test.
  private func PostgresDatabase(_ address: String) async throws -> LarderPostgres.PostgresDatabase {
    #expect(address == "host=db.example dbname=app")
    let server = try await PostgresServer.shared
    return try await LarderPostgres.PostgresDatabase(server.connectionString, schema: server.newSchema())
  }

  @Test func `a cache`() async throws {
    // snippet.several-hosts
    let database = try await PostgresDatabase("host=db.example dbname=app")
    let prices = try await PostgresStore<Int>(in: database, name: "prices", reportsChanges: true).cached()

    try await prices.setValue(30, forKey: "lamp")  // another host reads 30 from now on, or at the latest after a second
    let price = try await prices.value(forKey: "lamp")
    // snippet.end

    #expect(price == 30)
    await database.close()
  }

  @Test func `a cache that serves stale entries`() async throws {
    let database = try await PostgresDatabase("host=db.example dbname=app")
    // snippet.what-is-fresh-and-when
    var configuration = CachedStoreConfiguration<Int>()
    configuration.whenReportsLag = .serveStale
    let prices = try await PostgresStore<Int>(in: database, name: "prices", reportsChanges: true).cached(configuration)
    // snippet.end
    try await prices.setValue(30, forKey: "lamp")
    #expect(try await prices.value(forKey: "lamp", policy: .cacheOnly) == 30)
    await database.close()
  }

  /// The states of a value that another host changes.
  @Test func `states of all hosts are observed`() async throws {
    try await Setting.run { setting in
      let other = try await LarderPostgres.PostgresDatabase(setting.server.connectionString, schema: setting.schema)
      let prices = try await PostgresStore<Int>(in: setting.database, name: "prices", reportsChanges: true)
      let writer = try await PostgresStore<Int>(in: other, name: "prices")
      let seen = Locked<[Int?]>([])
      let following = Task {
        for try await price in prices.updates(forKey: "lamp") { seen.withLock { $0.append(price) } }
      }
      try await waitUntil { seen.withLock { !$0.isEmpty } }
      for price in 1...3 {
        try await writer.setValue(price, forKey: "lamp")
        try await waitUntil { seen.withLock { $0.last == .some(price) } }
      }
      following.cancel()
      try await following.value
      await other.close()
    }
  }

  /// A consumer whose clock does not move wakes for an item of another host.
  @Test func `a consumer wakes for an item of another host`() async throws {
    try await Setting.run { setting in
      let clock = ManualClock()
      let other = try await LarderPostgres.PostgresDatabase(setting.server.connectionString, schema: setting.schema)
      func open(_ database: LarderPostgres.PostgresDatabase) async throws -> StoreQueue<PostgresStore<[UInt8]>, Int> {
        let store = try await PostgresStore<[UInt8]>(in: database, name: "jobs", codec: .raw, reportsChanges: true)
        return try await StoreQueue(store, prefix: "q/", codec: .cbor(), environment: .manual(clock))
      }
      let (consumer, producer) = (try await open(setting.database), try await open(other))
      for number in 0..<5 {
        let waiting = Task { try await consumer.nextDelivery(lease: .seconds(60)).get() }
        try await producer.enqueue(number)
        let delivery = try await waiting.valueInTime()
        #expect(delivery.value == number)
        try await consumer.acknowledge(delivery.receipt)
      }
      await other.close()
    }
  }
}
#endif
