import Larder
import LarderCBOR
import LarderStoreQueue
import LarderTesting
import LarderWorker
import TestSupport
import Testing

/// Acknowledging and releasing are repeated, so an item is not processed again because a store failed for a moment.
@Suite(.timeLimit(.minutes(5))) struct QueueWorkerSettlementTests {
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
