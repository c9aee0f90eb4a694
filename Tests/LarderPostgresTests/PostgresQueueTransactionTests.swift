#if Postgres
import Foundation
import Larder
import LarderCBOR
import LarderPostgres
import LarderTesting
import TestSupport
import Testing

/// A consumer's work in a transaction of the caller's: what it writes and the end of its delivery are one commit.
@Suite(.timeLimit(.minutes(60))) struct PostgresQueueTransactionTests {
  private struct Refused: Error {}

  /// A queue, and a table of effects beside it.
  private struct Bench: Sendable {
    let setting: Setting
    let clock = ManualClock()
    let queue: PostgresQueue<Int>

    var database: PostgresDatabase { setting.database }

    init(_ setting: Setting, maximumDeliveries: Int? = 5) async throws {
      self.setting = setting
      queue = try await PostgresQueueTests.open(
        setting, clock,
        configuration: PostgresQueueConfiguration(
          policy: QueuePolicy(maximumDeliveries: maximumDeliveries, retryPolicy: .immediate)))
      try await setting.psql("CREATE TABLE effects(number int)")
    }

    func receive(_ count: Int = 9) async throws -> [QueueDelivery<Int>] {
      try await queue.receive(max: count, lease: .seconds(60))
    }

    func write(_ number: Int, in transaction: PostgresTransaction) async throws {
      try await transaction.execute("INSERT INTO effects VALUES($1)", ["\(number)"])
    }

    var effects: String {
      get async throws { try await setting.psql("SELECT string_agg(number::text, ',' ORDER BY number) FROM effects") }
    }
  }

  private func withBench(maximumDeliveries: Int? = 5, _ body: (Bench) async throws -> Void) async throws {
    try await Setting.run { try await body(Bench($0, maximumDeliveries: maximumDeliveries)) }
  }

  // MARK: Acknowledging

  @Test func `the effect and the acknowledgement are one commit`() async throws {
    try await withBench { bench in
      try await bench.queue.enqueue([QueueInput(1, id: "a"), QueueInput(2)])
      let deliveries = try await bench.receive()
      await #expect(throws: Refused.self) {
        try await bench.database.write { transaction in
          try await bench.write(1, in: transaction)
          try await transaction.acknowledge(deliveries[0].receipt, in: bench.queue)
          throw Refused()
        }
      }
      #expect(try await bench.effects == "")
      #expect(try await bench.queue.counts() == QueueCounts(leased: 2))
      try await bench.database.write { transaction in
        let stale = try await transaction.acknowledge(deliveries.map(\.receipt), in: bench.queue)
        #expect(stale.isEmpty)
        #expect(try await bench.queue.counts() == QueueCounts(leased: 2), "others don't see it yet")
        for delivery in deliveries { try await bench.write(delivery.value, in: transaction) }
      }
      #expect(try await bench.effects == "1,2")
      #expect(try await bench.queue.counts() == QueueCounts())
      #expect(try await bench.queue.enqueue(3, id: "a").isDuplicate, "the id is remembered")
    }
  }

  /// The consumer whose lease has ended must not repeat what another one has done.
  @Test func `a stale receipt ends the transaction`() async throws {
    try await withBench { bench in
      try await bench.queue.enqueue(1)
      let slow = try #require(try await bench.receive().first)
      bench.clock.advance(by: .seconds(60))
      let other = try #require(try await bench.receive().first)
      for delivery in [other, slow] {
        do {
          try await bench.database.write { transaction in
            try await bench.write(delivery.value, in: transaction)
            try await transaction.acknowledge(delivery.receipt, in: bench.queue)
          }
        } catch StoreError.Code.staleReceipt {
          #expect(delivery.receipt == slow.receipt)
        }
      }
      #expect(try await bench.effects == "1")
      let stale = try await bench.database.write { transaction in
        try await transaction.acknowledge([slow.receipt], in: bench.queue)
          + transaction.release([slow.receipt], in: bench.queue)
          + transaction.extend([slow.receipt], lease: .seconds(60), in: bench.queue)
      }
      #expect(stale == [slow.receipt, slow.receipt, slow.receipt])
    }
  }

  /// From the acknowledgement to the commit, no other consumer gets the item, however long it takes.
  @Test func `an acknowledged item is held until the commit`() async throws {
    try await withBench { bench in
      try await bench.queue.enqueue(1)
      let delivery = try #require(try await bench.receive().first)
      try await bench.database.write { transaction in
        try await transaction.acknowledge(delivery.receipt, in: bench.queue)
        bench.clock.advance(by: .seconds(600))
        #expect(try await bench.receive().isEmpty)
        try await bench.write(1, in: transaction)
      }
      #expect(try await bench.receive().isEmpty)
      #expect(try await bench.effects == "1")
    }
  }

  @Test func `a transaction that is repeated acknowledges once`() async throws {
    try await withBench { bench in
      try await bench.queue.enqueue([QueueInput(1, group: "g"), QueueInput(2, group: "g")])
      let delivery = try #require(try await bench.receive().first)
      let attempts = Locked(0)
      try await bench.database.write { transaction in
        try await transaction.acknowledge(delivery.receipt, in: bench.queue)
        try await bench.write(1, in: transaction)
        let attempt = attempts.withLock { attempts in
          attempts += 1
          return attempts
        }
        if attempt < 3 {
          try await transaction.execute("DO $$ BEGIN RAISE EXCEPTION USING ERRCODE = '40001'; END $$")
        }
      }
      #expect(attempts.withLock { $0 } == 3)
      #expect(try await bench.effects == "1")
      #expect(try await bench.receive().map(\.value) == [2])
    }
  }

  @Test func `the next item of a group comes after the commit`() async throws {
    try await withBench { bench in
      try await bench.queue.enqueue((1...2).map { QueueInput($0, group: "g") })
      let delivery = try #require(try await bench.receive().first)
      // The clock stands still, so only the commit can wake the consumer.
      let waiting = Task { try await bench.queue.nextDelivery(lease: .seconds(60)).get().value }
      try await bench.clock.waitForSleepers(1)
      await #expect(throws: Refused.self) {
        try await bench.database.write { transaction in
          try await transaction.acknowledge(delivery.receipt, in: bench.queue)
          throw Refused()
        }
      }
      try await bench.database.write { transaction in
        try await transaction.acknowledge(delivery.receipt, in: bench.queue)
        #expect(try await bench.receive().isEmpty)
      }
      #expect(try await waiting.valueInTime() == 2)
    }
  }

  // MARK: Releasing and extending

  @Test func `a release takes effect with the commit`() async throws {
    try await withBench(maximumDeliveries: 2) { bench in
      let deadLetters = Locked<[StoreKey]>([])
      let observation = bench.queue.observeDeadLetters { deadLetter in
        deadLetters.withLock { $0.append(deadLetter.key) }
      }
      defer { observation.cancel() }
      try await bench.queue.enqueue(1, id: "a")
      let first = try #require(try await bench.receive().first)
      try await bench.database.write { transaction in
        try await transaction.release(first.receipt, in: bench.queue)
        #expect(try await bench.receive().isEmpty)
      }
      let second = try #require(try await bench.receive().first)
      #expect(second.attempt == 2)
      await #expect(throws: Refused.self) {
        try await bench.database.write { transaction in
          try await transaction.release(second.receipt, in: bench.queue)
          throw Refused()
        }
      }
      #expect(try await bench.queue.counts() == QueueCounts(leased: 1))
      try await bench.database.write { transaction in
        try await transaction.release(second.receipt, in: bench.queue)
        #expect(deadLetters.withLock { $0 } == [], "nothing is reported that may be rolled back")
      }
      #expect(deadLetters.withLock { $0 } == ["a"])
      #expect(try await bench.queue.counts() == QueueCounts(dead: 1))
      #expect(try await bench.queue.enqueue(2, id: "a").isDuplicate, "the id is remembered")
    }
  }

  @Test func `a lease is extended with the commit`() async throws {
    try await withBench { bench in
      try await bench.queue.enqueue(1)
      let receipt = try #require(try await bench.receive().first).receipt
      bench.clock.advance(by: .seconds(59))
      try await bench.database.write { try await $0.extend(receipt, lease: .seconds(60), in: bench.queue) }
      bench.clock.advance(by: .seconds(59))
      try await bench.database.write { try await $0.acknowledge(receipt, in: bench.queue) }
    }
  }

  // MARK: Receiving

  @Test func `items are received and acknowledged in one transaction`() async throws {
    try await withBench { bench in
      try await bench.queue.enqueue([QueueInput(1), QueueInput(2, after: .seconds(5)), QueueInput(3, group: "g")])
      bench.clock.advance(by: .seconds(5))
      await #expect(throws: Refused.self) {
        try await bench.database.write { transaction in
          let deliveries = try await transaction.receive(max: 2, lease: .seconds(60), from: bench.queue)
          #expect(deliveries.map(\.value) == [1, 2])
          #expect(try await bench.receive().map(\.value) == [3], "others pass over these items")
          throw Refused()
        }
      }
      try await bench.database.write { transaction in
        let deliveries = try await transaction.receive(max: 9, lease: .seconds(60), from: bench.queue)
        #expect(deliveries.map(\.value) == [1, 2] && deliveries.map(\.attempt) == [1, 1], "as if never received")
        #expect(try await transaction.acknowledge(deliveries.map(\.receipt), in: bench.queue).isEmpty)
        for delivery in deliveries { try await bench.write(delivery.value, in: transaction) }
      }
      #expect(try await bench.effects == "1,2")
      #expect(try await bench.queue.counts() == QueueCounts(leased: 1))
    }
  }

  @Test func `a lease of a transaction lasts after it`() async throws {
    try await withBench { bench in
      try await bench.queue.enqueue([QueueInput(1, group: "g"), QueueInput(2, group: "g")])
      let delivery = try await bench.database.write { transaction in
        try #require(try await transaction.receive(lease: .seconds(60), from: bench.queue))
      }
      #expect(try await bench.receive().isEmpty)
      try await bench.queue.acknowledge(delivery.receipt)
      #expect(try await bench.receive().map(\.value) == [2])
    }
  }

  /// Receiving turns the item into a dead letter that was delivered too often.
  @Test func `a death during a receive is reported after the commit`() async throws {
    try await withBench(maximumDeliveries: 1) { bench in
      let deadLetters = Locked(0)
      let observation = bench.queue.observeDeadLetters { _ in deadLetters.withLock { $0 += 1 } }
      defer { observation.cancel() }
      try await bench.queue.enqueue((1...2).map { QueueInput($0, group: "g") })
      #expect(try await bench.receive().map(\.value) == [1])
      bench.clock.advance(by: .seconds(60))
      for isRefused in [true, false] {
        do {
          try await bench.database.write { transaction in
            let delivery = try await transaction.receive(lease: .seconds(60), from: bench.queue)
            #expect(delivery?.value == 2)
            if isRefused { throw Refused() }
          }
        } catch is Refused {}
        #expect(deadLetters.withLock { $0 } == (isRefused ? 0 : 1))
      }
      #expect(try await bench.queue.counts() == QueueCounts(leased: 1, dead: 1))
    }
  }

  @Test func `an item that cannot be decoded is released in the transaction`() async throws {
    try await Setting.run { setting in
      let key = NonceCodec<CBORCodec<Int>>.Switch()
      let queue = try await PostgresQueue(in: setting.database, name: "q", codec: NonceCodec(.cbor(Int.self), key: key))
      try await queue.enqueue(1)
      key.isOn = false
      try await setting.database.write { transaction in
        await expectStoreError(.keyUnavailable) { try await transaction.receive(lease: .seconds(60), from: queue) }
      }
      #expect(try await queue.counts() == QueueCounts(waiting: 1))
    }
  }

  // MARK: Arguments

  @Test func `arguments are checked`() async throws {
    try await withBench { bench in
      let queue = bench.queue
      try await queue.enqueue(1)
      let receipts = try await bench.receive().map(\.receipt)
      try await bench.database.write { transaction in
        await expectStoreError(.invalidArgument) { _ = try await transaction.receive(lease: .zero, from: queue) }
        await expectStoreError(.invalidArgument) {
          _ = try await transaction.receive(max: 0, lease: .seconds(1), from: queue)
        }
        await expectStoreError(.invalidArgument) {
          _ = try await transaction.release(receipts, after: .seconds(-1), in: queue)
        }
        await expectStoreError(.invalidArgument) {
          _ = try await transaction.extend(receipts, lease: .zero, in: queue)
        }
        let stale = try await transaction.acknowledge(receipts, in: queue)
        #expect(stale.isEmpty)
      }
    }
  }

  @Test func `a queue of another database is refused`() async throws {
    try await withBench { bench in
      let queue = bench.queue
      try await queue.enqueue(1)
      let receipts = try await bench.receive().map(\.receipt)
      try await Setting.run { other in
        await expectStoreError(.invalidArgument) {
          _ = try await other.database.write { try await $0.acknowledge(receipts, in: queue) }
        }
      }
    }
  }

  @Test func `a transaction that only reads receives nothing`() async throws {
    try await withBench { bench in
      let queue = bench.queue
      try await queue.enqueue(1)
      await expectStoreError(.notPermitted) {
        _ = try await bench.database.read { try await $0.receive(lease: .seconds(1), from: queue) }
      }
      #expect(try await bench.receive().map(\.attempt) == [1])
    }
  }
}
#endif
