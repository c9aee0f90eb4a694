#if LMDB
import Larder
import LarderCBOR
import LarderStoreQueue
import LarderTesting
import TestSupport
import Testing

/// Queues in transactions of their base.
@Suite struct QueueTransactionTests {
  private let base = MemoryStore<[UInt8]>()
  private let clock = ManualClock()

  private func open(
    _ prefix: StoreKey = "q/", configuration: StoreQueueConfiguration = StoreQueueConfiguration()
  ) async throws -> StoreQueue<MemoryStore<[UInt8]>, Int> {
    let clock = clock
    return try await StoreQueue(
      base, prefix: prefix, codec: .cbor(), configuration: configuration, environment: .manual(clock))
  }

  @Test func `items are enqueued and acknowledged together`() async throws {
    let (jobs, results) = (try await open("jobs/"), try await open("results/"))
    try await jobs.enqueue(7)
    let delivery = try #require(try await jobs.receive(lease: .seconds(60)))
    try await base.transaction { tx in
      try await tx.acknowledge(delivery.receipt, in: jobs)
      return .commit(try await tx.enqueue(delivery.value + 1, priority: 2, group: "g", in: results))
    }
    #expect(try await jobs.counts() == QueueCounts())
    let result = try #require(try await results.receive(lease: .seconds(60)))
    #expect(result.value == 8 && result.priority == 2 && result.group == "g")
  }

  @Test func `a stale receipt ends the transaction`() async throws {
    let jobs = try await open()
    try await jobs.enqueue(1)
    let delivery = try #require(try await jobs.receive(lease: .seconds(1)))
    clock.advance(by: .seconds(2))
    let other = try #require(try await jobs.receive(lease: .seconds(60)))
    await expectStoreError(.staleReceipt) {
      try await base.transaction { tx in
        try tx.setValue([1], forKey: "effect")
        return .commit(try await tx.acknowledge(delivery.receipt, in: jobs))
      }
    }
    #expect(try base.value(forKey: "effect") == nil)
    // The same receipt twice.
    await expectStoreError(.staleReceipt) {
      try await base.transaction { tx in
        try await tx.acknowledge(other.receipt, in: jobs)
        return .commit(try await tx.acknowledge(other.receipt, in: jobs))
      }
    }
    try await base.transaction { tx in .commit(try await tx.acknowledge(other.receipt, in: jobs)) }
    #expect(try await jobs.counts() == QueueCounts())
  }

  /// Another consumer receives the item between the reading and the commit.
  @Test func `a lease that is lost during the transaction ends it`() async throws {
    let jobs = try await open()
    try await jobs.enqueue(1)
    let delivery = try #require(try await jobs.receive(lease: .seconds(1)))
    var attempts = 0
    await expectStoreError(.staleReceipt) {
      try await base.transaction { tx in
        attempts += 1
        try await tx.acknowledge(delivery.receipt, in: jobs)
        if attempts == 1 {
          clock.advance(by: .seconds(2))
          #expect(try await jobs.receive(lease: .seconds(60)) != nil)
        }
        return .commit(())
      }
    }
    #expect(attempts == 2)
    #expect(try await jobs.counts() == QueueCounts(leased: 1))
  }

  @Test func `the next item of a group becomes ready`() async throws {
    let jobs = try await open()
    for number in 1...3 { try await jobs.enqueue(number, group: "g") }
    let first = try #require(try await jobs.receive(max: 9, lease: .seconds(60)).first)
    #expect(try await jobs.receive(max: 9, lease: .seconds(60)).isEmpty)
    try await base.transaction { tx in .commit(try await tx.acknowledge(first.receipt, in: jobs)) }
    let second = try #require(try await jobs.receive(max: 9, lease: .seconds(60)).first)
    #expect(second.value == 2)
    try await base.transaction { tx in .commit(try await tx.release(second.receipt, after: .zero, in: jobs)) }
    #expect(try await jobs.receive(max: 9, lease: .seconds(60)).map(\.value) == [2])
  }

  @Test func `a release can make a dead letter`() async throws {
    let jobs = try await open(configuration: StoreQueueConfiguration(policy: QueuePolicy(maximumDeliveries: 1)))
    try await jobs.enqueue(1)
    let delivery = try #require(try await jobs.receive(lease: .seconds(60)))
    try await base.transaction { tx in .commit(try await tx.release(delivery.receipt, in: jobs)) }
    #expect(try await jobs.counts() == QueueCounts(dead: 1))
  }

  @Test func `ids are remembered in a transaction`() async throws {
    let jobs = try await open()
    let items = try await base.transaction { tx in
      let first = try await tx.enqueue(1, id: "a", in: jobs)
      return .commit([first, try await tx.enqueue(2, id: "a", in: jobs)])
    }
    #expect(items.map(\.isDuplicate) == [false, true])
    let again = try await base.transaction { tx in .commit(try await tx.enqueue(3, id: "a", in: jobs)) }
    #expect(again.isDuplicate && again.sequence == items[0].sequence)
    #expect(try await jobs.receive(max: 9, lease: .seconds(60)).map(\.value) == [1])
  }

  @Test func `a consumer wakes after the commit`() async throws {
    let jobs = try await open()
    async let delivery = jobs.nextDelivery(lease: .seconds(60)).get()
    try await clock.waitForSleepers(1)
    try await base.transaction { tx in .discard(try await tx.enqueue(1, in: jobs)) }
    try await base.transaction { tx in .commit(try await tx.enqueue(2, in: jobs)) }
    #expect(try await delivery.value == 2)
  }
}
#endif
