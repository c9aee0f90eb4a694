#if Postgres
import Larder
import LarderPostgres
import TestSupport
import Testing

/// The Swift code of the guide `Modules/Stores/LarderPostgres/LarderPostgres.docc/UsingPostgresQueue.md`.
///
/// `Scripts/guide-code` writes it into the guide. The address of the server stands for that of the test.
@Suite final class PostgresQueueGuideTests: Sendable {
  private struct Job: Codable {
    var name: String
  }

  private struct OrderPlaced: Codable {
    var order: Int
  }

  private let performed = Locked<[String]>([])

  private func perform(_ job: Job) async throws {
    performed.withLock { $0.append(job.name) }
  }

  /// Opens the database of the guide's address in the schema of a test.
  private func PostgresDatabase(_ address: String) async throws -> LarderPostgres.PostgresDatabase {
    #expect(address == "host=db.example dbname=app")
    let server = try await PostgresServer.shared
    return try await LarderPostgres.PostgresDatabase(server.connectionString, schema: server.newSchema())
  }

  @Test func `a queue`() async throws {
    // snippet.using-postgresqueue
    let database = try await PostgresDatabase("host=db.example dbname=app")
    let jobs = try await PostgresQueue<Job>(in: database, name: "jobs")

    try await jobs.enqueue(Job(name: "resize"))
    try await jobs.enqueue(Job(name: "charge"), id: "payment:17")  // repeating it with this id has no effect
    try await jobs.withNext(lease: .seconds(30)) { delivery in
      try await perform(delivery.value)  // acknowledged when this returns, released when it throws
    }
    // snippet.end

    #expect(try await jobs.enqueue(Job(name: "charge"), id: "payment:17").isDuplicate)
    #expect(performed.withLock { $0 } == ["resize"])
    #expect(try await jobs.count() == 1)
    await database.close()
  }

  @Test func `an outbox`() async throws {
    try await Setting.run { setting in
      let database = setting.database
      try await setting.psql("CREATE TABLE orders(id int, item text)")
      // snippet.an-item-together-with-your-own
      let outbox = try await PostgresQueue<OrderPlaced>(in: database, name: "outbox", codec: .json())
      try await database.write { transaction in
        try await transaction.execute("INSERT INTO orders(id, item) VALUES($1, $2)", ["17", "lamp"])
        try await transaction.enqueue([QueueInput(OrderPlaced(order: 17))], in: outbox)
      }
      // snippet.end
      #expect(try await setting.psql("SELECT item FROM orders") == "lamp")
      #expect(try await setting.psql("SELECT payload ->> 'order' FROM outbox") == "17")
    }
  }

  @Test func `a worker that ships`() async throws {
    try await Setting.run { setting in
      let database = setting.database
      try await setting.psql("CREATE TABLE shipments(order_id int)")
      let outbox = try await PostgresQueue<OrderPlaced>(in: database, name: "outbox", codec: .json())
      try await outbox.enqueue((1...3).map { QueueInput(OrderPlaced(order: $0)) })
      let worker = Task {
        // snippet.exactly-once-in-the-same-database-2
        for try await result in outbox.deliveries(lease: .seconds(30)) {
          guard case .success(let delivery) = result else { continue }  // it cannot be decoded
          let order = delivery.value.order
          do {
            try await database.write { transaction in
              try await transaction.execute("INSERT INTO shipments(order_id) VALUES($1)", ["\(order)"])
              try await transaction.acknowledge(delivery.receipt, in: outbox)
            }
          } catch StoreError.Code.staleReceipt {
            // The lease has ended, so another consumer ships the order. Nothing was changed here.
          }
        }
        // snippet.end
      }
      try await waitUntil { try await outbox.count() == 0 }
      #expect(try await setting.psql("SELECT string_agg(order_id::text, ',') FROM shipments") == "1,2,3")
      worker.cancel()
      await #expect(throws: CancellationError.self) { try await worker.value }
    }
  }

  @Test func `a batch in one transaction`() async throws {
    struct TooSlow: Error {}
    try await Setting.run { setting in
      let database = setting.database
      try await setting.psql("CREATE TABLE shipments(order_id int)")
      let outbox = try await PostgresQueue<OrderPlaced>(in: database, name: "outbox", codec: .json())
      try await outbox.enqueue((1...3).map { QueueInput(OrderPlaced(order: $0)) })
      // snippet.exactly-once-in-the-same-database
      try await database.write { transaction in
        let deliveries = try await transaction.receive(max: 100, lease: .seconds(30), from: outbox)
        for order in deliveries.map(\.value.order) {
          try await transaction.execute("INSERT INTO shipments(order_id) VALUES($1)", ["\(order)"])
        }
        let stale = try await transaction.acknowledge(deliveries.map(\.receipt), in: outbox)
        guard stale.isEmpty else { throw TooSlow() }
      }
      // snippet.end
      #expect(try await setting.psql("SELECT string_agg(order_id::text, ',') FROM shipments") == "1,2,3")
      #expect(try await outbox.count() == 0)
    }
  }

  @Test func `a limit`() async throws {
    try await Setting.run { setting in
      let database = setting.database
      // snippet.capacity
      let configuration = PostgresQueueConfiguration(policy: QueuePolicy(maximumDeliveries: 10), capacity: 100_000)
      let limited = try await PostgresQueue<Job>(in: database, name: "limited", configuration: configuration)
      // snippet.end
      await expectStoreError(.full) {
        try await limited.enqueue((0...100_000).map { QueueInput(Job(name: "\($0)")) })
      }
    }
  }
}
#endif
