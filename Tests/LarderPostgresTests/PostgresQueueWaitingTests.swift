#if Postgres
import Larder
import LarderCBOR
import LarderPostgres
import LarderTesting
import TestSupport
import Testing

/// The cost of waiting consumers, and how they outlast a server that is away.
@Suite(.timeLimit(.minutes(60))) struct PostgresQueueWaitingTests {
  /// Sixteen waiting consumers of one object look once in each interval, and change nothing.
  @Test func `idle consumers look together and only read`() async throws {
    try await PostgresServer.withOwn(settings: ["autovacuum": "off"]) { server in
      try await Setting.runBehindProxy(on: server, connections: 4) { proxy, database, setting in
        let clock = ManualClock()
        let queue = try await PostgresQueue<Int>(
          in: database, name: "q", codec: .cbor(), environment: .manual(clock))
        try await queue.enqueue([QueueInput(1, after: .seconds(3600)), QueueInput(2)])
        _ = try await queue.receive(lease: .seconds(3600))
        let waiting = (0..<16).map { _ in Task { try await queue.nextDelivery(lease: .seconds(60)).get().value } }
        try await clock.waitForSleepers(16)
        let listening = """
          SELECT count(*) FROM pg_stat_activity
          WHERE application_name = '\(setting.schema)' AND (query LIKE 'LISTEN%' OR query LIKE '%pg_notify(%')
          """
        try await waitUntil { try await setting.psql(listening) != "0" }
        // The object looks once more when it listens.
        for _ in 0..<2 {
          clock.advance(by: .seconds(1))
          try await clock.waitForSleepers(16)
        }
        // So that the parts of an answer arrive together.
        proxy.delay(toServer: .milliseconds(1), toClient: .milliseconds(1))
        let nextNumber = "SELECT pg_snapshot_xmax(pg_current_snapshot())"
        let (before, number) = (proxy.roundTrips, try await setting.psql(nextNumber))
        for _ in 0..<20 {
          clock.advance(by: .seconds(1))
          try await clock.waitForSleepers(16)
        }
        // A last look may still be under way.
        #expect((19...20).contains(proxy.roundTrips - before))
        #expect(try await setting.psql(nextNumber) == number)
        // The next one is due.
        clock.advance(by: .seconds(3600))
        try await database.write { _ = try await $0.enqueue((3...16).map { QueueInput($0) }, in: queue) }
        var values: [Int] = []
        for task in waiting { values.append(try await task.valueInTime()) }
        #expect(values.sorted() == Array(1...16))
      }
    }
  }

  /// The consumer that looks for all others hands the look over if it is cancelled.
  @Test func `a consumer that is cancelled stops no other`() async throws {
    try await Setting.run { setting in
      let clock = ManualClock()
      let queue = try await PostgresQueueTests.open(setting, clock)
      try await queue.enqueue(1, after: .milliseconds(300))
      let waiting = (0..<4).map { _ in Task { try await queue.nextDelivery(lease: .seconds(60)).get().value } }
      try await clock.waitForSleepers(4)
      for task in waiting.dropLast() {
        task.cancel()
        await #expect(throws: CancellationError.self) { try await task.value }
      }
      // Again and again, because a consumer that is just looking sees the time before an advance, and plans its next look from
      // the time after it. It also looks when its connection begins to listen to notifications.
      #expect(try await waiting[3].valueInTime { clock.advance(by: .milliseconds(300)) } == 1)
    }
  }

  /// The remains of others are removed, although no item is due.
  @Test func `an idle consumer removes what is no longer needed`() async throws {
    try await Setting.run { setting in
      let clock = ManualClock()
      let queue = try await PostgresQueueTests.open(setting, clock)
      try await queue.enqueue(1, id: "a")
      try await queue.acknowledge(#require(try await queue.receive(lease: .seconds(60))).receipt)
      let waiting = Task { try await queue.nextDelivery(lease: .seconds(60)).get().value }
      try await clock.waitForSleepers(1)
      #expect(try await setting.psql("SELECT count(*) FROM q") == "1")
      clock.advance(by: .seconds(301))
      // A look that has begun before sees the earlier time.
      try await waitUntil {
        clock.advance(by: .seconds(1))
        return try await setting.psql("SELECT count(*) FROM q") == "0"
      }
      waiting.cancel()
      await #expect(throws: CancellationError.self) { try await waiting.value }
    }
  }

  @Test func `consumers continue after a restart of the server`() async throws {
    try await PostgresServer.withOwn { server in
      try await Setting.run(on: server) { setting in
        let queue = try await PostgresQueue<Int>(in: setting.database, name: "q")
        let first = Locked<[Int]>([])
        let second = Locked<[Int]>([])
        let loop = Task {
          for try await result in queue.deliveries(lease: .seconds(600)) {
            let delivery = try result.get()
            first.withLock { $0.append(delivery.value) }
            try await queue.acknowledge(delivery.receipt)
          }
        }
        let calls = Task {
          while true {
            try await queue.withNext(lease: .seconds(600)) { delivery in
              second.withLock { $0.append(delivery.value) }
            }
          }
        }
        var count = 0
        for _ in 0..<2 {
          try await server.stop()
          // Long enough for both to notice.
          try await Task.sleep(for: .seconds(2))
          try await server.start()
          try await queue.enqueue([QueueInput(count), QueueInput(count + 1)])
          count += 2
          try await waitUntil { try await queue.count() == 0 }
        }
        #expect((first.withLock { $0 } + second.withLock { $0 }).sorted() == Array(0..<count))
        loop.cancel()
        calls.cancel()
        await #expect(throws: CancellationError.self) { try await loop.value }
        await #expect(throws: CancellationError.self) { try await calls.value }
      }
    }
  }
}
#endif
