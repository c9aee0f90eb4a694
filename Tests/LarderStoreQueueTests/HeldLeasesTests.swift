#if LMDB
import Larder
import LarderCBOR
import LarderStoreQueue
import LarderTesting
import TestSupport
import Testing

/// `withNext` holds the lease of its item as a worker does.
@Suite(.timeLimit(.minutes(5))) struct HeldLeasesTests {
  private struct Failure: Error {}

  /// An actor whose state the closure changes.
  private actor Counter {
    private(set) var count = 0

    func consume(_ queue: some DurableQueue<Int>) async throws {
      try await queue.withNext(lease: .seconds(5)) { _ in count += 1 }
    }
  }

  private typealias Queue = TroubledQueue<StoreQueue<MemoryStore<[UInt8]>, Int>>
  private let clock = ManualClock()
  private let bytes = MemoryStore<[UInt8]>()

  private func open() async throws -> Queue {
    TroubledQueue(
      try await StoreQueue(
        bytes, prefix: "q/", codec: .cbor(),
        configuration: StoreQueueConfiguration(policy: QueuePolicy(retryPolicy: .immediate)),
        environment: .manual(clock)))
  }

  /// Causes acknowledging and releasing to fail some times.
  private func fail(_ queue: Queue, _ count: Int, _ outcome: StoreError.Outcome = .nothingChanged) {
    let left = Locked(count)
    let disturb: TroubledQueue.Trouble.Disturb = { operation in
      guard operation == .acknowledge || operation == .release else { return }
      let fails = left.withLock { left in
        defer { left -= 1 }
        return left > 0
      }
      guard fails else { return }
      throw StoreError(.timedOut, during: operation, message: "busy", isRetryable: true, outcome: outcome)
    }
    if outcome == .unknown { queue.trouble.after(disturb) } else { queue.trouble.before(disturb) }
  }

  @Test func `the closure runs on the actor of the caller`() async throws {
    let (queue, counter) = (try await open(), Counter())
    try await queue.enqueue(1)
    try await counter.consume(queue)
    #expect(await counter.count == 1)
  }

  /// The clock jumps, as for a process that was suspended and continues.
  @Test func `the closure is cancelled when the lease is lost`() async throws {
    let (queue, other) = (try await open(), try await open())
    try await queue.enqueue(1)
    let gate = ManualClock()
    let consumer = Task {
      try await queue.withNext(lease: .seconds(30), renewsLease: true) { _ in try await gate.sleep(for: .seconds(1)) }
    }
    try await gate.waitForSleepers(1)
    try await clock.waitForSleepers(1)
    clock.advance(by: .seconds(120))
    let error = await expectStoreError(.staleReceipt) { try await consumer.value }
    #expect(error?.underlying is CancellationError)
    #expect(try await other.receive(lease: .seconds(5))?.attempt == 2)
  }

  /// Only the task of the closure is cancelled.
  @Test func `the caller is not cancelled when the lease is lost`() async throws {
    let queue = try await open()
    try await queue.enqueue(1)
    let gate = ManualClock()
    let consumer = Task {
      do {
        try await queue.withNext(lease: .seconds(30), renewsLease: true) { _ in try await gate.sleep(for: .seconds(1)) }
      } catch StoreError.Code.staleReceipt {
        return Task.isCancelled
      }
      return true
    }
    try await gate.waitForSleepers(1)
    try await clock.waitForSleepers(1)
    clock.advance(by: .seconds(120))
    #expect(try await consumer.value == false)
  }

  @Test(arguments: [false, true], [StoreError.Outcome.nothingChanged, .unknown])
  func `the acknowledgement is repeated`(renews: Bool, outcome: StoreError.Outcome) async throws {
    let queue = try await open()
    try await queue.enqueue(1)
    let calls = Locked(0)
    let isDone = Locked(false)
    fail(queue, 3, outcome)
    let consumer = Task {
      defer { isDone.withLock { $0 = true } }
      try await queue.withNext(lease: .seconds(30), renewsLease: renews) { _ in calls.withLock { $0 += 1 } }
    }
    await clock.advance(by: .milliseconds(500), whileSleeping: renews ? 2 : 1) { isDone.withLock { $0 } }
    try await consumer.value
    #expect(calls.withLock { $0 } == 1)
    #expect(try await queue.counts() == QueueCounts())
  }

  @Test func `the release is repeated`() async throws {
    let queue = try await open()
    try await queue.enqueue(1)
    let isDone = Locked(false)
    fail(queue, 3)
    let consumer = Task {
      defer { isDone.withLock { $0 = true } }
      try await queue.withNext(lease: .seconds(30)) { _ in
        throw Failure()
      }
    }
    await clock.advance(by: .milliseconds(500), whileSleeping: 1) { isDone.withLock { $0 } }
    await #expect(throws: Failure.self) { try await consumer.value }
    #expect(try await queue.counts() == QueueCounts(waiting: 1))
  }

  @Test func `repetition ends with the lease`() async throws {
    let queue = try await open()
    try await queue.enqueue(1)
    let isDone = Locked(false)
    let begin = clock.now.offset
    fail(queue, .max)
    let consumer = Task {
      defer { isDone.withLock { $0 = true } }
      try await queue.withNext(lease: .seconds(30)) { _ in }
    }
    await clock.advance(by: .milliseconds(500), whileSleeping: 1) { isDone.withLock { $0 } }
    await expectStoreError(.timedOut) { try await consumer.value }
    let duration = clock.now.offset - begin
    #expect(duration >= .seconds(30) && duration <= .seconds(32), "\(duration)")
  }

  @Test func `leases that were known to run are not renewed again`() async throws {
    let (queue, other) = (try await open(), try await open())
    try await queue.enqueue((0..<2).map { QueueInput($0) })
    let receipts = try await queue.receive(max: 2, lease: .seconds(30)).map(\.receipt)
    let leases = queue.hold(receipts, lease: .seconds(30), renews: false)
    clock.advance(by: .seconds(9))
    let renewals = Locked(0)
    queue.trouble.before { operation in if operation == .extend { renewals.withLock { $0 += 1 } } }
    #expect(await leases.confirm() == receipts)
    #expect(renewals.withLock { $0 } == 0)
    try await other.acknowledge(receipts[0])
    clock.advance(by: .seconds(1))
    #expect(await leases.confirm() == [receipts[1]])
    clock.advance(by: .seconds(29))
    #expect(try await leases.acknowledge() == [receipts[0]])
  }
}
#endif
