#if Postgres
import Foundation
import Larder
import LarderCBOR
import LarderPostgres
import LarderTesting
import TestSupport
import Testing

/// Tests of what the conformance suites of queues don't know: transactions, opening and the server's time.
@Suite(.timeLimit(.minutes(60))) struct PostgresQueueTests {
  static func open(
    _ setting: Setting, _ clock: ManualClock, name: String = "q",
    configuration: PostgresQueueConfiguration = PostgresQueueConfiguration()
  ) async throws -> PostgresQueue<Int> {
    try await PostgresQueue(
      in: setting.database, name: name, codec: .cbor(), configuration: configuration, environment: .manual(clock))
  }

  // MARK: Transactions

  @Test(arguments: ["enqueue", "transaction", "update"])
  func `the first write records a codec that adopts another`(call: String) async throws {
    try await Setting.run { setting in
      let old = try await PostgresQueue<Int>(in: setting.database, name: "q", codec: .cbor())
      try await old.enqueue([QueueInput(1, id: "a")])
      let codec = try CBORCodec<Int>().versioned(1, ValueMigration(from: 0, .cbor(Int.self)) { $0 })
      let queue = try await PostgresQueue<Int>(in: setting.database, name: "q", codec: codec)
      try await queue.update(["missing"]) { _ in }
      #expect(try await setting.psql("SELECT codec FROM larder_queues") == "cbor", "nothing was written")
      switch call {
      case "enqueue": try await queue.enqueue([QueueInput(2)])
      case "transaction": try await setting.database.write { try await $0.enqueue([QueueInput(2)], in: queue) }
      default: try await queue.update(["a"]) { $0[0] = 2 }
      }
      #expect(try await setting.psql("SELECT codec FROM larder_queues") == codec.name)
    }
  }

  @Test func `an older program replaces no item`() async throws {
    try await Setting.run { setting in
      let versions = try VersionDeployment()
      func open(
        _ codec: VersionedCodec<JSONCodec<VersionDeployment.User>>
      ) async throws -> PostgresQueue<VersionDeployment.User> {
        try await PostgresQueue(in: setting.database, name: "q", codec: codec)
      }
      let old = try await open(versions.old)
      let first = try await open(versions.first)
      try await old.enqueue([QueueInput(VersionDeployment.User("Ada"), id: "a")])
      try await first.setValue(VersionDeployment.User("Bob", email: "lost"), forKey: "b")
      let second = try await open(versions.second)
      try await second.enqueue([QueueInput(VersionDeployment.User("Cleo", email: "c"), id: "c")])
      await expectStoreError(.versionMismatch) { try await old.setValue(VersionDeployment.User("x"), forKey: "c") }
      await expectStoreError(.versionMismatch) { try await old.update("b") { $0?.name = "x" } }
      await expectStoreError(.versionMismatch) { try await open(versions.old) }
      // An item that is added replaces nothing, and one that is acknowledged is done.
      try await old.enqueue([QueueInput(VersionDeployment.User("Dora"))])
      let delivery = try await old.receive(max: 1, lease: .seconds(60)).first
      #expect(delivery?.value == VersionDeployment.User("Ada"))
      if let delivery { try await old.acknowledge(delivery.receipt) }
      try await versions.refusedOnce {
        try await first.setValue(VersionDeployment.User("Bob", email: "b"), forKey: "b")
      }
      #expect(try await second.value(forKey: "b")?.email == "b")
    }
  }

  @Test func `an item is enqueued together with other data`() async throws {
    struct Refused: Error {}
    try await Setting.run { setting in
      let orders = try await PostgresStore<String>(in: setting.database, name: "orders")
      let outbox = try await PostgresQueue<Int>(in: setting.database, name: "outbox")
      try await setting.database.write { transaction in
        try await transaction.setValue("books", forKey: "17", in: orders)
        let results = try await transaction.enqueue(
          [QueueInput(17, id: "a", group: "g"), QueueInput(18), QueueInput(19, id: "a")], in: outbox)
        #expect(results.map(\.isDuplicate) == [false, false, true])
        #expect(try await outbox.receive(max: 9, lease: .seconds(60)).isEmpty)
      }
      await #expect(throws: Refused.self) {
        try await setting.database.write { transaction in
          try await transaction.setValue("none", forKey: "18", in: orders)
          try await transaction.enqueue([QueueInput(20)], in: outbox)
          throw Refused()
        }
      }
      #expect(try await orders.keys(in: .all, limit: 9, order: .ascending) == ["17"])
      #expect(try await outbox.receive(max: 9, lease: .seconds(60)).map(\.value) == [17, 18])
    }
  }

  @Test func `a queue of another database is refused`() async throws {
    try await Setting.run { setting in
      try await Setting.run { other in
        let queue = try await PostgresQueue<Int>(in: other.database, name: "q")
        await expectStoreError(.invalidArgument) {
          try await setting.database.write { try await $0.enqueue([QueueInput(1)], in: queue) }
        }
        #expect(try await queue.count() == 0)
      }
    }
  }

  /// A transaction that began to enqueue earlier must not put its item before one that was already delivered.
  @Test func `the order of a group is that of its transactions`() async throws {
    try await Setting.run { setting in
      let queue = try await PostgresQueue<Int>(in: setting.database, name: "q")
      let (isEnqueued, mayCommit) = (Gate(), Gate())
      async let first: Void = setting.database.write { transaction in
        try await transaction.enqueue([QueueInput(1, group: "g")], in: queue)
        isEnqueued.open()
        try await mayCommit.wait()
      }
      try await isEnqueued.wait()
      async let second = queue.enqueue(2, group: "g")
      // Other groups, and items without one, don't wait.
      try await queue.enqueue(3, group: "h")
      try await queue.enqueue(4)
      #expect(try await queue.receive(max: 9, lease: .seconds(60)).map(\.value) == [3, 4])
      try await setting.waitForBlocked(1)
      mayCommit.open()
      _ = try await (first, second)
      let delivery = try #require(try await queue.receive(max: 9, lease: .seconds(60)).first)
      #expect(delivery.value == 1)
      try await queue.acknowledge(delivery.receipt)
      #expect(try await queue.receive(max: 9, lease: .seconds(60)).map(\.value) == [2])
    }
  }

  /// An item that is enqueued while the one before it is acknowledged must not wait forever.
  @Test func `an item enqueued during an acknowledgement is not forgotten`() async throws {
    try await Setting.run { setting in
      let queue = try await PostgresQueue<Int>(in: setting.database, name: "q")
      try await queue.enqueue(1, group: "g")
      let receipt = try #require(try await queue.receive(lease: .seconds(600))).receipt
      let (isEnqueued, mayCommit) = (Gate(), Gate())
      async let enqueuing: Void = setting.database.write { transaction in
        try await transaction.enqueue([QueueInput(2, group: "g")], in: queue)
        isEnqueued.open()
        try await mayCommit.wait()
      }
      try await isEnqueued.wait()
      async let acknowledging: Void = queue.acknowledge(receipt)
      try await setting.waitForBlocked(1)
      mayCommit.open()
      _ = try await (enqueuing, acknowledging)
      #expect(try await queue.receive(max: 9, lease: .seconds(60)).map(\.value) == [2])
    }
  }

  // MARK: Rules

  @Test func `dead letters are removed after their retention`() async throws {
    try await Setting.run { setting in
      let clock = ManualClock()
      let queue = try await PostgresQueueTests.open(
        setting, clock,
        configuration: PostgresQueueConfiguration(
          policy: QueuePolicy(maximumDeliveries: 1, deadLetterRetention: .seconds(400))))
      try await queue.enqueue(1, id: "a", group: "g")
      try await queue.release(#require(try await queue.receive(lease: .seconds(60))).receipt)
      clock.advance(by: .seconds(399))
      #expect(try await queue.counts().dead == 1)
      clock.advance(by: .seconds(1))
      #expect(try await queue.counts().dead == 0)
      #expect(try await queue.deadLetters().isEmpty)
      #expect(try await queue.receive(lease: .seconds(60)) == nil)
      #expect(try await setting.psql("SELECT count(*) FROM q") == "0", "not even the lock of the group is left")
    }
  }

  @Test func `an item that may have crashed its consumer is received alone`() async throws {
    try await Setting.run { setting in
      let clock = ManualClock()
      let queue = try await PostgresQueueTests.open(setting, clock)
      try await queue.enqueue((0..<5).map { QueueInput($0) })
      for _ in 0..<2 {
        #expect(try await queue.receive(max: 1, lease: .seconds(60)).map(\.value) == [0])
        clock.advance(by: .seconds(60))
      }
      let suspects = try await queue.receive(max: 5, lease: .seconds(60))
      #expect(suspects.map(\.value) == [0] && suspects.map(\.isSuspect) == [true])
      #expect(try await queue.receive(max: 5, lease: .seconds(60)).map(\.value) == [1, 2, 3, 4])
    }
  }

  /// A removed item gives its id free again, unless an earlier item of that id is remembered.
  @Test func `a removal forgets no earlier acknowledgement`() async throws {
    try await Setting.run { setting in
      let clock = ManualClock()
      let queue = try await PostgresQueueTests.open(setting, clock)
      let first = try await queue.enqueue(1, id: "a")
      try await queue.acknowledge(#require(try await queue.receive(lease: .seconds(60))).receipt)
      try await queue.setValue(2, forKey: "a")
      #expect(try await queue.count() == 1)
      try await queue.removeValue(forKey: "a")
      let again = try await queue.enqueue(3, id: "a")
      #expect(again.isDuplicate && again.sequence == first.sequence)
      clock.advance(by: .seconds(300))
      #expect(try await queue.enqueue(4, id: "a").isDuplicate == false)
    }
  }

  @Test func `a program without its key counts no delivery`() async throws {
    try await Setting.run { setting in
      let key = NonceCodec<CBORCodec<Int>>.Switch()
      let clock = ManualClock()
      let queue = try await PostgresQueue(
        in: setting.database, name: "q", codec: NonceCodec(.cbor(Int.self), key: key),
        configuration: PostgresQueueConfiguration(policy: QueuePolicy(maximumDeliveries: 1, retryPolicy: .immediate)),
        environment: .manual(clock))
      try await queue.enqueue([QueueInput(1, id: "a"), QueueInput(2)])
      key.isOn = false
      for _ in 0..<5 {
        await expectStoreError(.keyUnavailable) { try await queue.receive(max: 9, lease: .seconds(60)) }
        await expectStoreError(.keyUnavailable) { try await queue.nextDelivery(lease: .seconds(60)) }
      }
      #expect(try await queue.counts() == QueueCounts(waiting: 2))
      key.isOn = true
      let deliveries = try await queue.receive(max: 9, lease: .seconds(60))
      #expect(deliveries.map(\.value).sorted() == [1, 2] && deliveries.map(\.attempt) == [1, 1])
      _ = try await queue.release(deliveries.map(\.receipt))
      #expect(try await queue.requeueDeadLetters() == 2)
      #expect(try await queue.receive(max: 9, lease: .seconds(60)).map(\.value).sorted() == [1, 2])
    }
  }

  @Test func `invalid rules are refused`() async throws {
    try await Setting.run { setting in
      for configuration in [
        PostgresQueueConfiguration(policy: QueuePolicy(maximumDeliveries: 0)),
        PostgresQueueConfiguration(policy: QueuePolicy(duplicateWindow: .seconds(-1))),
        PostgresQueueConfiguration(pollInterval: .zero), PostgresQueueConfiguration(capacity: 0),
        PostgresQueueConfiguration(policy: QueuePolicy(deadLetterRetention: .seconds(-1))),
        PostgresQueueConfiguration(policy: QueuePolicy(retryPolicy: RetryPolicy(jitter: 2))),
      ] {
        await expectStoreError(.invalidArgument) {
          try await PostgresQueueTests.open(setting, ManualClock(), configuration: configuration)
        }
      }
    }
  }

  @Test func `long durations and many items are accepted`() async throws {
    try await Setting.run { setting in
      let queue = try await PostgresQueue<Int>(in: setting.database, name: "q")
      try await queue.enqueue(0, after: .seconds(Int64.max / 2))
      try await queue.enqueue((1...1500).map { QueueInput($0, group: StoreKey("\($0 % 30)")) })
      var count = 0
      while true {
        let deliveries = try await queue.receive(max: 1200, lease: .seconds(Int64.max / 2))
        if deliveries.isEmpty { break }
        count += deliveries.count
        #expect(try await queue.acknowledge(deliveries.map(\.receipt)).isEmpty)
      }
      #expect(count == 1500)
      #expect(try await queue.counts() == QueueCounts(delayed: 1))
    }
  }

  // MARK: Opening

  @Test func `objects that create a queue at once all succeed`() async throws {
    try await Setting.run(connections: 8) { setting in
      try await withThrowingTaskGroup(of: Void.self) { group in
        for number in 0..<8 {
          group.addTask {
            try await PostgresQueue<Int>(in: setting.database, name: "q").enqueue(number)
          }
        }
        try await group.waitForAll()
      }
      let queue = try await PostgresQueue<Int>(in: setting.database, name: "q")
      #expect(try await queue.count() == 8)
    }
  }

  @Test func `what is no such queue is refused`() async throws {
    try await Setting.run { setting in
      await expectStoreError(.notFound) {
        try await PostgresQueue<Int>(in: setting.database, name: "q", createsIfMissing: false)
      }
      let provider = PostgresQueueProvider()
      for (location, code) in [("#\(setting.schema)/q", StoreError.Code.notFound), ("", .invalidArgument)] {
        let url = try StoreURL("postgres-queue:\(setting.server.connectionString)\(location)")
        await expectStoreError(code) {
          try await provider.open(url, options: StoreOptions(createsIfMissing: false), newCodecName: nil)
        }
      }
      for name in ["", "larder_q", String(repeating: "n", count: 64)] {
        await expectStoreError(.invalidArgument) { try await PostgresQueue<Int>(in: setting.database, name: name) }
      }
      _ = try await PostgresStore<Int>(in: setting.database, name: "store")
      await expectStoreError(.unsupported) { try await PostgresQueue<Int>(in: setting.database, name: "store") }
      _ = try await PostgresQueue<Int>(in: setting.database, name: "q")
      await expectStoreError(.unsupported) { try await PostgresStore<Int>(in: setting.database, name: "q") }
      await expectStoreError(.versionMismatch) {
        try await PostgresQueue<Int>(in: setting.database, name: "q", codec: .json())
      }
      #expect(try await setting.database.storeNames() == ["store"])
      try await setting.psql("UPDATE larder_queues SET format = 2")
      await expectStoreError(.versionMismatch) { try await PostgresQueue<Int>(in: setting.database, name: "q") }
    }
  }

  @Test func `names with quotation marks are names`() async throws {
    try await Setting.run { setting in
      let queue = try await PostgresQueue<Int>(in: setting.database, name: #"it's "my" queue; $1"#)
      try await queue.enqueue(1)
      #expect(try await queue.receive(lease: .seconds(1))?.value == 1)
    }
  }

  // MARK: Time and waiting

  /// Without an injected time, leases end by the clock of the server.
  @Test func `the time is that of the server`() async throws {
    try await Setting.run { setting in
      let queue = try await PostgresQueue<Int>(in: setting.database, name: "q")
      try await queue.enqueue(1)
      let delivery = try #require(try await queue.receive(lease: .milliseconds(1)))
      #expect(abs(delivery.enqueueDate.timeIntervalSinceNow) < 60)
      // The wait ends when the lease does.
      let again = try await queue.nextDelivery(lease: .seconds(60)).get()
      #expect(again.attempt == 2)
      await expectStoreError(.staleReceipt) { try await queue.acknowledge(delivery.receipt) }
      try await queue.acknowledge(again.receipt)
    }
  }

  /// If the clock of the server was set back by a year, leases still end after their durations.
  @Test func `a clock that was set back keeps no item`() async throws {
    try await Setting.run { setting in
      let clock = ManualClock()
      let queue = try await PostgresQueueTests.open(setting, clock)
      try await queue.enqueue([QueueInput(1), QueueInput(2, after: .seconds(60))])
      #expect(try await queue.receive(lease: .seconds(60))?.value == 1)
      clock.advance(by: .seconds(-365 * 86_400))
      #expect(try await queue.receive(max: 9, lease: .seconds(60)).isEmpty)
      clock.advance(by: .seconds(61))
      #expect(try await queue.receive(max: 9, lease: .seconds(60)).map(\.value) == [1, 2])
    }
  }

  /// An id that was remembered while the clock was a year ahead is free after the window, counted from the first opening or
  /// enqueue that sees the right time.
  @Test(arguments: [true, false]) func `an ID of a clock that was ahead is free after the window`(_ restarts: Bool)
    async throws
  {
    try await Setting.run { setting in
      let (clock, wrongClock) = (ManualClock(), ManualClock())
      wrongClock.advance(by: .seconds(365 * 86_400))
      var queue = try await PostgresQueueTests.open(setting, clock)
      let wrong = try await PostgresQueueTests.open(setting, wrongClock)
      try await wrong.enqueue([QueueInput(1, id: "a"), QueueInput(2, id: "b")])
      for delivery in try await wrong.receive(max: 9, lease: .seconds(60)) {
        try await wrong.acknowledge(delivery.receipt)
      }
      // The item is set and removed while its id is remembered.
      try await wrong.setValue(3, forKey: "b")
      try await wrong.close()
      try await queue.removeValue(forKey: "b")
      for _ in 0..<3 {
        if restarts { queue = try await PostgresQueueTests.open(setting, clock) }
        #expect(try await queue.enqueue(1, id: "a").isDuplicate)
        #expect(try await queue.enqueue(1, id: "b").isDuplicate)
        clock.advance(by: .seconds(100))
      }
      #expect(try await !queue.enqueue(1, id: "a").isDuplicate)
      #expect(try await !queue.enqueue(1, id: "b").isDuplicate)
    }
  }

  /// Dead letters, and delays of items that are behind others of their groups.
  @Test func `a clock that was ahead keeps nothing else`() async throws {
    try await Setting.run { setting in
      let clock = ManualClock()
      let configuration = PostgresQueueConfiguration(
        policy: QueuePolicy(maximumDeliveries: 1, deadLetterRetention: .seconds(3600)))
      let first = try await PostgresQueueTests.open(setting, clock, configuration: configuration)
      clock.advance(by: .seconds(365 * 86_400))
      try await first.enqueue([
        QueueInput(1), QueueInput(2, group: "g"), QueueInput(3, after: .seconds(60), group: "g"),
      ])
      let deliveries = try await first.receive(max: 9, lease: .seconds(9999))
      #expect(deliveries.map(\.value) == [1, 2])
      try await first.release(deliveries[0].receipt)
      clock.advance(by: .seconds(-365 * 86_400))
      let queue = try await PostgresQueueTests.open(setting, clock, configuration: configuration)
      #expect(try await queue.deadLetters().map(\.date) == [clock.date])
      try await queue.acknowledge(deliveries[1].receipt)
      #expect(try await queue.receive(lease: .seconds(60)) == nil)
      clock.advance(by: .seconds(60))
      let delayed = try #require(try await queue.receive(lease: .seconds(9999)))
      #expect(delayed.value == 3)
      clock.advance(by: .seconds(3539))
      #expect(try await queue.counts().dead == 1)
      clock.advance(by: .seconds(1))
      #expect(try await queue.receive(lease: .seconds(60)) == nil)
      #expect(try await queue.counts().dead == 0)
    }
  }

  /// The clocks don't move, so only a notification can wake the consumers.
  @Test func `consumers of other objects are notified`() async throws {
    try await Setting.run { setting in
      let database = try await PostgresDatabase(setting.server.connectionString, schema: setting.schema)
      let clock = ManualClock()
      let queue = try await PostgresQueueTests.open(setting, clock)
      let other = try await PostgresQueue<Int>(in: database, name: "q")
      let waiting = (0..<3).map { _ in Task { try await queue.nextDelivery(lease: .seconds(60)).get().value } }
      try await clock.waitForSleepers(3)
      try await other.enqueue([QueueInput(1), QueueInput(2)])
      try await database.write { transaction in
        _ = try await transaction.enqueue([QueueInput(3)], in: other)
      }
      var values: [Int] = []
      for task in waiting { values.append(try await task.valueInTime()) }
      #expect(values.sorted() == [1, 2, 3])
      await database.close()
    }
  }

  /// A consumer that waits runs one request for each poll interval, and none because of stores or of a queue of its name in
  /// another schema.
  @Test func `an idle consumer runs only its poll`() async throws {
    try await Setting.runBehindProxy { proxy, database, setting in
      let clock = ManualClock()
      let queue = try await PostgresQueue<Int>(
        in: database, name: "q", codec: .cbor(), environment: .manual(clock))
      let store = try await PostgresStore<Int>(in: setting.database)
      let schema = try await setting.server.newSchema()
      let otherDatabase = try await PostgresDatabase(setting.server.connectionString, schema: schema)
      let namesake = try await PostgresQueue<Int>(in: otherDatabase, name: "q")
      // So that the parts of an answer arrive together.
      proxy.delay(toServer: .milliseconds(1), toClient: .milliseconds(1))
      let start = proxy.roundTrips
      let waiting = Task { try await queue.nextDelivery(lease: .seconds(60)).get().value }
      try await clock.waitForSleepers(1)
      for number in 0..<30 {
        try await store.setValue(number, forKey: "a")
        try await namesake.enqueue(number)
        // Takes longer than the pause between two notifications.
        try await setting.psql("SELECT 1")
      }
      // The consumer looks at first, and connects, listens and looks again, because it may have missed something.
      #expect(proxy.roundTrips - start <= 6)
      for _ in 0..<10 {
        clock.advance(by: .seconds(1))
        try await clock.waitForSleepers(1)
      }
      #expect((10...16).contains(proxy.roundTrips - start))
      waiting.cancel()
      await #expect(throws: CancellationError.self) { try await waiting.value }
      await otherDatabase.close()
    }
  }

  /// A program may end immediately after it has enqueued an item.
  @Test func `closing sends the last notification`() async throws {
    try await Setting.runBehindProxy { proxy, _, setting in
      let clock = ManualClock()
      let queue = try await PostgresQueueTests.open(setting, clock)
      for _ in 0..<10 {
        let database = try await PostgresDatabase(proxy.connectionString, schema: setting.schema)
        let producer = try await PostgresQueue<Int>(in: database, name: "q")
        let waiting = Task { try await queue.nextDelivery(lease: .seconds(60)).get() }
        try await clock.waitForSleepers(1)
        // The second one comes while the first notification is under way or has just been sent.
        try await producer.enqueue([QueueInput(1)])
        try await producer.enqueue([QueueInput(2)])
        await database.close()
        let connections = proxy.connections
        // The clock stands still, so the consumer does not look by itself.
        let deliveries = [try await waiting.valueInTime(), try await queue.nextDelivery(lease: .seconds(60)).get()]
        #expect(Set(deliveries.map(\.value)) == [1, 2])
        #expect(proxy.connections == connections, "nothing is sent after closing")
        for delivery in deliveries { try await queue.acknowledge(delivery.receipt) }
      }
    }
  }

  /// Without notifications, a consumer looks after the poll interval.
  @Test func `items of others are found by polling`() async throws {
    try await Setting.run { setting in
      let clock = ManualClock()
      let queue = try await PostgresQueueTests.open(setting, clock)
      let waiting = Task { try await queue.nextDelivery(lease: .seconds(60)).get().value }
      try await clock.waitForSleepers(1)
      try await setting.psql("INSERT INTO q(key, payload, arrival, state) VALUES('a', '\\x01', now(), 0)")
      // Again and again, because the consumer may just be looking.
      #expect(try await waiting.valueInTime { clock.advance(by: .seconds(1)) } == 1)
    }
  }
}
#endif
