import Foundation
import Larder
import LarderCBOR
import LarderQueue
import LarderTesting
import Synchronization
import TestSupport
import Testing

/// Undecodable items, programs that can decode no item, and servers that are down.
@Suite(.timeLimit(.minutes(60))) struct QueuePoisonTests {
  /// An item that crashes its decoder if its value is 0.
  struct Trap: Codable, Sendable {
    var number: Int

    init(_ number: Int) { self.number = number }

    init(from decoder: any Decoder) throws {
      number = try decoder.singleValueContainer().decode(Int.self)
      if number == 0 { kill(getpid(), SIGKILL) }
    }

    func encode(to encoder: any Encoder) throws {
      var container = encoder.singleValueContainer()
      try container.encode(number)
    }
  }

  @Test func `an item that crashes its decoder uses up its deliveries`() async throws {
    let folder = try TemporaryFolder()
    let path = folder.path("queue")
    do {
      let queue = try await QueueStore<Trap>(path: path)
      for number in 0..<4 { try await queue.enqueue(Trap(number)) }
      try await queue.close()
    }
    for _ in 0..<5 {
      await #expect(processExitsWith: .signal(SIGKILL)) { [path = path as String] in
        let queue = try await QueueStore<Trap>(path: path, leases: .void)
        _ = try await queue.receive(lease: .seconds(60))
      }
    }
    let queue = try await QueueStore<Trap>(path: path, leases: .void)
    #expect(try await queue.receive(max: 9, lease: .seconds(60)).map(\.value.number) == [1, 2, 3])
    #expect(try await queue.counts() == QueueCounts(leased: 3, dead: 1))
    try await queue.close()
    let numbers = try await QueueStore<Int>(path: path)
    let letter = try #require(try await numbers.deadLetters().first)
    #expect(try letter.reason == .tooManyDeliveries && letter.attempts == 5 && letter.value.get() == 0)
    try await numbers.close()
  }

  /// Fills a queue of bytes.
  ///
  /// Bytes with the highest bit set are not numbers.
  private static func fill(_ bench: QueueBench, _ items: [UInt8]) async throws {
    let raw = try await QueueStore<[UInt8]>(
      path: "/queue", codec: RenamedCodec(), fileSystem: bench.disk, environment: .manual(bench.clock))
    try await raw.enqueue(items.map { QueueInput([$0]) })
    try await raw.close()
  }

  @Test func `a program that can decode nothing makes no dead letters`() async throws {
    let bench = QueueBench()
    try await QueuePoisonTests.fill(bench, [UInt8](repeating: 0xFF, count: 200))
    for _ in 0..<8 {
      let queue = try await bench.open(QueueConfiguration(policy: QueuePolicy(maximumDeliveries: 2)))
      await expectStoreError(.corrupted) { try await queue.receive(lease: .seconds(30)) }
      await expectStoreError(.corrupted) { try await queue.receive(max: 100, lease: .seconds(30)) }
      // The failed items are delayed, so that those after them come next.
      #expect(try await queue.counts() == QueueCounts(waiting: 97, delayed: 103))
      bench.clock.advance(by: .seconds(30))
      #expect(try await queue.counts() == QueueCounts(waiting: 200))
      // A waiting consumer gets two errors. Then it ends, too.
      var deliveries = queue.deliveries(lease: .seconds(30)).makeAsyncIterator()
      for _ in 0..<2 {
        let result = try await deliveries.next()
        expectStoreError(.corrupted) { try result?.get() }
      }
      await expectStoreError(.corrupted) { _ = try await deliveries.next() }
      bench.clock.advance(by: .seconds(30))
      #expect(try await queue.counts() == QueueCounts(waiting: 200))
      try await queue.close()
    }
    let raw = try await QueueStore<[UInt8]>(path: "/queue", codec: RenamedCodec(), fileSystem: bench.disk)
    let received = try await raw.receive(max: 999, lease: .seconds(5))
    #expect(received.count == 200 && received.allSatisfy { $0.attempt == 1 })
  }

  @Test(arguments: [3, nil]) func `a bad item becomes a dead letter and can be requeued`(_ maximum: Int?) async throws {
    let bench = QueueBench()
    try await QueuePoisonTests.fill(bench, [0xFF, 1, 2, 3])
    let deadLetters = Locked<[DeadLetterEvent]>([])
    let queue = try await QueueStore<Int>(
      path: "/queue", codec: .cbor(),
      configuration: QueueConfiguration(policy: QueuePolicy(maximumDeliveries: maximum)),
      fileSystem: bench.disk, environment: .manual(bench.clock)
    ) { deadLetter in deadLetters.withLock { $0.append(deadLetter) } }
    // The items after it are delivered in the meantime.
    #expect(try await queue.receive(max: 3, lease: .seconds(900)).map(\.value) == [1, 2, 3])
    var rounds = 1
    while try await queue.counts().dead == 0, rounds < 20 {
      bench.clock.advance(by: .seconds(60))
      #expect(try await queue.receive(lease: .seconds(900)) == nil)
      rounds += 1
    }
    #expect(rounds == maximum ?? 5)
    #expect(
      deadLetters.withLock { $0.map(\.sequence) } == [1] && deadLetters.withLock { $0.map(\.reason) } == [.undecodable])
    let statistics = try await queue.storeStatistics()
    #expect(statistics.details.first { $0.name == "deadLettered" }?.value == 1)
    #expect(try await queue.requeueDeadLetters() == 1)
    try await queue.close()
    let raw = try await QueueStore<[UInt8]>(
      path: "/queue", codec: RenamedCodec(), leases: .void, fileSystem: bench.disk,
      environment: QueueEnvironment(now: { bench.clock.date }))
    #expect(try await raw.receive(max: 9, lease: .seconds(5)).map(\.value) == [[1], [2], [3], [0xFF]])
  }

  private static func openLocked(
    _ bench: QueueBench, code: StoreError.Code = .keyUnavailable, maximumDeliveries: Int? = 2,
    hasKey: @escaping @Sendable () -> Bool = { false }
  ) async throws -> QueueStore<[UInt8]> {
    try await QueueStore(
      path: "/queue", codec: LockedCodec(code: code, hasKey: hasKey),
      configuration: QueueConfiguration(
        policy: QueuePolicy(maximumDeliveries: maximumDeliveries, retryPolicy: .immediate)),
      fileSystem: bench.disk, environment: .manual(bench.clock))
  }

  @Test func `a closing queue releases items that need a key`() async throws {
    let bench = QueueBench()
    try await expectReleaseWhileClosing { codec in
      try await QueueStore(
        path: "/queue", codec: codec, fileSystem: bench.disk, environment: .manual(bench.clock))
    }
  }

  @Test(arguments: [StoreError.Code.keyUnavailable, .undecodable])
  func `a program that lacks a key makes no dead letters`(_ code: StoreError.Code) async throws {
    let bench = QueueBench()
    var queue = try await QueuePoisonTests.openLocked(bench, code: code)
    try await queue.enqueue([[1], [0xFF], [2]].map { QueueInput($0) })
    // All leases of the call are given back, and none counts.
    let error = await #expect(throws: StoreError.self) { try await queue.receive(max: 3, lease: .seconds(900)) }
    #expect(error?.code == code && error?.key != nil && error?.outcome == .nothingChanged)
    #expect(error?.isRetryable == (code == .keyUnavailable))
    #expect(try await queue.counts() == QueueCounts(waiting: 3))
    let deliveries = try await queue.receive(max: 3, lease: .seconds(900))
    #expect(deliveries.map(\.value) == [[1], [2]] && deliveries.allSatisfy { $0.attempt == 1 })
    #expect(try await queue.acknowledge(deliveries.map(\.receipt)).isEmpty)
    // Even after it has decoded an item.
    for _ in 0..<5 {
      await expectStoreError(code) { try await queue.receive(max: 9, lease: .seconds(900)) }
      await expectStoreError(code) { try await queue.withNext(lease: .seconds(900)) { _ in } }
      #expect(try await queue.counts() == QueueCounts(waiting: 1))
    }
    try await queue.close()
    queue = try await QueuePoisonTests.openLocked(bench, hasKey: { true })
    let delivery = try #require(try await queue.receive(lease: .seconds(900)))
    #expect(delivery.value == [0xFF] && delivery.attempt == 1)
    try await queue.close()
  }

  @Test(arguments: ["receive", "receive 9", "withNext", "deliveries"], [2, nil])
  func `an item that needs a key blocks no other`(_ method: String, maximumDeliveries: Int?) async throws {
    let hasKey = Atomic(false)
    let bench = QueueBench()
    let queue = try await QueuePoisonTests.openLocked(bench, maximumDeliveries: maximumDeliveries) {
      hasKey.load(ordering: .relaxed)
    }
    try await queue.enqueue([[0xFF], [1], [2]].map { QueueInput($0) })
    var iterator = queue.deliveries(lease: .seconds(9)).makeAsyncIterator()
    func next() async throws -> [[UInt8]] {
      switch method {
      case "receive": [try #require(try await queue.receive(lease: .seconds(9))).value]
      case "receive 9": try await queue.receive(max: 9, lease: .seconds(9)).map(\.value)
      case "withNext": [try await queue.withNext(lease: .seconds(9)) { $0.value }]
      default: [try #require(try await iterator.next()).get().value]
      }
    }
    var found: [[UInt8]] = []
    var errors = 0
    while found.count < 2, errors < 9 {
      do {
        found += try await next()
      } catch StoreError.Code.keyUnavailable {
        errors += 1
      }
    }
    #expect(found == [[1], [2]] && errors == 1)
    await expectStoreError(.keyUnavailable) { _ = try await next() }
    // With the key, the items are due immediately, and the order is that of arrival again.
    try await queue.enqueue([[0xFF, 1], [3], [0xFF, 2]].map { QueueInput($0) })
    await expectStoreError(.keyUnavailable) { _ = try await queue.receive(max: 2, lease: .seconds(9)) }
    #expect(try await queue.receive(lease: .seconds(9))?.value == [3])
    await expectStoreError(.keyUnavailable) { _ = try await queue.receive(max: 9, lease: .seconds(9)) }
    hasKey.store(true, ordering: .relaxed)
    try await queue.enqueue([4])
    #expect(try await queue.receive(lease: .seconds(9))?.value == [4])
    let rest = try await queue.receive(max: 9, lease: .seconds(9))
    #expect(rest.map(\.value) == [[0xFF], [0xFF, 1], [0xFF, 2]] && rest.allSatisfy { $0.attempt == 1 })
  }

  /// A thousand starts with the 20 rounds of `make soak`, otherwise a hundred.
  @Test func `a queue survives many starts with and without the key`() async throws {
    var random = SeededGenerator(seed: SeededGenerator.seedOfProcess, purpose: #function)
    let bench = QueueBench()
    var expected: [[UInt8]] = []
    for round in 0..<(TestDepth.isShort ? 100 : 1000) {
      let hasKey = Bool.random(using: &random)
      let queue = try await QueuePoisonTests.openLocked(bench, hasKey: { hasKey })
      let isLocked = expected.contains { $0.first == 0xFF }
      if !hasKey, isLocked {
        await expectStoreError(.keyUnavailable) { _ = try await queue.receive(max: 99, lease: .seconds(900)) }
      } else if Int.random(in: 0..<10, using: &random) == 0 {
        let received = try await queue.receive(max: 999, lease: .seconds(900))
        #expect(received.map(\.value) == expected && received.allSatisfy { $0.attempt == 1 }, "round \(round)")
        #expect(try await queue.acknowledge(received.map(\.receipt)).isEmpty)
        expected = []
      }
      if expected.count < 50 {
        let value: [UInt8] = [Bool.random(using: &random) ? 0xFF : 0, UInt8(round % 251)]
        try await queue.enqueue(value)
        expected.append(value)
      }
      #expect(try await queue.counts() == QueueCounts(waiting: expected.count), "round \(round)")
      try await queue.close()
    }
  }

  @Test func `the key of an item reaches the codec if the producer gave it`() async throws {
    let bench = QueueBench()
    func open() async throws -> QueueStore<[UInt8]> {
      try await QueueStore(
        path: "/queue", codec: NonceCodec(.raw),
        configuration: QueueConfiguration(policy: QueuePolicy(maximumDeliveries: 1)),
        fileSystem: bench.disk, environment: .manual(bench.clock))
    }
    var queue = try await open()
    let generated = try await queue.enqueue([1]).key
    try await queue.enqueue([QueueInput([2], id: "two"), QueueInput([3])])
    try await queue.setValue([4], forKey: "four")
    try await queue.setValue([5], forKey: generated)
    try await queue.update(["two", "six"]) { slots in slots.assign([[22], [6]]) }
    let all: [[UInt8]] = [[5], [22], [3], [4], [6]]
    // Through dead letters, requeueing and reopening.
    for round in 0..<3 {
      #expect(try await queue.verify().findings.isEmpty)
      let deliveries = try await queue.receive(max: 9, lease: .seconds(900))
      #expect(deliveries.map(\.value) == all, "round \(round)")
      for delivery in deliveries { try await queue.release(delivery.receipt) }
      #expect(try await queue.deadLetters().map { try $0.value.get() } == all)
      #expect(try await queue.requeueDeadLetters() == all.count)
      try await queue.compact()
      try await queue.close()
      queue = try await open()
    }
    try await queue.close()
  }

  @Test func `the retry policy`() {
    var generator = SeededGenerator(seed: 1)
    let policy = RetryPolicy(base: .seconds(1), ceiling: .seconds(60), jitter: 0.5)
    for attempt in 1...200 {
      let delay = policy.delay(afterAttempt: attempt, using: &generator)
      let most = Duration.seconds(attempt > 6 ? 60 : 1 << (attempt - 1))
      #expect(delay <= most && delay >= most / 2, "attempt \(attempt)")
    }
    #expect(RetryPolicy.immediate.delay(afterAttempt: 9, using: &generator) == .zero)
    let exact = RetryPolicy(base: .seconds(2), ceiling: .seconds(5), jitter: 0)
    #expect((1...4).map { exact.delay(afterAttempt: $0, using: &generator) } == [2, 4, 5, 5].map { .seconds($0) })
  }

  /// The consumer of the README, with a server that is down for ten minutes.
  @Test func `an outage makes no dead letters`() async throws {
    struct IsDown: Error {}
    let bench = QueueBench()
    let queue = try await bench.open(
      QueueConfiguration(policy: QueuePolicy(maximumDeliveries: nil)), durability: .buffered)
    for number in 0..<100 { try await queue.enqueue(number) }
    let end = bench.clock.date.addingTimeInterval(600)
    let arrived = Locked<Set<Int>>([])
    let attempts = Locked(0)
    let consumer = Task {
      while !Task.isCancelled {
        do {
          try await queue.withNext(lease: .seconds(30)) { delivery in
            attempts.withLock { $0 += 1 }
            guard bench.clock.date >= end else { throw IsDown() }
            arrived.withLock { _ = $0.insert(delivery.value) }
          }
        } catch is IsDown {}
      }
    }
    for _ in 0..<2000 where arrived.withLock({ $0.count }) < 100 {
      // Continues until the consumer waits for the next item that comes back.
      while bench.clock.sleeperCount == 0, arrived.withLock({ $0.count }) < 100 { await Task.yield() }
      bench.clock.advance(by: .milliseconds(500))
    }
    #expect(arrived.withLock { $0.count } == 100)
    // The last item is acknowledged after its closure has ended.
    while try await queue.counts() != QueueCounts() { await Task.yield() }
    // About a dozen attempts per item, not as many as the machine can make.
    #expect(attempts.withLock { $0 } < 2500)
    consumer.cancel()
    // It ends with an error, or between two items.
    _ = await consumer.result
  }

  @Test func `a release that does not count`() async throws {
    let bench = QueueBench()
    let queue = try await bench.open(QueueConfiguration(policy: QueuePolicy(maximumDeliveries: 1)))
    try await queue.enqueue(7)
    for _ in 0..<3 {
      let delivery = try #require(try await queue.receive(lease: .seconds(5)))
      #expect(delivery.attempt == 1)
      try await queue.release(delivery.receipt, after: .seconds(1), countsAsAttempt: false)
      await expectStoreError(.staleReceipt) { try await queue.acknowledge(delivery.receipt) }
      #expect(try await queue.counts() == QueueCounts(delayed: 1))
      bench.clock.advance(by: .seconds(1))
    }
    let delivery = try #require(try await queue.receive(lease: .seconds(5)))
    try await queue.release(delivery.receipt)
    #expect(try await queue.counts() == QueueCounts(dead: 1))
  }

  @Test func `an item that was given back is still received alone`() async throws {
    let bench = QueueBench()
    var queue = try await bench.open(leases: .void)
    try await queue.enqueue((0..<2).map { QueueInput($0) })
    for _ in 0..<2 {
      for _ in 0..<2 { #expect(try await queue.receive(lease: .seconds(5)) != nil) }
      // The consumer crashes.
      try await queue.close()
      queue = try await bench.open(leases: .void)
    }
    for _ in 0..<2 {
      let deliveries = try await queue.receive(max: 2, lease: .seconds(5))
      #expect(deliveries.map(\.value) == [0] && deliveries.allSatisfy(\.isSuspect))
      #expect(try await queue.release(deliveries.map(\.receipt), after: .zero, countsAsAttempt: false).isEmpty)
    }
    // A release that counts is no crash.
    let delivery = try #require(try await queue.receive(lease: .seconds(5)))
    try await queue.release(delivery.receipt, after: .zero)
    #expect(try await queue.receive(lease: .seconds(5))?.isSuspect == false)
  }

  @Test func `long work renews its lease`() async throws {
    let bench = QueueBench()
    let queue = try await bench.open(QueueConfiguration(policy: QueuePolicy(maximumDeliveries: nil)))
    try await queue.enqueue(7)
    try await queue.withNext(lease: .seconds(30), renewsLease: true) { delivery in
      for _ in 0..<20 {
        try await bench.clock.waitForSleepers(1)
        bench.clock.advance(by: .seconds(10))
        while try await queue.receive(lease: .seconds(1)) != nil {
          Issue.record("another consumer received the item")
        }
      }
    }
    #expect(try await queue.counts() == QueueCounts())
    // Renewal stops when the work ends.
    while bench.clock.sleeperCount > 0 { await Task.yield() }
  }
}
