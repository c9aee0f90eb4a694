#if LMDB
import Larder
import LarderCBOR
import LarderTesting
import TestSupport
import Testing

@testable import LarderStoreQueue

/// Queues whose clock was a year ahead, and is right again.
@Suite struct StoreQueueClockTests {
  private typealias Queue = StoreQueue<MemoryStore<[UInt8]>, Int>

  private static let year = Duration.seconds(365 * 86_400)
  private let base = MemoryStore<[UInt8]>()
  private let clock = ManualClock()

  private func open(_ configuration: StoreQueueConfiguration = StoreQueueConfiguration()) async throws -> Queue {
    try await StoreQueue(
      base, prefix: "q/", codec: .cbor(), configuration: configuration, environment: .manual(clock))
  }

  private func finish(_ id: StoreKey, in queue: Queue) async throws {
    try await queue.enqueue(1, id: id)
    try await queue.acknowledge(try #require(try await queue.receive(lease: .seconds(1))).receipt)
  }

  /// The window begins with the first opening that sees the right time, whatever opens the queue after it.
  @Test func `an ID is free after the window through restarts`() async throws {
    clock.advance(by: Self.year)
    try await finish("a", in: open())
    clock.advance(by: Self.year * -1)
    for _ in 0..<3 {
      #expect(try await open().enqueue(1, id: "a").isDuplicate)
      clock.advance(by: .seconds(99))
    }
    #expect(try base.count(in: .prefix("q/d")) == 1)
    clock.advance(by: .seconds(3))
    _ = try await open().receive(lease: .seconds(1))
    #expect(try base.count(in: .prefix("q/d")) == 0)
    #expect(try base.count(in: .prefix("q/u")) == 0)
    #expect(try await !open().enqueue(1, id: "a").isDuplicate)
  }

  /// The clock is set right after an item was planned, and the item is committed after another call has corrected all timers.
  @Test(arguments: [nil, "a"] as [StoreKey?]) func `a commit after the correction is corrected too`(_ id: StoreKey?)
    async throws
  {
    let faulty = base.faulty()
    let queue = try await StoreQueue(faulty, prefix: "q/", codec: .cbor(Int.self), environment: .manual(clock))
    clock.advance(by: Self.year)
    let operation: StoreOperation = id == nil ? .apply : .update
    faulty.schedule(.suspension(), on: operation, number: 1)
    let enqueuing = Task { try await queue.enqueue(7, id: id, after: .seconds(10)).isDuplicate }
    try await faulty.waitForSuspended(1, of: operation)
    clock.advance(by: Self.year * -1)
    #expect(try await queue.receive(lease: .seconds(60)) == nil)
    faulty.resume()
    #expect(try await !enqueuing.value)
    #expect(try await queue.receive(lease: .seconds(60)) == nil)
    clock.advance(by: .seconds(10))
    #expect(try await queue.receive(lease: .seconds(60))?.value == 7)
  }

  /// As above, but the one that enqueues makes no other call, and another has already corrected all timers.
  @Test(arguments: [nil, "a"] as [StoreKey?]) func `a program that only enqueues corrects its timers`(_ id: StoreKey?)
    async throws
  {
    let faulty = base.faulty()
    let producer = try await StoreQueue(faulty, prefix: "q/", codec: .cbor(Int.self), environment: .manual(clock))
    let consumer = try await StoreQueue(base, prefix: "q/", codec: .cbor(Int.self), environment: .manual(clock))
    clock.advance(by: Self.year)
    let operation: StoreOperation = id == nil ? .apply : .update
    faulty.schedule(.suspension(), on: operation, number: 1)
    let enqueuing = Task { try await producer.enqueue(7, id: id, after: .seconds(10)).isDuplicate }
    try await faulty.waitForSuspended(1, of: operation)
    clock.advance(by: Self.year * -1)
    #expect(try await consumer.receive(lease: .seconds(60)) == nil)
    faulty.resume()
    #expect(try await !enqueuing.value)
    clock.advance(by: .seconds(10))
    #expect(try await consumer.receive(lease: .seconds(60))?.value == 7)
  }

  /// Only enqueues the id, with an object that has never read the wrong time.
  @Test func `an open producer corrects the ID that it enqueues`() async throws {
    let producer = try await open()
    clock.advance(by: Self.year)
    try await finish("a", in: open())
    clock.advance(by: Self.year * -1)
    #expect(try await producer.enqueue(1, id: "a").isDuplicate)
    clock.advance(by: .seconds(299))
    #expect(try await producer.enqueue(1, id: "a").isDuplicate)
    clock.advance(by: .seconds(1))
    #expect(try await !producer.enqueue(1, id: "a").isDuplicate)
    #expect(try base.count(in: .prefix("q/u")) == 1, "the timer of the first time is gone")
  }

  @Test(arguments: [true, false]) func `leases and delays end after their durations`(_ restarts: Bool) async throws {
    var queue = try await open()
    clock.advance(by: Self.year)
    try await queue.enqueue([QueueInput(1), QueueInput(2, after: .seconds(3600)), QueueInput(3, after: .seconds(7200))])
    let leased = try #require(try await queue.receive(lease: .seconds(1800)))
    clock.advance(by: Self.year * -1)
    for _ in 0..<2 {
      if restarts { queue = try await open() }
      #expect(try await queue.receive(max: 9, lease: .seconds(60)).isEmpty)
    }
    clock.advance(by: .seconds(1799))
    #expect(try await queue.extend([leased.receipt], lease: .seconds(1)).isEmpty)
    clock.advance(by: .seconds(1))
    #expect(try await queue.receive(max: 9, lease: .seconds(9999)).map(\.value) == [1])
    clock.advance(by: .seconds(1800))
    #expect(try await queue.receive(max: 9, lease: .seconds(9999)).map(\.value) == [2])
    clock.advance(by: .seconds(3600))
    #expect(try await queue.receive(max: 9, lease: .seconds(9999)).map(\.value) == [3])
  }

  /// A clock that is less than a minute behind another one changes nothing.
  @Test func `a minute is tolerated`() async throws {
    let queue = try await open()
    try await queue.enqueue(1, after: .seconds(600))
    let before = try base.entries(in: .prefix("q/t"), limit: 9, order: .ascending)
    clock.advance(by: .seconds(-60))
    #expect(try await open().receive(lease: .seconds(1)) == nil)
    #expect(try await queue.receive(lease: .seconds(1)) == nil)
    #expect(try base.entries(in: .prefix("q/t"), limit: 9, order: .ascending) == before)
    clock.advance(by: .seconds(-1))
    #expect(try await open().receive(lease: .seconds(1)) == nil)
    #expect(try base.entries(in: .prefix("q/t"), limit: 9, order: .ascending) != before)
  }

  @Test(arguments: [true, false]) func `dead letters are removed after their retention`(_ restarts: Bool) async throws {
    let configuration = StoreQueueConfiguration(
      policy: QueuePolicy(maximumDeliveries: 1, deadLetterRetention: .seconds(3600)))
    var queue = try await open(configuration)
    clock.advance(by: Self.year)
    try await queue.enqueue([QueueInput(1), QueueInput(2)])
    for delivery in try await queue.receive(max: 9, lease: .seconds(1)) { try await queue.release(delivery.receipt) }
    clock.advance(by: Self.year * -1)
    for _ in 0..<2 {
      if restarts { queue = try await open(configuration) }
      #expect(try await queue.receive(lease: .seconds(1)) == nil)
      #expect(try await queue.deadLetters().map(\.date) == [clock.date, clock.date])
    }
    clock.advance(by: .seconds(3599))
    #expect(try await queue.receive(lease: .seconds(1)) == nil)
    #expect(try await queue.counts().dead == 2)
    clock.advance(by: .seconds(1))
    #expect(try await queue.receive(lease: .seconds(1)) == nil)
    #expect(try await queue.counts().dead == 0)
  }

  /// More wrong timers than one step corrects, between right ones.
  @Test func `a call corrects many timers in steps`() async throws {
    let queue = try await open()
    let lateDelay = Self.year * 3
    try await queue.enqueue((0..<1500).map { QueueInput($0, after: lateDelay) })
    clock.advance(by: Self.year)
    try await queue.enqueue((0..<1500).map { QueueInput($0, after: Self.year * 2 + .seconds($0)) })
    clock.advance(by: Self.year * -1)
    for _ in 0..<20 { #expect(try await queue.receive(lease: .seconds(1)) == nil) }
    clock.advance(by: Self.year * 2 + .seconds(1500))
    #expect(try await queue.counts() == QueueCounts(waiting: 1500, delayed: 1500))
    clock.advance(by: Self.year)
    #expect(try await queue.counts() == QueueCounts(waiting: 3000))
  }

  // MARK: Dead letters

  /// The number of a dead letter is later than the clock.
  @Test(arguments: [true, false]) func `dead letters of a clock that was ahead are requeued`(_ restarts: Bool)
    async throws
  {
    let configuration = StoreQueueConfiguration(policy: QueuePolicy(maximumDeliveries: 1))
    var queue = try await open(configuration)
    clock.advance(by: Self.year)
    let wrong = try await open(configuration)
    try await wrong.enqueue((1...3).map { QueueInput($0) })
    for delivery in try await wrong.receive(max: 9, lease: .seconds(1)) { try await wrong.release(delivery.receipt) }
    clock.advance(by: Self.year * -1)
    if restarts { queue = try await open(configuration) }
    try await queue.enqueue(0)
    #expect(try await queue.requeueDeadLetters() == 3)
    try await queue.enqueue(4)
    #expect(try await queue.peek(max: 9).map(\.value) == [0, 1, 2, 3, 4])
    #expect(try await queue.deadLetters().isEmpty)
  }

  /// New items come after a dead letter that is requeued by another object, although its number is later than the clock.
  @Test func `opening continues after dead letters`() async throws {
    let configuration = StoreQueueConfiguration(policy: QueuePolicy(maximumDeliveries: 1))
    clock.advance(by: Self.year)
    let wrong = try await open(configuration)
    try await wrong.enqueue(1)
    for delivery in try await wrong.receive(max: 9, lease: .seconds(1)) { try await wrong.release(delivery.receipt) }
    clock.advance(by: Self.year * -1)
    let queue = try await open(configuration)
    let dead = try #require(try await queue.deadLetters().first)
    #expect(try await queue.enqueue(2).sequence > dead.sequence)
  }
}
#endif
