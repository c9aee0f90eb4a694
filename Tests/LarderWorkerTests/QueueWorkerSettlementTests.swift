import Larder
import LarderCBOR
import LarderStoreQueue
import LarderTesting
import LarderWorker
import TestSupport
import Testing

/// Acknowledging and releasing are repeated, so an item is not processed again because a store failed for a moment.
@Suite(.timeLimit(.minutes(2))) struct QueueWorkerSettlementTests {
  private struct Failure: Error {}

  private typealias Queue = StoreQueue<MemoryStore<[UInt8]>, Int>
  private let clock = ManualClock()

  private func makeQueue(_ deliveries: Int? = 5) async throws -> TroubledQueue<Queue> {
    TroubledQueue(
      try await StoreQueue(
        MemoryStore(), prefix: "q/", codec: .cbor(),
        configuration: StoreQueueConfiguration(
          policy: QueuePolicy(maximumDeliveries: deliveries, retryPolicy: .immediate)),
        environment: .manual(clock)))
  }

  /// Advances the clock in steps until a condition holds.
  private func advance(whileSleeping sleepers: Int = 3, until condition: () -> Bool) async {
    // The queue, the renewal, and the pause before the next attempt.
    await clock.advance(by: .milliseconds(500), whileSleeping: sleepers, until: condition)
  }

  /// The store fails longer than a lease while renewals work, or for some time after it has removed the item.
  @Test(arguments: [StoreError.Outcome.nothingChanged, .unknown])
  func `an acknowledgement is repeated until it succeeds`(outcome: StoreError.Outcome) async throws {
    let queue = try await makeQueue()
    try await queue.enqueue(7)
    let clock = clock
    let sent = Locked(0)
    let attempts = Locked(0)
    let outage: @Sendable (StoreOperation) throws -> Void = { operation in
      guard operation == .acknowledge else { return }
      attempts.withLock { $0 += 1 }
      guard clock.now.offset < (outcome == .unknown ? .seconds(3) : .seconds(40)) else { return }
      throw StoreError(.timedOut, during: operation, message: "busy", isRetryable: true, outcome: outcome)
    }
    // The first attempt succeeds if its outcome is unknown, and the next ones find a stale receipt.
    if outcome == .unknown { queue.trouble.after(outage) } else { queue.trouble.before(outage) }
    let worker = QueueWorker(
      [QueueHandler(queue, lease: .seconds(6)) { _ in sent.withLock { $0 += 1 } }], clock: clock)
    async let result: Void = worker.run()
    // The renewal ends when it finds that the receipt is stale.
    await advance(whileSleeping: outcome == .unknown ? 2 : 3) { worker.statistics().processed == 1 }
    worker.shutDown()
    try await result
    #expect(sent.withLock { $0 } == 1)
    #expect(attempts.withLock { $0 } > 2)
    #expect(try await queue.counts() == QueueCounts())
    #expect(worker.statistics().queueErrors == 0 && worker.statistics().leasesLost == 0)
  }

  @Test func `a release is repeated until it succeeds`() async throws {
    let queue = try await makeQueue(1)
    try await queue.enqueue(7)
    let clock = clock
    let sent = Locked(0)
    queue.trouble.before { operation in
      guard operation == .release, clock.now.offset < .seconds(40) else { return }
      throw StoreError(.timedOut, during: operation, message: "busy", isRetryable: true)
    }
    let worker = QueueWorker(
      [
        QueueHandler(queue, lease: .seconds(6)) { _ in
          sent.withLock { $0 += 1 }
          throw Failure()
        }
      ], clock: clock)
    async let result: Void = worker.run()
    await advance { worker.statistics().dead == 1 }
    worker.shutDown()
    try await result
    #expect(sent.withLock { $0 } == 1)
    #expect(worker.statistics().queueErrors == 0)
  }

  @Test func `an error that a retry cannot mend is reported once`() async throws {
    let queue = try await makeQueue()
    try await queue.enqueue(7)
    let attempts = Locked(0)
    queue.trouble.before { operation in
      guard operation == .acknowledge else { return }
      attempts.withLock { $0 += 1 }
      throw StoreError(.ioFailed, during: operation, message: "the disk is broken")
    }
    let worker = QueueWorker([QueueHandler(queue) { _ in }], clock: clock)
    async let result: Void = worker.run()
    await yieldUntil { worker.statistics().queueErrors == 1 }
    worker.shutDown()
    try await result
    #expect(attempts.withLock { $0 } == 1)
  }

  @Test func `repetition ends with the lease`() async throws {
    let queue = try await makeQueue(1)
    try await queue.enqueue(7)
    let clock = clock
    let last = Locked(Duration.zero)
    queue.trouble.before { operation in
      guard operation == .acknowledge || operation == .extend else { return }
      if operation == .acknowledge { last.withLock { $0 = clock.now.offset } }
      throw StoreError(.timedOut, during: operation, message: "busy", isRetryable: true)
    }
    let worker = QueueWorker([QueueHandler(queue, lease: .seconds(6)) { _ in }], clock: clock)
    async let result: Void = worker.run()
    await advance { worker.statistics().queueErrors > 0 }
    worker.shutDown()
    try await result
    #expect(last.withLock { $0 } >= .seconds(5) && last.withLock { $0 } <= .seconds(7))
  }

  @Test func `a batch can fail in part`() async throws {
    let queue = try await makeQueue(2)
    try await queue.enqueue((0..<6).map { QueueInput($0) })
    let log = Locked<[Int]>([])
    let worker = QueueWorker(
      [
        QueueHandler(queue, partialBatch: 10) { deliveries in
          log.withLock { $0 += deliveries.map(\.value) }
          var errors: [DeliveryReceipt: any Error] = [:]
          for delivery in deliveries where delivery.value % 3 == 1 { errors[delivery.receipt] = Failure() }
          return errors
        }
      ], concurrency: 1, clock: clock)
    async let result: Void = worker.run()
    await yieldUntil { worker.statistics().dead == 2 }
    worker.shutDown()
    try await result
    #expect(worker.statistics().processed == 4 && worker.statistics().failed == 4)
    #expect(log.withLock { $0.sorted() } == [0, 1, 1, 2, 3, 4, 4, 5])
    #expect(try await queue.deadLetters().map { try $0.value.get() } == [1, 4])
  }
}
