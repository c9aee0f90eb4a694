#if Postgres
import Larder
import LarderPostgres
import LarderTesting
import Synchronization
import TestSupport
import Testing

/// The items that consumers have acknowledged, and what went wrong.
private final class Handled: Sendable {
  /// The numbers of the deliveries that were acknowledged for sure.
  let acknowledged = Mutex<[Int: Int]>([:])
  let problems = Mutex<[String]>([])
  /// Whether all items have been enqueued.
  let hasAll = Atomic(false)
  /// Whether the queue is empty again.
  let isOver = Atomic(false)
}

/// The results of a queue's calls whose connection is lost.
@Suite(.timeLimit(.minutes(60))) struct PostgresQueueOutcomeTests {
  /// A queue whose database is behind a proxy, in a schema of its own.
  private func withProxy(
    connections: Int = 1, _ body: (PostgresProxy, PostgresQueue<Int>, Setting) async throws -> Void
  ) async throws {
    try await Setting.runBehindProxy(connections: connections) { proxy, database, setting in
      let queue = try await PostgresQueue<Int>(
        in: database, name: "q",
        configuration: PostgresQueueConfiguration(maximumDeliveries: nil, retryPolicy: .immediate))
      try await body(proxy, queue, setting)
    }
  }

  @Test func aCallWhoseConnectionIsLostAfterItsCommitReturns() async throws {
    try await withProxy { proxy, queue, _ in
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

  enum Loss: CaseIterable {
    case terminatedBackends, cutConnections, cutBeforeCommit, cutAfterCommit
  }

  /// Calls a closure again as long as it throws an error of which the caller cannot know what it changed.
  private static func repeating<Result>(_ body: () async throws -> Result) async throws -> Result {
    while true {
      do {
        return try await body()
      } catch let error as StoreError where error.isRetryable {
        await Task.yield()
      }
    }
  }

  @Test(arguments: Loss.allCases) func noItemIsLostOrComesAgain(loss: Loss) async throws {
    try await withProxy(connections: 4) { proxy, queue, setting in
      try await expectNothingLost(in: queue, count: 120) {
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
        try await Task.sleep(for: .milliseconds(50))
      }
      #expect(try await setting.psql("SELECT state, count(*) FROM q GROUP BY state") == "4|120")
    }
  }

  @Test func aStandbyTakesOverWithEveryItem() async throws {
    let primary = try await PostgresServer()
    let standby = try await primary.addStandby(isSynchronous: true)
    let schema = try await primary.newSchema()
    let hosts = try "host=\(primary.folder),\(standby.folder) port=5432,5432 user=larder dbname=postgres"
    let database = try await PostgresDatabase("\(hosts) target_session_attrs=read-write", schema: schema)
    let queue = try await PostgresQueue<Int>(
      in: database, name: "q",
      configuration: PostgresQueueConfiguration(maximumDeliveries: nil, retryPolicy: .immediate))
    var hasFailed = false
    try await expectNothingLost(in: queue, count: 400) {
      try await Task.sleep(for: .milliseconds(100))
      guard !hasFailed else { return }
      hasFailed = true
      try await primary.stop(.immediate)
      try await standby.promote()
    }
    #expect(hasFailed)
    #expect(try await queue.count() == 0)
    await database.close()
    try await primary.close()
    try await standby.close()
  }

  /// Enqueues and consumes items while a closure disturbs, again and again, and records an issue if an item is lost or comes
  /// again after its acknowledgement.
  private func expectNothingLost(
    in queue: PostgresQueue<Int>, count: Int, during disturb: () async throws -> Void
  ) async throws {
    let handled = Handled()
    try await withThrowingTaskGroup(of: Void.self) { group in
      group.addTask {
        for number in 0..<count {
          _ = try await PostgresQueueOutcomeTests.repeating {
            try await queue.enqueue(number, id: StoreKey("\(number)"), group: StoreKey("\(number % 5)"))
          }
        }
        handled.hasAll.store(true, ordering: .relaxed)
      }
      for _ in 0..<4 { group.addTask { try await PostgresQueueOutcomeTests.consume(queue, handled) } }
      while !handled.isOver.load(ordering: .relaxed) { try await disturb() }
      while try await group.next() != nil {}
    }
    #expect(handled.problems.withLock { $0 } == [])
    #expect(handled.acknowledged.withLock { $0.count } > count / 2)
  }

  /// Consumes items until all were enqueued and the queue is empty.
  private static func consume(_ queue: PostgresQueue<Int>, _ handled: Handled) async throws {
    // An error of this task must not let the test wait forever.
    defer { handled.isOver.store(true, ordering: .relaxed) }
    while true {
      let hasAll = handled.hasAll.load(ordering: .relaxed)
      let deliveries = try await repeating { try await queue.receive(max: 3, lease: .milliseconds(500)) }
      for delivery in deliveries {
        // A receive whose connection was lost can return an earlier delivery, whose lease has ended.
        if let last = handled.acknowledged.withLock({ $0[delivery.value] }), delivery.attempt > last {
          handled.problems.withLock { $0.append("\(delivery.value) comes again") }
        }
        // If the receipt is stale, an attempt whose outcome was unknown may have acknowledged the item.
        let stale = try await repeating { try await queue.acknowledge([delivery.receipt]) }
        if stale.isEmpty { handled.acknowledged.withLock { $0[delivery.value] = delivery.attempt } }
      }
      if hasAll, try await repeating({ try await queue.count() }) == 0 { return }
      if deliveries.isEmpty { try await Task.sleep(for: .milliseconds(5)) }
    }
  }
}
#endif
