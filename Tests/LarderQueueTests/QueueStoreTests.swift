import Larder
import LarderCBOR
import LarderFiles
import LarderTesting
import TestSupport
import Testing

@testable import LarderQueue

@Suite struct QueueStoreTests {
  @Test func `items are delivered in order and removed when acknowledged`() async throws {
    let bench = QueueBench()
    let queue = try await bench.open()
    for number in 0..<5 { try await queue.enqueue(number) }
    let first = try await queue.receive(max: 3, lease: .seconds(10))
    #expect(first.map(\.value) == [0, 1, 2] && first.map(\.attempt) == [1, 1, 1])
    try await queue.acknowledge(first[1].receipt)
    #expect(try await queue.counts() == QueueCounts(waiting: 2, leased: 2))
    #expect(try await queue.peek(max: 9).map(\.value) == [3, 4])
    await expectStoreError(.staleReceipt) { try await queue.acknowledge(first[1].receipt) }
    bench.clock.advance(by: .seconds(10))
    let second = try await queue.receive(max: 9, lease: .seconds(10))
    #expect(second.map(\.value) == [0, 2, 3, 4] && second.map(\.attempt) == [2, 2, 1, 1])
    await expectStoreError(.staleReceipt) { try await queue.acknowledge(first[0].receipt) }
    let stale = try await queue.acknowledge([first[0].receipt] + second.map(\.receipt))
    #expect(stale == [first[0].receipt])
    #expect(try await queue.counts() == QueueCounts())
    #expect(try await queue.receive(lease: .seconds(1)) == nil)
    try await queue.close()
  }

  @Test func `leases outlive the store object`() async throws {
    let bench = QueueBench()
    var queue = try await bench.open()
    try await queue.enqueue(7)
    try await queue.enqueue(8)
    let deliveries = try await queue.receive(max: 2, lease: .seconds(30))
    let text = "\(deliveries[0].receipt)"
    try await queue.close()
    bench.clock.advance(by: .seconds(29))
    queue = try await bench.open()
    #expect(try await queue.receive(lease: .seconds(1)) == nil)
    try await queue.acknowledge(#require(DeliveryReceipt(text)))
    bench.clock.advance(by: .seconds(1))
    #expect(try await queue.receive(lease: .seconds(30))?.attempt == 2)
    try await queue.close()
    queue = try await bench.open(leases: .void)
    #expect(try await queue.receive(lease: .seconds(30))?.attempt == 3)
    try await queue.close()
    // The end of the leases is durable.
    queue = try await bench.open(leases: .void)
    try await queue.close()
    queue = try await bench.open()
    #expect(try await queue.counts() == QueueCounts(waiting: 1))
  }

  @Test func `a page of leased items looks at a bounded number of items`() async throws {
    let queue = try await QueueBench().open()
    try await queue.enqueue((0..<5000).map { QueueInput($0, after: .seconds(10)) })
    try await queue.enqueue((5000..<6000).map { QueueInput($0) })
    _ = try await queue.receive(max: 3, lease: .seconds(60))
    let first = try await queue.leasedItems(limit: 2, after: nil)
    #expect(first.entries.isEmpty && first.next != nil)
    let second = try await queue.leasedItems(limit: 2, after: first.next)
    #expect(second.entries.map(\.sequence) == [5001, 5002])
    let third = try await queue.leasedItems(limit: 2, after: second.next)
    #expect(third.entries.map(\.sequence) == [5003] && third.next == nil)
    try await queue.close()
  }

  @Test(arguments: ["", "1", "1-1", "1-1-1-1", "g-1-1", "+1-1-1", "1-1ffffffff-1", "1--1", "-1-1-1"])
  func `invalid receipts`(_ text: String) {
    #expect(DeliveryReceipt(text) == nil)
  }

  @Test func `an id is enqueued once`() async throws {
    let bench = QueueBench()
    var queue = try await bench.open()
    #expect(try await queue.enqueue(1, id: "a").isDuplicate == false)
    #expect(try await queue.enqueue(2, id: "a").isDuplicate)
    let delivery = try #require(try await queue.receive(lease: .seconds(5)))
    #expect(delivery.key == "a" && delivery.value == 1)
    #expect(try await queue.enqueue(3, id: "a").isDuplicate)
    try await queue.acknowledge(delivery.receipt)
    try await queue.close()
    bench.clock.advance(by: .seconds(299))
    queue = try await bench.open()
    let duplicate = try await queue.enqueue(4, id: "a")
    #expect(duplicate.isDuplicate && duplicate.sequence == delivery.receipt.sequence)
    // The window applies to enqueuing only.
    try await queue.setValue(5, forKey: "a")
    try await queue.removeValue(forKey: "a")
    bench.clock.advance(by: .seconds(1))
    let new = try await queue.enqueue(6, id: "a")
    #expect(!new.isDuplicate && new.sequence == 3)
  }

  @Test func `generated keys are unique`() async throws {
    let queue = try await QueueBench().open()
    try await queue.enqueue(1, id: "0000000000000002")
    let generated = try await queue.enqueue(2)
    #expect(generated.key == "0000000000000003" && generated.sequence == 3)
    #expect(try await queue.entries(in: .all, limit: 9).map(\.value) == [1, 2])
  }

  @Test func `dead letters stay when the log is rewritten`() async throws {
    let bench = QueueBench()
    var queue = try await bench.open(QueueConfiguration(policy: QueuePolicy(maximumDeliveries: 1)))
    try await queue.enqueue(7, id: "dead")
    try await queue.release(#require(try await queue.receive(lease: .seconds(5))).receipt)
    try await queue.compact()
    try await queue.close()
    #expect(try !bench.names.contains("segment-00000001"))
    queue = try await bench.open()
    let letter = try #require(try await queue.deadLetters().first)
    #expect(try letter.key == "dead" && letter.value.get() == 7 && letter.reason == .tooManyDeliveries)
  }

  @Test func `sequence numbers are never reused`() async throws {
    let bench = QueueBench()
    var last: UInt128 = 0
    for _ in 0..<4 {
      let queue = try await bench.open()
      let enqueued = try await queue.enqueue(1)
      #expect(enqueued.sequence > last)
      last = enqueued.sequence
      let delivery = try #require(try await queue.receive(lease: .seconds(5)))
      try await queue.acknowledge(delivery.receipt)
      try await queue.compact()
      try await queue.close()
    }
  }

  @Test func `writing to a leased item invalidates its receipt`() async throws {
    let queue = try await QueueBench().open()
    try await queue.enqueue(1, id: "a")
    try await queue.enqueue(2, id: "b")
    let old = try await queue.receive(max: 2, lease: .seconds(5))
    try await queue.apply([.set("b", 20), .remove("a")])
    #expect(try await queue.acknowledge(old.map(\.receipt)) == old.map(\.receipt))
    let new = try await queue.receive(max: 9, lease: .seconds(5))
    #expect(new.map(\.value) == [20] && new.map(\.attempt) == [1])
    // An update that does not change the value keeps the lease.
    try await queue.update("b") { _ in }
    try await queue.acknowledge(new[0].receipt)
  }

  @Test func `undecodable and too often delivered items become dead letters`() async throws {
    let bench = QueueBench()
    let raw = try await QueueStore<[UInt8]>(
      path: "/queue", codec: RenamedCodec(), fileSystem: bench.disk,
      environment: QueueEnvironment(now: { bench.clock.date }))
    try await raw.enqueue([0xFF], id: "bad")
    try await raw.enqueue([7], id: "good")
    try await raw.close()
    var queue = try await bench.open(QueueConfiguration(policy: QueuePolicy(maximumDeliveries: 2)))
    for attempt in 1...2 {
      let delivery = try #require(try await queue.receive(lease: .seconds(5)))
      #expect(delivery.value == 7 && delivery.attempt == attempt)
      try await queue.release(delivery.receipt)
      bench.clock.advance(by: .seconds(5))
    }
    #expect(try await queue.receive(lease: .seconds(5)) == nil)
    #expect(try await queue.counts() == QueueCounts(dead: 2))
    #expect(try await queue.count() == 0)
    try await queue.close()
    queue = try await bench.open(QueueConfiguration(policy: QueuePolicy(maximumDeliveries: 2)))
    let dead = try await queue.deadLetters()
    #expect(dead.map(\.key) == ["bad", "good"] && dead.map(\.attempts) == [2, 2])
    #expect(dead.map(\.reason) == [.undecodable, .tooManyDeliveries])
    try #require(dead.count == 2)
    #expect(try dead[1].value.get() == 7)
    expectStoreError(.corrupted) { try dead[0].value.get() }
    #expect(try await queue.enqueue(1, id: "good").isDuplicate)
    #expect(try await queue.requeue(["good", "missing"]) == 1)
    #expect(try await queue.receive(max: 9, lease: .seconds(5)).map(\.attempt) == [1])
    try await queue.setValue(8, forKey: "bad")
    await expectStoreError(.conflict) { try await queue.requeue(["bad"]) }
    #expect(try await queue.purgeDeadLetters() == 1)
    #expect(try await queue.counts() == QueueCounts(waiting: 1, leased: 1))
  }

  @Test func `with next acknowledges or releases`() async throws {
    let bench = QueueBench()
    let queue = try await bench.open()
    try await queue.enqueue(1)
    struct Refused: Error {}
    await #expect(throws: Refused.self) { try await queue.withNext(lease: .seconds(5)) { _ in throw Refused() } }
    #expect(try await queue.counts() == QueueCounts(delayed: 1))
    bench.clock.advance(by: .seconds(1))
    let value = try await queue.withNext(lease: .seconds(5)) { delivery in
      #expect(delivery.attempt == 2)
      return delivery.value
    }
    #expect(value == 1)
    #expect(try await queue.counts() == QueueCounts())
    let waiting = Task { try await queue.withNext(lease: .seconds(5)) { $0.value } }
    try await queue.enqueue(2)
    #expect(try await waiting.value == 2)
    let cancelled = Task { try await queue.withNext(lease: .seconds(5)) { $0.value } }
    cancelled.cancel()
    await #expect(throws: CancellationError.self) { try await cancelled.value }
    try await queue.enqueue(3)
    #expect(try await queue.receive(lease: .seconds(5))?.value == 3)
  }

  @Test func `deliveries wait for items delays and leases`() async throws {
    let bench = QueueBench()
    let queue = try await bench.open()
    var deliveries = queue.deliveries(lease: .seconds(10)).makeAsyncIterator()
    try await queue.enqueue(1, after: .seconds(3))
    let delayed = Task { try await queue.deliveries(lease: .seconds(10)).first { _ in true }?.get() }
    try await bench.clock.waitForSleepers(1)
    bench.clock.advance(by: .seconds(3))
    #expect(try await delayed.value?.value == 1)
    let leased = Task { try await queue.deliveries(lease: .seconds(10)).first { _ in true }?.get() }
    try await bench.clock.waitForSleepers(1)
    bench.clock.advance(by: .seconds(10))
    let delivery = try #require(try await leased.value)
    #expect(delivery.attempt == 2)
    try await queue.acknowledge(delivery.receipt)
    // No consumer waits for a deadline any more.
    #expect(bench.clock.sleeperCount == 0)
    try await queue.enqueue(2)
    #expect(try await deliveries.next()?.get().value == 2)
    let ending = Task {
      var count = 0
      for try await _ in queue.deliveries(lease: .seconds(100)) { count += 1 }
      return count
    }
    try await queue.enqueue(3)
    while try await queue.counts().leased < 2 { await Task.yield() }
    try await queue.close()
    #expect(try await ending.value == 1)
    #expect(try await deliveries.next() == nil)
  }

  @Test func `an undecodable item is an element`() async throws {
    let bench = QueueBench()
    let raw = try await QueueStore<[UInt8]>(path: "/queue", codec: RenamedCodec(), fileSystem: bench.disk)
    try await raw.enqueue([QueueInput([1]), QueueInput([0xFF], id: "bad"), QueueInput([2])])
    try await raw.close()
    let queue = try await bench.open()
    var deliveries = queue.deliveries(lease: .seconds(10)).makeAsyncIterator()
    #expect(try await deliveries.next()?.get().value == 1)
    guard case .failure(let error)? = try await deliveries.next() else {
      Issue.record("the undecodable item is not a failure")
      return
    }
    #expect(error.code == .corrupted && error.key == "bad")
    // The item has four deliveries left.
    #expect(try await queue.counts() == QueueCounts(waiting: 1, delayed: 1, leased: 1))
    #expect(try await deliveries.next()?.get().value == 2)
  }

  @Test func `several consumers share the items`() async throws {
    let queue = try await QueueBench().open(durability: .buffered)
    let consumers = (0..<4).map { _ in
      Task {
        var values: [Int] = []
        for try await result in queue.deliveries(lease: .seconds(10)) {
          let delivery = try result.get()
          values.append(delivery.value)
          try await queue.acknowledge(delivery.receipt)
        }
        return values
      }
    }
    try await withThrowingTaskGroup(of: Void.self) { group in
      for producer in 0..<4 {
        group.addTask { for number in 0..<50 { try await queue.enqueue(producer * 100 + number) } }
      }
      try await group.waitForAll()
    }
    while try await queue.counts() != QueueCounts() { await Task.yield() }
    try await queue.close()
    var all: [Int] = []
    for consumer in consumers {
      let values = try await consumer.value
      all += values
      // Each consumer receives the items of a producer in order.
      for producer in 0..<4 {
        let own = values.filter { $0 / 100 == producer }
        #expect(own == own.sorted())
      }
    }
    let expected: [Int] = (0..<200).map { $0 / 50 * 100 + $0 % 50 }
    #expect(all.sorted() == expected)
  }

  @Test func `items that do not fit wait`() async throws {
    let queue = try await QueueBench().open(
      QueueConfiguration(capacity: QueueCapacity(items: 2, policy: .wait)), durability: .buffered)
    try await queue.enqueue([QueueInput(0), QueueInput(1)])
    await expectStoreError(.full) { try await queue.enqueue((0..<3).map { QueueInput($0) }) }
    let cancelled = Task { try await queue.enqueue(99) }
    let first = Task { try await queue.enqueue([QueueInput(2), QueueInput(3)]) }
    cancelled.cancel()
    await #expect(throws: CancellationError.self) { try await cancelled.value }
    var received: [Int] = []
    for _ in 0..<2 { try await queue.withNext(lease: .seconds(9)) { received.append($0.value) } }
    _ = try await first.value
    let second = Task { try await queue.setValue(4, forKey: "later") }
    for _ in 0..<3 { try await queue.withNext(lease: .seconds(9)) { received.append($0.value) } }
    try await second.value
    #expect(received == [0, 1, 2, 3, 4])
    // Closing ends the wait.
    try await queue.enqueue([QueueInput(0), QueueInput(1)])
    let waiting = Task { try await queue.enqueue(2) }
    for _ in 0..<50 { await Task.yield() }
    try await queue.close()
    await expectStoreError(.closed) { try await waiting.value }
  }

  @Test func `oldest items are dropped`() async throws {
    let queue = try await QueueBench().open(
      QueueConfiguration(capacity: QueueCapacity(items: 2, policy: .dropOldest)))
    for number in 0..<2 { try await queue.enqueue(number) }
    #expect(try await queue.enqueue(2).droppedCount == 1)
    let leased = try #require(try await queue.receive(lease: .seconds(5)))
    #expect(leased.value == 1)
    #expect(try await queue.enqueue(3).droppedCount == 1)
    #expect(try await queue.entries(in: .all, limit: 9).map(\.value) == [1, 3])
    let statistics = try await queue.storeStatistics()
    #expect(statistics.details.first { $0.name == "dropped" }?.value == 2)
  }

  @Test func `the age of the oldest item`() async throws {
    let bench = QueueBench()
    let queue = try await bench.open()
    #expect(try await queue.oldestAge() == nil)
    try await queue.enqueue(1)
    bench.clock.advance(by: .seconds(90))
    try await queue.enqueue(2)
    #expect(try await queue.oldestAge() == .seconds(90))
  }

  @Test func `removed segments lose no items`() async throws {
    for durability in Durability.File.allCases {
      let bench = QueueBench()
      let configuration = QueueConfiguration(segmentSize: 4096)
      var queue = try await bench.open(configuration, durability: durability)
      // An old item that stays, and a key that is remembered, must not keep all segments.
      try await queue.enqueue(-1, id: "old", after: .seconds(1_000_000))
      try await queue.enqueue(-2, id: "remembered")
      let first = try #require(try await queue.receive(lease: .seconds(5)))
      try await queue.acknowledge(first.receipt)
      for round in 0..<60 {
        try await queue.enqueue((0..<20).map { QueueInput(round * 20 + $0) })
        let deliveries = try await queue.receive(max: 100, lease: .seconds(5))
        #expect(deliveries.map(\.value) == (0..<20).map { round * 20 + $0 })
        #expect(try await queue.acknowledge(deliveries.map(\.receipt)).isEmpty)
      }
      #expect(try bench.names.filter { $0.hasPrefix("segment") }.count < 8)
      let size = try await queue.storeStatistics().bytesOnDisk
      #expect(try #require(size) < 6 * 4096)
      try await queue.synchronize()
      bench.disk.losePower()
      queue = try await bench.open(configuration, durability: durability)
      #expect(try await queue.enqueue(0, id: "remembered").isDuplicate)
      #expect(try await queue.entries(in: .all, limit: 9).map(\.value) == [-1])
      try await queue.compact()
      #expect(try bench.names.filter { $0.hasPrefix("segment") }.count <= 2)
      #expect(try await queue.value(forKey: "old") == -1)
      #expect(try await queue.verify().findings.isEmpty == true)
      try await queue.close()
    }
  }

  @Test func `a backup is a queue`() async throws {
    let bench = QueueBench()
    let queue = try await bench.open(QueueConfiguration(segmentSize: 4096))
    try await queue.enqueue((0..<200).map { QueueInput($0) })
    let leased = try await queue.receive(max: 2, lease: .seconds(100))
    try await queue.backup(to: "/copy", compacting: false)
    await expectStoreError(.invalidArgument) { try await queue.backup(to: "/copy") }
    let copy = try await QueueStore<Int>(
      path: "/copy", codec: .cbor(), fileSystem: bench.disk, environment: QueueEnvironment(now: { bench.clock.date }))
    #expect(try await copy.count() == 200)
    #expect(!copy.recovery.hasDamage)
    #expect(try await copy.acknowledge(leased.map(\.receipt)).isEmpty)
    #expect(try await queue.counts().leased == 2)
  }

  @Test func `invalid arguments`() async throws {
    let bench = QueueBench()
    let queue = try await bench.open()
    await expectStoreError(.invalidArgument) { try await queue.receive(max: 0, lease: .seconds(1)) }
    await expectStoreError(.invalidArgument) { try await queue.receive(lease: .zero) }
    await expectStoreError(.invalidArgument) { try await queue.enqueue(1, after: .seconds(-1)) }
    await expectStoreError(.invalidKey) { try await queue.enqueue(1, id: "") }
    await expectStoreError(.locked) { try await bench.open() }
    for configuration in [
      QueueConfiguration(policy: QueuePolicy(maximumDeliveries: 0)),
      QueueConfiguration(policy: QueuePolicy(duplicateWindow: .seconds(-1))),
      QueueConfiguration(capacity: QueueCapacity(items: 0)), QueueConfiguration(capacity: QueueCapacity(bytes: 0)),
      QueueConfiguration(segmentSize: 100),
    ] {
      await expectStoreError(.invalidArgument) { try await bench.open(configuration) }
    }
  }
}
