import Larder
import LarderCBOR
import LarderQueue
import LarderTesting
import TestSupport
import Testing

/// Listing, requeuing and expiry of dead letters.
@Suite struct QueueDeadLetterTests {
  /// Opens a queue with dead letters that have the identifiers `dead:0` and so on.
  private static func open(
    _ bench: QueueBench, dead count: Int, _ configuration: QueueConfiguration = QueueConfiguration()
  ) async throws -> QueueStore<Int> {
    var configuration = configuration
    configuration.policy.maximumDeliveries = 1
    let queue = try await bench.open(configuration)
    try await queue.enqueue((0..<count).map { QueueInput($0, id: StoreKey("dead:\($0)")) })
    let deliveries = try await queue.receive(max: count, lease: .seconds(5))
    #expect(try await queue.release(deliveries.map(\.receipt)).isEmpty)
    #expect(try await queue.counts() == QueueCounts(dead: count))
    return queue
  }

  @Test func `dead letters are read in pages and requeued together`() async throws {
    let bench = QueueBench()
    let queue = try await QueueDeadLetterTests.open(bench, dead: 2500)
    var pages: [Int] = []
    var page = try await queue.deadLetters(limit: 1000)
    while let last = page.last {
      pages.append(page.count)
      page = try await queue.deadLetters(limit: 1000, after: last.sequence)
    }
    #expect(pages == [1000, 1000, 500])
    // A dead letter whose key is in use stays.
    try await queue.setValue(-1, forKey: "dead:7")
    #expect(try await queue.requeueDeadLetters() == 2499)
    #expect(try await queue.counts() == QueueCounts(waiting: 2500, dead: 1))
    #expect(try await queue.receive(max: 3, lease: .seconds(5)).map(\.value) == [-1, 0, 1])
    #expect(try await queue.requeueDeadLetters() == 0)
  }

  @Test func `an ID is free again after the window`() async throws {
    let bench = QueueBench()
    let queue = try await QueueDeadLetterTests.open(bench, dead: 1)
    bench.clock.advance(by: .seconds(299))
    #expect(try await queue.enqueue(1, id: "dead:0").isDuplicate)
    bench.clock.advance(by: .seconds(1))
    #expect(try await !queue.enqueue(1, id: "dead:0").isDuplicate)
    await expectStoreError(.conflict) { try await queue.requeue(["dead:0"]) }
    #expect(try await queue.counts() == QueueCounts(waiting: 1, dead: 1))
  }

  /// The id of a dead letter is remembered from its death on, whatever becomes of the dead letter.
  @Test(arguments: ["purged", "requeued", "expired", "dropped"]) func `an ID outlives its dead letter`(_ end: String)
    async throws
  {
    let bench = QueueBench()
    let configuration = QueueConfiguration(
      policy: QueuePolicy(deadLetterRetention: end == "expired" ? .seconds(60) : nil),
      capacity: end == "dropped" ? QueueCapacity(items: 2, policy: .dropOldest) : QueueCapacity())
    var queue = try await QueueDeadLetterTests.open(bench, dead: 1, configuration)
    bench.clock.advance(by: .seconds(60))
    switch end {
    case "purged": #expect(try await queue.purgeDeadLetters(["dead:0"]) == 1)
    case "requeued":
      #expect(try await queue.requeue(["dead:0"]) == 1)
      try await queue.removeValue(forKey: "dead:0")
    default: try await queue.enqueue([QueueInput(1), QueueInput(2)])
    }
    #expect(try await queue.counts().dead == 0)
    for _ in 0..<2 {
      #expect(try await queue.enqueue(3, id: "dead:0").isDuplicate)
      try await queue.close()
      queue = try await bench.open()
    }
    bench.clock.advance(by: .seconds(240))
    #expect(try await !queue.enqueue(3, id: "dead:0").isDuplicate)
    try await queue.close()
  }

  @Test func `dead letters expire`() async throws {
    let bench = QueueBench()
    let configuration = QueueConfiguration(policy: QueuePolicy(deadLetterRetention: .seconds(3600)))
    var queue = try await QueueDeadLetterTests.open(bench, dead: 3, configuration)
    bench.clock.advance(by: .seconds(3599))
    try await queue.enqueue(1)
    #expect(try await queue.counts().dead == 3)
    try await queue.close()
    bench.clock.advance(by: .seconds(1))
    queue = try await bench.open(configuration)
    try await queue.enqueue(2)
    #expect(try await queue.counts() == QueueCounts(waiting: 2))
    let statistics = try await queue.storeStatistics()
    #expect(statistics.details.first { $0.name == "deadExpired" }?.value == 3)
    // The removal is permanent, whatever the options of the next opening are.
    bench.disk.losePower()
    queue = try await bench.open()
    #expect(try await queue.counts() == QueueCounts(waiting: 2))
  }

  @Test func `dead letters count towards the capacity`() async throws {
    let bench = QueueBench()
    var configuration = QueueConfiguration(capacity: QueueCapacity(items: 3))
    var queue = try await QueueDeadLetterTests.open(bench, dead: 2, configuration)
    try await queue.enqueue(1)
    await expectStoreError(.full) { try await queue.enqueue(2) }
    // Requeuing takes no room.
    #expect(try await queue.requeue(["dead:0"]) == 1)
    try await queue.purgeDeadLetters()
    try await queue.enqueue(2)
    try await queue.close()
    configuration.capacity.policy = .dropOldest
    queue = try await bench.open(configuration)
    try await queue.removeAll(in: .all)
    try await queue.close()
    // The ids are remembered, although their dead letters were requeued and purged.
    bench.clock.advance(by: .seconds(300))
    queue = try await QueueDeadLetterTests.open(bench, dead: 2, configuration)
    for number in 10..<13 { try await queue.enqueue(number) }
    // Dead letters are dropped first.
    #expect(try await queue.counts() == QueueCounts(waiting: 3))
    #expect(try await queue.peek(max: 9).map(\.value) == [10, 11, 12])
  }

  /// Requeued dead letters keep their payloads in old segments, even if those would otherwise be removed.
  @Test func `requeued items survive the cleaning`() async throws {
    let bench = QueueBench()
    let configuration = QueueConfiguration(policy: QueuePolicy(duplicateWindow: .zero), segmentSize: 4096)
    var queue = try await QueueDeadLetterTests.open(bench, dead: 3, configuration)
    #expect(try await queue.requeue(["dead:1"]) == 1)
    let delivery = try #require(try await queue.receive(lease: .seconds(1_000_000)))
    for round in 0..<60 {
      try await queue.enqueue((0..<20).map { QueueInput(1000 + round * 20 + $0) })
      let deliveries = try await queue.receive(max: 20, lease: .seconds(5))
      #expect(try await queue.acknowledge(deliveries.map(\.receipt)).isEmpty)
      if round % 20 == 19 {
        bench.disk.losePower()
        queue = try await bench.open(configuration)
      }
    }
    #expect(try await queue.counts() == QueueCounts(leased: 1, dead: 2))
    #expect(try await queue.value(forKey: "dead:1") == 1)
    #expect(try await queue.deadLetters().map { try $0.value.get() } == [0, 2])
    try await queue.acknowledge(delivery.receipt)
    try await queue.close()
    queue = try await bench.open(configuration)
    #expect(try await queue.counts() == QueueCounts(dead: 2))
  }
}
