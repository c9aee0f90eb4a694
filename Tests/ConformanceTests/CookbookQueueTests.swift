#if Compression && Crypto && LMDB && Metrics && SQLite
import Foundation
import Larder
import LarderQueue
import LarderSQLite
import LarderStoreQueue
import LarderTesting
import LarderWorker
import TestSupport
import Testing

extension CookbookTests {
  /// The answers about queues.
  @Suite struct Queues {
    private struct Job: Codable, Sendable, Equatable {
      var name: String
    }

    private struct Payment: Codable, Sendable, Equatable {
      var amount: Int
    }

    private struct Refused: Error {}

    @Test func `an order and its event are one commit`() async throws {
      let temporary = try TemporaryFolder()
      let folder = temporary.path
      let order = Order(number: 17)

      // snippet.how-do-i-send-a-message
      let bytes = try await SQLiteStore(path: folder + "/shop.sqlite", codec: .raw)
      let orders = bytes.typed(Order.self, prefix: "order/", codec: .json())
      let outbox = try await bytes.queue(of: Order.self, prefix: "outbox/", codec: .json())

      try await bytes.transaction { tx in
        try await tx.setValue(order, forKey: "17", in: orders)
        try await tx.enqueue(order, in: outbox)
        return .commit(())
      }
      // snippet.end

      #expect(try await orders.value(forKey: "17") == order)
      #expect(try await outbox.peek(max: 9).map(\.value) == [order])
      await #expect(throws: Refused.self) {
        try await bytes.transaction { tx in
          try await tx.setValue(order, forKey: "18", in: orders)
          try await tx.enqueue(order, in: outbox)
          if order.number == 17 { throw Refused() }
          return .commit(())
        }
      }
      #expect(try await orders.count() == 1)
      #expect(try await outbox.count() == 1)
      try await bytes.close()
    }

    @Test func `jobs in the background`() async throws {
      let temporary = try TemporaryFolder()
      let folder = temporary.path
      let done = Locked<[String]>([])
      @Sendable func perform(_ job: Job) async throws { done.withLock { $0.append(job.name) } }

      // snippet.how-do-i-run-jobs-in
      let jobs = try await QueueStore<Job>(path: folder + "/jobs")
      try await jobs.enqueue(Job(name: "resize"), id: "photo:17")  // repeating it with this id has no effect
      try await jobs.enqueue(Job(name: "charge"))

      let worker = QueueWorker(
        [QueueHandler(jobs, timeLimit: .seconds(60)) { delivery in try await perform(delivery.value) }],
        concurrency: 4, onEvent: { event in print(event) })
      let working = Task { try await worker.run() }
      // snippet.end

      while worker.statistics().processed < 2 { await Task.yield() }
      #expect(try await jobs.enqueue(Job(name: "resize"), id: "photo:17").isDuplicate)
      worker.shutDown()
      try await working.value
      #expect(done.withLock { $0.sorted() } == ["charge", "resize"])
      #expect(try await jobs.count() == 0)
      try await jobs.close()
    }

    @Test func `items at fixed times`() async throws {
      // `enqueue(_:at:)` reads the time of the system.
      let clock = ManualClock(now: .init(offset: .seconds(Date.now.timeIntervalSince(ManualClock().date))))
      let jobs = try await StoreQueue(
        MemoryStore<[UInt8]>(), prefix: "jobs/", codec: .json(Job.self), environment: .manual(clock))
      let (date, midnight) = (clock.date.addingTimeInterval(60), clock.date)
      let running = Task { try await schedule(in: jobs, date, midnight) }

      try await clock.waitForSleepers(1)
      let first = try await jobs.receive(max: 9, lease: .seconds(9000))
      #expect(first.map { $0.value.name.prefix(9) } == ["report of"])
      clock.advance(by: .seconds(61))
      #expect(try await jobs.receive(max: 9, lease: .seconds(9000)).map(\.value.name) == ["remind"])
      running.cancel()
      await #expect(throws: CancellationError.self) { try await running.value }
      #expect(try await jobs.count() == 2)
    }

    private func schedule(
      in jobs: StoreQueue<MemoryStore<[UInt8]>, Job>, _ date: Date, _ midnight: Date
    ) async throws {
      // snippet.how-do-i-run-a-job
      try await jobs.enqueue(Job(name: "remind"), at: date)

      let report = QueueSchedule<Job>(name: "report", every: .seconds(3600), from: midnight) { due in
        Job(name: "report of \(due)")
      }
      try await jobs.run([report])  // until its task is cancelled
      // snippet.end
    }

    @Test func `a payment counts once`() async throws {
      let clock = ManualClock()
      let bytes = MemoryStore<[UInt8]>()
      let payments = try await StoreQueue(
        bytes, prefix: "payment/", codec: .json(Payment.self), environment: .manual(clock))
      let totals = bytes.typed(Int.self, prefix: "total/", codec: .json())

      // snippet.how-do-i-count-an-item
      func process(_ delivery: QueueDelivery<Payment>) async throws {
        try await bytes.transaction { tx in
          try await tx.acknowledge(delivery.receipt, in: payments)
          try await tx.update("revenue", in: totals) { $0 = ($0 ?? 0) + delivery.value.amount }
          return .commit(())
        }
      }
      // snippet.end

      try await payments.enqueue(Payment(amount: 30))
      let first = try #require(try await payments.receive(lease: .seconds(30)))
      // The lease ends before the first consumer has finished, and another one takes over.
      clock.advance(by: .seconds(31))
      let second = try #require(try await payments.receive(lease: .seconds(30)))
      try await process(second)
      await expectStoreError(.staleReceipt) { try await process(first) }
      #expect(try await totals.value(forKey: "revenue") == 30)
      #expect(try await payments.count() == 0)
    }

    @Test func `failed jobs are repeated`() async throws {
      let jobs = try await StoreQueue(
        MemoryStore<[UInt8]>(), prefix: "jobs/", codec: .json(Job.self),
        configuration: StoreQueueConfiguration(policy: QueuePolicy(maximumDeliveries: 1)))
      try await jobs.enqueue(Job(name: "resize"), id: "photo:17")
      try await jobs.enqueue(Job(name: "resize"), id: "photo:18")
      for delivery in try await jobs.receive(max: 2, lease: .seconds(30)) { try await jobs.release(delivery.receipt) }
      #expect(try await jobs.deadLetters().map(\.attempts) == [1, 1])

      // snippet.how-do-i-repeat-jobs-that
      for letter in try await jobs.deadLetters(limit: 100) {
        print(letter.key, letter.reason, letter.attempts)
      }
      try await jobs.requeue(["photo:17"])
      try await jobs.purgeDeadLetters()  // the others
      // snippet.end

      #expect(try await jobs.receive(max: 9, lease: .seconds(30)).map(\.key) == ["photo:17"])
      #expect(try await jobs.deadLetters().isEmpty)
    }
  }
}
#endif
