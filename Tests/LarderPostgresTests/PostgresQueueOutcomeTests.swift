#if Postgres
import Larder
import LarderPostgres
import LarderTesting
import TestSupport
import Testing

/// The round trips of a queue's calls, and the results of those whose connection is lost.
@Suite(.timeLimit(.minutes(60))) struct PostgresQueueOutcomeTests {
  /// A queue whose database is behind a proxy, in a schema of its own.
  private func withProxy(
    capacity: Int? = nil, _ body: (PostgresProxy, PostgresQueue<Int>, PostgresDatabase, Setting) async throws -> Void
  ) async throws {
    try await Setting.runBehindProxy { proxy, database, setting in
      let queue = try await PostgresQueue<Int>(
        in: database, name: "q",
        configuration: PostgresQueueConfiguration(
          policy: QueuePolicy(maximumDeliveries: nil, retryPolicy: .immediate), capacity: capacity))
      try await body(proxy, queue, database, setting)
    }
  }

  @Test(arguments: [nil, 3000]) func `each call takes the round trips of the guide`(capacity: Int?) async throws {
    try await withProxy(capacity: capacity) { proxy, queue, database, setting in
      // The connections are made, also the one that listens.
      try await queue.enqueue(0)
      if let delivery = try await queue.receive(lease: .seconds(600)) { try await queue.acknowledge(delivery.receipt) }
      _ = try await queue.count()
      let listening = """
        SELECT count(*) FROM pg_stat_activity
        WHERE application_name = '\(setting.schema)' AND (query LIKE 'LISTEN%' OR query LIKE '%pg_notify(%')
        """
      try await waitUntil { try await setting.psql(listening) != "0" }
      // So that the parts of a long flight arrive together, also on a machine with more to do.
      proxy.delay(toServer: .milliseconds(100), toClient: .zero)
      func expect<Result>(
        _ count: Int, sourceLocation: SourceLocation = #_sourceLocation, _ body: () async throws -> Result
      ) async throws -> Result {
        let before = proxy.roundTrips
        let result = try await body()
        #expect(proxy.roundTrips - before == count, sourceLocation: sourceLocation)
        return result
      }
      let inputs = (1...1000).map { number in
        QueueInput(
          number, id: number.isMultiple(of: 2) ? StoreKey("\(number)") : nil,
          group: number.isMultiple(of: 5) ? StoreKey("\(number)") : nil)
      }
      _ = try await expect(1) { try await queue.enqueue(inputs) }
      _ = try await expect(1) { try await queue.peek(max: 5) }
      let single = try await expect(1) { try await queue.receive(lease: .seconds(600)) }
      let rest = try await expect(1) { try await queue.receive(max: 1000, lease: .seconds(600)) }
      #expect(rest.count == 999)
      let receipts = ([try #require(single)] + rest).map(\.receipt)
      _ = try await expect(1) { try await queue.extend(receipts, lease: .seconds(300)) }
      _ = try await expect(1) { try await queue.release(Array(receipts[..<10]), after: .zero, countsAsAttempt: true) }
      _ = try await expect(1) { try await queue.acknowledge(Array(receipts[10...])) }
      _ = try await expect(1) { try await queue.nextDelivery(lease: .seconds(600)).get() }
      _ = try await expect(1) { try await queue.receive(max: 1000, lease: .seconds(600)) }
      _ = try await expect(1) { try await queue.receive(max: 1000, lease: .seconds(600)) }
      _ = try await expect(1) { try await queue.counts() }
      try await expect(capacity == nil ? 1 : 3) { try await queue.setValue(1, forKey: "new") }
      try await expect(capacity == nil ? 2 : 3) { try await queue.update(["new"]) { $0[0] = 2 } }
      try await expect(3) {
        try await database.write { transaction in _ = try await transaction.enqueue([QueueInput(1)], in: queue) }
      }
    }
  }

  @Test func `a call whose connection is lost after its commit returns`() async throws {
    try await withProxy { proxy, queue, _, _ in
      for round in 1...ConformanceSuite.killsOfProcess {
        proxy.cut(.afterCommit)
        let results = try await queue.enqueue(
          [QueueInput(round, group: "g"), QueueInput(-round, id: StoreKey("\(round)"))])
        #expect(results.map(\.isDuplicate) == [false, false])
        proxy.cut(.afterCommit)
        let deliveries = try await queue.receive(max: 9, lease: .seconds(600))
        #expect(deliveries.map(\.value) == [round, -round])
        proxy.cut(.afterCommit)
        #expect(try await queue.extend(deliveries.map(\.receipt), lease: .seconds(300)).isEmpty)
        proxy.cut(.afterCommit)
        #expect(try await queue.release([deliveries[0].receipt], after: .zero, countsAsAttempt: true).isEmpty)
        let again = try await queue.receive(max: 9, lease: .seconds(600))
        #expect(again.map(\.value) == [round] && again.map(\.attempt) == [2])
        proxy.cut(.afterCommit)
        #expect(try await queue.acknowledge([deliveries[1].receipt] + again.map(\.receipt)).isEmpty)
        #expect(try await queue.counts() == QueueCounts())
      }
    }
  }
}
#endif
