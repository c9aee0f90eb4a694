import Larder
import LarderTesting
import Testing

@Suite(.timeLimit(.minutes(60))) struct ManualClockTests {
  @Test func `time moves only when advanced`() {
    let clock = ManualClock()
    #expect(clock.now == ManualClock.Instant())
    clock.advance(by: .seconds(3))
    clock.advance(by: .milliseconds(500))
    #expect(clock.now.offset == .milliseconds(3_500))
    clock.advance(by: .seconds(-1))
    #expect(clock.now.offset == .milliseconds(2_500))
  }

  @Test func `starts at the given time`() {
    let clock = ManualClock(now: ManualClock.Instant(offset: .seconds(100)))
    #expect(clock.now.duration(to: clock.now.advanced(by: .seconds(5))) == .seconds(5))
    #expect(clock.now < clock.now.advanced(by: clock.minimumResolution))
  }

  @Test func `sleepers wake in the order of their deadlines`() async throws {
    let clock = ManualClock()
    let woken = Log()
    for seconds in [3, 1, 2, 5] {
      // Each sleeper resumes on this actor, in the order of resumption.
      Task { @Witness in
        // Not the standard library's `sleep(for:)`, which leaves the actor.
        try await clock.sleep(until: ManualClock.Instant(offset: .seconds(seconds)))
        woken.entries.withLock { $0.append(seconds) }
      }
    }
    try await clock.waitForSleepers(4)
    clock.advance(by: .milliseconds(999))
    #expect(clock.sleeperCount == 4)
    clock.advance(by: .milliseconds(2_001))
    try #require(clock.sleeperCount == 1)
    while woken.entries.withLock({ $0.count }) < 3 { await Task.yield() }
    #expect(woken.entries.withLock { $0 } == [1, 2, 3])
    clock.advance(by: .seconds(2))
    try #require(clock.sleeperCount == 0)
    while woken.entries.withLock({ $0.count }) < 4 { await Task.yield() }
  }

  @Test func `a deadline at the current time has passed`() async throws {
    let clock = ManualClock()
    try await clock.sleep(until: clock.now)
    try await clock.sleep(for: .seconds(-1))
    clock.advance(by: .seconds(1))
    try await clock.sleep(until: ManualClock.Instant(offset: .seconds(1)))
    #expect(clock.sleeperCount == 0)
  }

  @Test func `a cancelled sleeper wakes immediately`() async throws {
    let clock = ManualClock()
    let task = Task { try await clock.sleep(for: .seconds(1)) }
    try await clock.waitForSleepers(1)
    task.cancel()
    await #expect(throws: CancellationError.self) { try await task.value }
    #expect(clock.sleeperCount == 0)
  }

  @Test func `a cancelled task does not sleep`() async throws {
    let clock = ManualClock()
    for seconds in [-1, 0, 1] {
      let task = Task {
        withUnsafeCurrentTask { $0?.cancel() }
        try await clock.sleep(for: .seconds(seconds))
      }
      await #expect(throws: CancellationError.self) { try await task.value }
    }
    #expect(clock.sleeperCount == 0)
  }

  @Test func `waiting for sleepers can be cancelled`() async throws {
    let clock = ManualClock()
    try await clock.waitForSleepers(0)
    let task = Task { try await clock.waitForSleepers(1) }
    task.cancel()
    await #expect(throws: CancellationError.self) { try await task.value }
  }

  @Test func `many sleepers and advances wake every sleeper`() async throws {
    let clock = ManualClock()
    let done = Log()
    try await withThrowingTaskGroup(of: Void.self) { group in
      for task in 0..<50 {
        group.addTask {
          for step in 0..<5 { try await clock.sleep(for: .milliseconds(task + step)) }
          done.entries.withLock { $0.append(task) }
        }
      }
      group.addTask {
        for _ in 0..<1_000 {
          clock.advance(by: .milliseconds(1))
          await Task.yield()
        }
      }
      try await group.waitForAll()
    }
    #expect(clock.sleeperCount == 0)
  }
}

@globalActor private actor Witness {
  static let shared = Witness()
}

private final class Log: Sendable {
  let entries = Locked<[Int]>([])
}
