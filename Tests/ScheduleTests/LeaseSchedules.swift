import Larder
import LarderCBOR
import LarderStoreQueue
import LarderTesting
import TestSupport
import Testing

/// Consumers that hold leases: a closure whose lease is lost ends, and an item that was processed is not delivered again.
@Suite(.enabled(if: ScheduledTrial.isAvailable, "this runtime lets no program choose the order of its jobs"))
struct LeaseSchedules {
  /// A queue whose calls can fail for a moment.
  private struct TroubledQueue<Base: DurableQueue>: ForwardingStore, DurableQueue {
    let base: Base
    let disturb: @Sendable (StoreOperation) throws -> Void

    func forward<Result>(
      _ operation: StoreOperation, of key: StoreKey?, _ body: nonisolated(nonsending) () async throws -> Result
    ) async throws -> Result {
      try disturb(operation)
      return try await body()
    }
  }

  private static func queue(
    _ context: ScheduledContext
  ) async throws -> StoreQueue<FaultyStore<MemoryStore<[UInt8]>>, Int> {
    try await StoreQueue(
      context.slowStore(), prefix: "q/", codec: .cbor(),
      environment: .manual(context.clock, randomness: context.generator("queue")))
  }

  @Test func `a closure whose lease is lost ends`() async throws {
    try await runSchedules("lost leases") { context in
      let queue = try await Self.queue(context)
      try await queue.enqueue(1)
      let deliveries = try await queue.receive(max: 1, lease: .seconds(3))
      let leases = queue.hold(deliveries.map(\.receipt), lease: .seconds(3))
      var generator = context.generator()
      let start = [Duration.zero, .milliseconds(999), .seconds(1), .seconds(1)].randomElement(using: &generator)
      let consumer = Task {
        try await context.clock.sleep(for: start ?? .zero)
        try await leases.run { try await context.clock.sleep(for: .seconds(86_400)) }
      }
      // Another process ends the lease, which the renewal finds after a second.
      try await context.clock.sleep(for: .milliseconds(500))
      for delivery in deliveries { try await queue.release(delivery.receipt, after: .zero) }
      switch await consumer.result {
      case .failure(StoreError.Code.staleReceipt): break
      case let result: throw Wrong("a closure that has lost its lease ended with \(result)")
      }
      guard context.clock.now.offset < .seconds(3600) else { throw Wrong("the closure was not cancelled") }
    }
  }

  @Test func `a processed item is not delivered again`() async throws {
    // The task is cancelled, whose handlers no other work may interrupt.
    try await runSchedules("repeated acknowledgements", switchesAtLocks: false) { context in
      var generator = context.generator()
      let failures = Shared(Int.random(in: 0...2, using: &generator))
      let queue = TroubledQueue(base: try await Self.queue(context)) { operation in
        guard operation == .acknowledge else { return }
        try failures.change { failures in
          guard failures > 0 else { return }
          failures -= 1
          throw StoreError(.ioFailed, during: operation, message: "the network is down", isRetryable: true)
        }
      }
      try await queue.enqueue(1)
      let processed = Shared(false)
      let consumer = Task {
        try await queue.withNext(lease: .seconds(60)) { _ in
          await Task.yield()
          processed.change { $0 = true }
        }
      }
      context.mayCancel(consumer)
      _ = await consumer.result
      let live = try await queue.counts().live
      guard live == (processed.value ? 0 : 1) else {
        throw Wrong("\(live) items are left, and the closure \(processed.value ? "has returned" : "never returned")")
      }
    }
  }

  /// Two acknowledgements and an extension of one receipt: one acknowledgement removes the item, and the other one is refused.
  @Test func `a receipt is acknowledged once`() async throws {
    try await runSchedules("changes of one receipt") { context in
      let queue = try await Self.queue(context)
      try await queue.enqueue(1)
      guard let delivery = try await queue.receive(lease: .seconds(60)) else { throw Wrong("no item") }
      let count = Shared(0)
      try await concurrently(3) { task in
        do {
          if task == 2 {
            try await queue.extend(delivery.receipt, lease: .seconds(90))
          } else {
            try await queue.acknowledge(delivery.receipt)
            count.change { $0 += 1 }
          }
        } catch StoreError.Code.staleReceipt {}
      }
      let live = try await queue.counts().live
      guard count.value == 1, live == 0 else {
        throw Wrong("\(count.value) acknowledgements, and \(live) items are left")
      }
    }
  }
}
