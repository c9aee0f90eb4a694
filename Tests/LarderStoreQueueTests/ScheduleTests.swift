#if LMDB
import Larder
import LarderTesting
import TestSupport
import Testing

@testable import LarderStoreQueue

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

@Suite struct ScheduleTests {
  private let clock = ManualClock()

  private func makeQueue(_ base: MemoryStore<[UInt8]>) async throws -> StoreQueue<MemoryStore<[UInt8]>, Int> {
    let clock = clock
    return try await StoreQueue(base, prefix: "q/", codec: .json(), environment: .manual(clock))
  }

  /// A schedule whose items are the seconds since the clock's zero.
  private func schedule(
    every interval: Duration, from start: Int = 0, missedRuns: MissedRunPolicy = .runOnce
  ) -> QueueSchedule<Int> {
    let zero = ManualClock().date
    let date = zero.addingTimeInterval(Double(start))
    return QueueSchedule(name: "tick", every: interval, from: date, missedRuns: missedRuns) { due in
      Int(due.timeIntervalSince(zero).rounded())
    }
  }

  private func items(_ queue: StoreQueue<MemoryStore<[UInt8]>, Int>) async throws -> [Int] {
    try await queue.peek(max: 10_000).map(\.value)
  }

  @Test func `each due time has one item`() async throws {
    let queue = try await makeQueue(MemoryStore())
    let schedule = schedule(every: .seconds(10), from: 5, missedRuns: .runAll(atMost: 100))
    #expect(try await queue.enqueueDue(schedule).count == 0)
    clock.advance(by: .seconds(4))
    #expect(try await queue.enqueueDue(schedule).count == 0)
    clock.advance(by: .seconds(1))
    #expect(try await queue.enqueueDue(schedule).count == 1)
    #expect(try await queue.enqueueDue(schedule).count == 0)
    clock.advance(by: .seconds(35))
    #expect(try await queue.enqueueDue(schedule).count == 3)
    #expect(try await items(queue) == [5, 15, 25, 35])
  }

  /// An interruption of a thousand due times, with 30 seconds and with two minutes to the latest of them, and a restart.
  @Test(
    arguments: [
      (MissedRunPolicy.skip, 30, [1000]), (.skip, 120, []), (.runOnce, 120, [1000]), (.runAll(atMost: 1), 120, [1000]),
      (.runAll(atMost: 250), 120, Array(751...1000)), (.runAll(atMost: .max), 120, Array(1...1000)),
    ])
  func `missed due times are treated as the policy says`(_ policy: MissedRunPolicy, _ lateness: Int, _ expected: [Int])
    async throws
  {
    let base = MemoryStore<[UInt8]>()
    let interval = 1000
    let schedule = schedule(every: .seconds(interval), missedRuns: policy)
    let first = try await makeQueue(base)
    try await first.enqueueDue(schedule)
    #expect(try await items(first) == [0])
    clock.advance(by: .seconds(1000 * interval + lateness))
    var queue = try await makeQueue(base)
    #expect(try await queue.enqueueDue(schedule).count == expected.count)
    queue = try await makeQueue(base)
    #expect(try await queue.enqueueDue(schedule).count == 0)
    clock.advance(by: .seconds(interval - lateness))
    #expect(try await queue.enqueueDue(schedule).count == 1)
    #expect(try await items(queue).map { $0 / interval } == [0] + expected + [1001])
  }

  /// A clock that is 30 days ahead for a moment costs one run, and the schedule continues when it is right again, through a
  /// restart.
  @Test(arguments: [30, 60, 86_400]) func `a clock that was ahead costs one run`(_ interval: Int) async throws {
    let base = MemoryStore<[UInt8]>()
    let schedule = schedule(every: .seconds(interval))
    var queue = try await makeQueue(base)
    for _ in 0..<3 {
      try await queue.enqueueDue(schedule)
      clock.advance(by: .seconds(interval))
    }
    let month = 30 * 86_400
    clock.advance(by: .seconds(month))
    #expect(try await queue.enqueueDue(schedule).count == 1)
    clock.advance(by: .seconds(-month))
    #expect(try await queue.enqueueDue(schedule).count == 0)
    queue = try await makeQueue(base)
    for _ in 0..<2 {
      clock.advance(by: .seconds(interval))
      try await queue.enqueueDue(schedule)
    }
    #expect(try await items(queue).map { $0 / interval } == [0, 1, 2, 3 + month / interval, 4, 5])
  }

  @Test func `many processes enqueue each due time once`() async throws {
    let base = MemoryStore<[UInt8]>()
    var queues: [StoreQueue<MemoryStore<[UInt8]>, Int>] = []
    for _ in 0..<8 { queues.append(try await makeQueue(base)) }
    let schedule = schedule(every: .seconds(1), missedRuns: .runAll(atMost: 7))
    for _ in 0..<50 {
      clock.advance(by: .seconds(7))
      try await withThrowingTaskGroup { group in
        for queue in queues { group.addTask { try await queue.enqueueDue(schedule) } }
        try await group.waitForAll()
      }
    }
    #expect(try await items(queues[0]) == Array(7...350))
  }

  @Test func `a clock that is set back enqueues nothing twice`() async throws {
    let queue = try await makeQueue(MemoryStore())
    let schedule = schedule(every: .seconds(10))
    try await queue.enqueueDue(schedule)
    for _ in 0..<3 {
      clock.advance(by: .seconds(10))
      try await queue.enqueueDue(schedule)
    }
    clock.advance(by: .seconds(-25))
    #expect(try await queue.enqueueDue(schedule).count == 0)
    clock.advance(by: .seconds(35))
    try await queue.enqueueDue(schedule)
    #expect(try await items(queue) == [0, 10, 20, 30, 40])
  }

  @Test func `an error of the closure enqueues nothing`() async throws {
    struct Failure: Error {}
    let queue = try await makeQueue(MemoryStore())
    let mayFail = Locked(true)
    let schedule = QueueSchedule<Int>(name: "tick", every: .seconds(1), from: clock.date) { _ in
      if mayFail.withLock({ $0 }) { throw Failure() }
      return 1
    }
    await #expect(throws: Failure.self) { try await queue.enqueueDue(schedule) }
    #expect(try await items(queue).isEmpty)
    mayFail.withLock { $0 = false }
    #expect(try await queue.enqueueDue(schedule).count == 1)
  }

  @Test func `running enqueues when it is due`() async throws {
    let queue = try await makeQueue(MemoryStore())
    let schedule = schedule(every: .seconds(10))
    let task = Task { try await queue.run([schedule]) }
    for count in 1...5 {
      try await clock.waitForSleepers(1)
      #expect(try await items(queue).count == count)
      clock.advance(by: .seconds(10))
      while try await items(queue).count == count { await Task.yield() }
    }
    task.cancel()
    await #expect(throws: CancellationError.self) { try await task.value }
  }

  @Test func `invalid schedules and damaged records are refused`() async throws {
    let base = MemoryStore<[UInt8]>()
    let queue = try await makeQueue(base)
    let short = QueueSchedule<Int>(name: "tick", every: .zero, from: clock.date) { _ in 1 }
    await #expect { try await queue.enqueueDue(short) } throws: { StoreError.Code.invalidArgument ~= $0 }
    let unnamed = QueueSchedule<Int>(name: "", every: .seconds(1), from: clock.date) { _ in 1 }
    await #expect { try await queue.enqueueDue(unnamed) } throws: { StoreError.Code.invalidArgument ~= $0 }
    let never = schedule(every: .seconds(1), missedRuns: .runAll(atMost: 0))
    await #expect { try await queue.enqueueDue(never) } throws: { StoreError.Code.invalidArgument ~= $0 }
    try await base.setValue([1, 2], forKey: "q/ctick")
    await #expect { try await queue.enqueueDue(self.schedule(every: .seconds(1))) } throws: {
      StoreError.Code.corrupted ~= $0
    }
    try await queue.removeSchedule("tick")
    #expect(try await queue.enqueueDue(self.schedule(every: .seconds(1))).count == 1)
  }

  @Test func `due times are multiples of the interval`() {
    let times = DueTimes(interval: 10, start: 3)
    #expect(times.next(after: 2) == 3)
    #expect(times.next(after: 3) == 13)
    #expect(times.next(after: 12) == 13)
    #expect(times.next(after: -7) == 3)
    #expect(times.next(after: -8) == -7)
    #expect(times.next(after: .max - 2) == .max)
    #expect(DueTimes(interval: .max, start: .max).next(after: .min) == .max)
    #expect(DueTimes(interval: 10, start: 0).next(after: .min) < .min + 10)
    for time in -50...50 as ClosedRange<Int64> {
      let next = times.next(after: time)
      #expect(next > time && next <= time + 10 && (next - 3) % 10 == 0)
    }
  }
}
#endif
