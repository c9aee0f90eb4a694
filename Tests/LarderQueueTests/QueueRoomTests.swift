import Dispatch
import Foundation
import Larder
import LarderTesting
import TestSupport
import Testing

@testable import LarderQueue

/// Producers that wait for room get it as soon as there is some, and block no other caller.
@Suite(.timeLimit(.minutes(60))) struct QueueRoomTests {
  private static func open(_ bench: QueueBench, items: Int) async throws -> QueueStore<Int> {
    try await bench.open(
      QueueConfiguration(capacity: QueueCapacity(items: items, policy: .wait)), durability: .buffered)
  }

  /// Yields until tasks that were just created have run as far as they can.
  private static func settle() async {
    for _ in 0..<200 { await Task.yield() }
  }

  /// Holds a commit open until a gate opens, so calls in the meantime join one group.
  private static func keepBusy(
    _ queue: QueueStore<Int>
  ) async -> (commit: Task<Void, any Error>, gate: DispatchSemaphore) {
    let (begun, beginning) = AsyncStream.makeStream(of: Void.self)
    let gate = DispatchSemaphore(value: 0)
    let commit = Task {
      try await queue.update("a") { _ in
        beginning.finish()
        gate.wait()
      }
    }
    for await _ in begun {}
    return (commit, gate)
  }

  /// Calls that free room, or need none, would wait forever behind those that need it.
  @Test func `calls that need no room do not wait for it`() async throws {
    let queue = try await QueueRoomTests.open(QueueBench(), items: 1)
    try await queue.enqueue(1, id: "a")
    let waiting = Task { try await queue.enqueue(2, id: "b") }
    await QueueRoomTests.settle()
    try await queue.update("a") { $0 = 3 }
    try await queue.setValue(4, forKey: "a")
    #expect(try await queue.enqueue(1, id: "a").isDuplicate)
    #expect(try await queue.value(forKey: "a") == 4)
    try await queue.removeValue(forKey: "a")
    #expect(try await waiting.value.key == "b")
  }

  @Test func `a producer that gives up admits others`() async throws {
    let queue = try await QueueRoomTests.open(QueueBench(), items: 2)
    try await queue.enqueue(1)
    let first = Task { try await queue.enqueue([QueueInput(2), QueueInput(3)]) }
    await QueueRoomTests.settle()
    let second = Task { try await queue.enqueue(4) }
    await QueueRoomTests.settle()
    first.cancel()
    await #expect(throws: CancellationError.self) { try await first.value }
    _ = try await second.value
    #expect(try await queue.peek(max: 9).map(\.value) == [1, 4])
  }

  /// A group takes a few MiB.
  ///
  /// Producers with room, but not in the same group, join the next group.
  @Test(.timeLimit(.minutes(10))) func `producers beyond one group get room together`() async throws {
    let bench = QueueBench()
    let queue = try await QueueStore<[UInt8]>(
      path: "/queue", codec: .raw,
      configuration: QueueConfiguration(capacity: QueueCapacity(bytes: (20 << 20) + 1000, policy: .wait)),
      durability: .buffered, fileSystem: bench.disk, environment: .manual(bench.clock))
    try await queue.enqueue([UInt8](repeating: 1, count: 20 << 20), id: "large")
    let item = [UInt8](repeating: 2, count: 1 << 20)
    let producers = (0..<20).map { _ in Task { try await queue.enqueue(item) } }
    await QueueRoomTests.settle()
    try await queue.removeValue(forKey: "large")
    // No other call to the queue follows, which would resume the producers.
    for producer in producers { #expect(try await !producer.value.isDuplicate) }
    #expect(try await queue.count() == 20)
    try await queue.close()
  }

  /// A producer that is cancelled while its call runs without room is not waited for.
  @Test(.timeLimit(.minutes(10))) func `a producer cancelled during its call is not waited for`() async throws {
    let queue = try await QueueRoomTests.open(QueueBench(), items: 2)
    try await queue.enqueue(1)
    let (busy, gate) = await QueueRoomTests.keepBusy(queue)
    let (begun, beginning) = AsyncStream.makeStream(of: Void.self)
    let secondGate = DispatchSemaphore(value: 0)
    let large = Task {
      try await queue.update(["b", "c"]) { slots in
        beginning.finish()
        secondGate.wait()
        slots.assign([2, 3])
      }
    }
    await QueueRoomTests.settle()
    let small = Task { try await queue.enqueue(4) }
    await QueueRoomTests.settle()
    gate.signal()
    for await _ in begun {}
    large.cancel()
    secondGate.signal()
    await #expect(throws: CancellationError.self) { try await large.value }
    #expect(try await !small.value.isDuplicate)
    try await busy.value
    #expect(try await queue.peek(max: 9).map(\.value) == [1, 4])
  }

  /// Producers are served in order, even if one of them gives up.
  @Test func `the order of producers is kept`() async throws {
    let queue = try await QueueRoomTests.open(QueueBench(), items: 1)
    try await queue.enqueue(0)
    let arrival = ArrivalOrder()
    let waiting = (1...4).map { number in
      Task(executorPreference: arrival) { try await queue.enqueue(number) }
    }
    await QueueRoomTests.settle()
    waiting[1].cancel()
    var received: [Int] = []
    for _ in 0..<4 { received.append(try await queue.withNext(lease: .seconds(5)) { $0.value }) }
    #expect(received == [0, 1, 3, 4])
  }

  /// The room reserved for a write that failed.
  @Test func `the room of a failed write is freed`() async throws {
    let bench = QueueBench()
    let queue = try await QueueRoomTests.open(bench, items: 1)
    let (busy, gate) = await QueueRoomTests.keepBusy(queue)
    // The reserve exists already.
    bench.disk.capacity = (1 << 20) + 300
    // The calls join one group.
    let key = StoreKey(String(repeating: "x", count: 400))
    let failing = Task { try await queue.enqueue(1, id: key) }
    await QueueRoomTests.settle()
    let waiting = Task { try await queue.enqueue(2) }
    await QueueRoomTests.settle()
    gate.signal()
    try await busy.value
    #expect(try await !waiting.value.isDuplicate)
    failing.cancel()
    await #expect(throws: (any Error).self) { try await failing.value }
  }

  /// The effect of a call on another one in the same commit is undone if the first call fails.
  @Test func `nothing is a duplicate of a failed item`() async throws {
    let bench = QueueBench()
    let queue = try await bench.open()
    let (busy, gate) = await QueueRoomTests.keepBusy(queue)
    bench.disk.capacity = 300
    let key = StoreKey(String(repeating: "x", count: 400))
    let tasks = (0..<3).map { number in Task { try await queue.enqueue(number, id: key) } }
    await QueueRoomTests.settle()
    gate.signal()
    try await busy.value
    for task in tasks { await expectStoreError(.full) { try await task.value } }
    #expect(try await queue.count() == 0)
  }

  /// Items that a batch removes again need no room in the end and do not count against it.
  @Test func `a batch needs room only for its final items`() async throws {
    let queue = try await QueueBench().open(QueueConfiguration(capacity: QueueCapacity(items: 1, bytes: 3)))
    try await queue.apply([.set("a", 1), .remove("a"), .set("b", 2), .set("b", 3)])
    #expect(try await queue.keys(in: .all, limit: 9) == ["b"])
    try await queue.apply([.removeAll(.all), .set("c", 4), .removeAll(.all), .set("d", 5)])
    #expect(try await queue.keys(in: .all, limit: 9) == ["d"])
    await expectStoreError(.full) { try await queue.apply([.set("e", 6), .remove("d")]) }
    let error = await expectStoreError(.full) { try await queue.enqueue([QueueInput(1), QueueInput(2)]) }
    #expect(error?.isRetryable == false)
  }

  @Test func `a batch drops no item of its own`() async throws {
    let queue = try await QueueBench().open(
      QueueConfiguration(capacity: QueueCapacity(items: 2, policy: .dropOldest)))
    try await queue.enqueue([QueueInput(1, id: "a"), QueueInput(2, id: "b")])
    #expect(try await queue.receive(lease: .seconds(5))?.value == 1)
    await expectStoreError(.full) { try await queue.enqueue([QueueInput(3), QueueInput(4)]) }
    #expect(try await queue.keys(in: .all, limit: 9) == ["a", "b"])
    let statistics = try await queue.storeStatistics()
    #expect(statistics.details.first { $0.name == "dropped" }?.value == 0)
  }

  /// A codec of small numbers that waits for a gate when it decodes 0.
  private struct GatedCodec: Codec {
    struct GateStayedClosed: Error {}

    let gate = DispatchSemaphore(value: 0)
    let beginning: AsyncStream<Void>.Continuation
    var name: String { "gated" }
    var format: CodecFormat { .binary }

    func encode(_ value: Int, into bytes: inout [UInt8], context: ValueContext) {
      bytes.append(UInt8(value))
    }

    func decode(_ bytes: RawSpan, context: ValueContext) throws -> Int {
      let value = Int(bytes.unsafeLoad(as: UInt8.self))
      if value == 0 {
        beginning.finish()
        guard gate.wait(timeout: .now() + 300) == .success else { throw GateStayedClosed() }
      }
      return value
    }
  }

  @Test func `slow decoding blocks no consumer`() async throws {
    let (begun, beginning) = AsyncStream.makeStream(of: Void.self)
    let codec = GatedCodec(beginning: beginning)
    let queue = try await QueueBench().open(codec: codec)
    try await queue.enqueue(1)
    try await queue.enqueue(0, id: "slow")
    let reading = Task(executorPreference: OwnThreads()) { try await queue.value(forKey: "slow") }
    for await _ in begun {}
    #expect(try await queue.receive(lease: .seconds(5))?.value == 1)
    codec.gate.signal()
    #expect(try await reading.value == 0)
  }

  @Test func `a cancelled consumer takes nothing`() async throws {
    let queue = try await QueueBench().open(durability: .buffered)
    let cancelled = (0..<3).map { _ in
      Task { () -> Int? in
        for try await result in queue.deliveries(lease: .seconds(5)) { return try result.get().value }
        return nil
      }
    }
    await QueueRoomTests.settle()
    let last = Task { try await queue.withNext(lease: .seconds(5)) { $0.value } }
    await QueueRoomTests.settle()
    for task in cancelled { task.cancel() }
    for task in cancelled { await #expect(throws: CancellationError.self) { try await task.value } }
    try await queue.enqueue(7)
    #expect(try await last.value == 7)
    #expect(try await queue.counts() == QueueCounts())
  }

  @Test func `cancellation in the closure releases`() async throws {
    let bench = QueueBench()
    let queue = try await bench.open(durability: .buffered)
    try await queue.enqueue(7)
    let (begun, beginning) = AsyncStream.makeStream(of: Void.self)
    let task = Task {
      try await queue.withNext(lease: .seconds(5)) { _ in
        beginning.finish()
        while true {
          try Task.checkCancellation()
          await Task.yield()
        }
      }
    }
    for await _ in begun {}
    task.cancel()
    await #expect(throws: CancellationError.self) { try await task.value }
    bench.clock.advance(by: .seconds(1))
    #expect(try await queue.receive(lease: .seconds(5))?.attempt == 2)
  }
}
