import Dispatch
import Foundation
import Larder
import LarderCBOR
import LarderQueue
import LarderTesting
import TestSupport
import Testing

/// Clock changes, calls that have to wait, and producers that wait for room.
@Suite(.timeLimit(.minutes(60))) struct QueueTimeTests {
  /// A wall clock that can be set while the monotonic clock continues.
  private final class Wall: Sendable {
    private let shift = Locked<TimeInterval>(0)
    let bench: QueueBench

    init(_ bench: QueueBench) { self.bench = bench }

    func set(_ seconds: TimeInterval) { shift.withLock { $0 = seconds } }

    func open() async throws -> QueueStore<Int> {
      try await QueueStore<Int>(
        path: "/queue", codec: .cbor(), fileSystem: bench.disk,
        environment: QueueEnvironment(
          clock: bench.clock, now: { self.bench.clock.date.addingTimeInterval(self.shift.withLock { $0 }) }))
    }
  }

  @Test(arguments: [-3600, 3600] as [TimeInterval])
  func `setting the clock changes nothing`(_ shift: TimeInterval) async throws {
    let bench = QueueBench()
    let wall = Wall(bench)
    let queue = try await wall.open()
    try await queue.enqueue([QueueInput(1, after: .seconds(4)), QueueInput(2)])
    let leased = try #require(try await queue.receive(lease: .seconds(600)))
    wall.set(shift)
    #expect(try await queue.counts() == QueueCounts(delayed: 1, leased: 1))
    bench.clock.advance(by: .seconds(3))
    #expect(try await queue.receive(lease: .seconds(600)) == nil)
    bench.clock.advance(by: .seconds(1))
    #expect(try await queue.receive(lease: .seconds(600))?.value == 1)
    bench.clock.advance(by: .seconds(595))
    try await queue.acknowledge(leased.receipt)
  }

  /// Times written while the wall clock is wrong are correct by that clock.
  @Test func `leases are written in wall time`() async throws {
    let bench = QueueBench()
    let wall = Wall(bench)
    var queue = try await wall.open()
    try await queue.enqueue(1)
    wall.set(3600)
    let leased = try #require(try await queue.receive(lease: .seconds(60)))
    try await queue.close()
    queue = try await wall.open()
    #expect(try await queue.counts() == QueueCounts(leased: 1))
    bench.clock.advance(by: .seconds(59))
    try await queue.acknowledge(leased.receipt)
    try await queue.close()
  }

  /// Short-lived processes after one whose clock was a day ahead.
  ///
  /// The lease ends at its intended time.
  @Test func `a lease of a clock that was ahead ends despite reopenings`() async throws {
    let bench = QueueBench()
    let wall = Wall(bench)
    var queue = try await wall.open()
    try await queue.enqueue(1)
    try await queue.close()
    wall.set(86_400)
    queue = try await wall.open()
    #expect(try await queue.receive(lease: .seconds(2)) != nil)
    try await queue.close()
    wall.set(0)
    for _ in 0..<2 {
      queue = try await wall.open()
      #expect(try await queue.receive(lease: .seconds(1)) == nil)
      try await queue.close()
      bench.clock.advance(by: .seconds(1))
    }
    queue = try await wall.open()
    #expect(try await queue.receive(lease: .seconds(1))?.attempt == 2)
    try await queue.close()
  }

  /// An id that was remembered while the clock was a year ahead is free after the window, counted from the first opening that
  /// sees the right time.
  @Test func `an ID of a clock that was ahead is free after the window`() async throws {
    let bench = QueueBench()
    let wall = Wall(bench)
    wall.set(365 * 86_400)
    var queue = try await wall.open()
    try await queue.enqueue(1, id: "a")
    try await queue.acknowledge(try #require(try await queue.receive(lease: .seconds(2))).receipt)
    try await queue.close()
    wall.set(0)
    for _ in 0..<3 {
      queue = try await wall.open()
      #expect(try await queue.enqueue(1, id: "a").isDuplicate)
      try await queue.close()
      bench.clock.advance(by: .seconds(100))
    }
    queue = try await wall.open()
    #expect(try await !queue.enqueue(1, id: "a").isDuplicate)
    try await queue.close()
  }

  /// A call made during its lease is in time, however long it has to wait for other calls.
  @Test func `a call is judged by its start time`() async throws {
    let bench = QueueBench()
    let queue = try await bench.open()
    try await queue.enqueue([QueueInput(1), QueueInput(2)])
    let deliveries = try await queue.receive(max: 2, lease: .seconds(10))
    let (begun, beginning) = AsyncStream.makeStream(of: Void.self)
    let gate = DispatchSemaphore(value: 0)
    let busy = Task {
      try await queue.update("other") { _ in
        beginning.finish()
        gate.wait()
      }
    }
    for await _ in begun {}
    let arrival = ArrivalOrder()
    let timely = Task(executorPreference: arrival) { try await queue.acknowledge(deliveries[0].receipt) }
    // The call behind it starts when that one has started and waits.
    await Task(executorPreference: arrival) {}.value
    bench.clock.advance(by: .seconds(20))
    let late = Task { try await queue.acknowledge(deliveries[1].receipt) }
    for _ in 0..<200 { await Task.yield() }
    gate.signal()
    try await busy.value
    try await timely.value
    await expectStoreError(.staleReceipt) { try await late.value }
    #expect(try await queue.counts() == QueueCounts(waiting: 1))
  }

  /// A producer that gives up while its call runs, with another producer after it in the same group.
  @Test func `a producer that gives up during its call admits others`() async throws {
    let queue = try await QueueStore<[UInt8]>(
      path: "/queue", codec: .raw,
      configuration: QueueConfiguration(capacity: QueueCapacity(bytes: 1000, policy: .wait)),
      fileSystem: SimulatedFileSystem(seed: 1))
    try await queue.setValue([UInt8](repeating: 0, count: 600), forKey: "x")
    let (begun, beginning) = AsyncStream.makeStream(of: Void.self)
    let (first, second) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
    let busy = Task {
      try await queue.update("z") { _ in
        beginning.finish()
        first.wait()
      }
    }
    for await _ in begun {}
    let (runs, running) = AsyncStream.makeStream(of: Void.self)
    let large = Task {
      try await queue.update("a") { value in
        running.finish()
        second.wait()
        value = [UInt8](repeating: 1, count: 900)
      }
    }
    for _ in 0..<200 { await Task.yield() }
    let small = Task { try await queue.enqueue([UInt8](repeating: 2, count: 100)) }
    for _ in 0..<200 { await Task.yield() }
    first.signal()
    for await _ in runs {}
    large.cancel()
    for _ in 0..<20 { second.signal() }
    await #expect(throws: CancellationError.self) { try await large.value }
    #expect(try await !small.value.isDuplicate)
    try await busy.value
    try await queue.close()
  }
}
