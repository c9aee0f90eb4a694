import Larder
import LarderTesting
import TestSupport
import Testing

@testable import LarderBatching

/// A base whose errors a retry may mend.
@Suite(.timeLimit(.minutes(60))) struct WriteBehindOutageTests: WriteBehindSuite {
  let clock = ManualClock()
  let base = PickyStore<Int>().faulty()

  /// An error that a server reports while it is down.
  private static func outage(_ code: StoreError.Code = .ioFailed, outcome: StoreError.Outcome = .nothingChanged)
    -> StoreError
  {
    StoreError(code, during: .apply, message: "the base is down", isRetryable: true, outcome: outcome)
  }

  /// Moves the clock by steps of a second, each after the flusher has gone to sleep.
  private func pass(seconds: Int) async throws {
    for _ in 0..<seconds {
      try await clock.waitForSleepers(1)
      clock.advance(by: .seconds(1))
    }
  }

  /// Moves the clock in steps of a second, each after a task has gone to sleep, until a condition holds.
  private func pass(until condition: () throws -> Bool) async throws {
    while try !condition() {
      if clock.sleeperCount > 0 { clock.advance(by: .seconds(1)) }
      await Task.yield()
    }
  }

  /// Ten minutes in which every write fails lose nothing, and reads show the newest value.
  @Test(arguments: [StoreError.Code.ioFailed, .full], [StoreError.Outcome.nothingChanged, .unknown])
  func `an outage loses nothing`(code: StoreError.Code, outcome: StoreError.Outcome) async throws {
    let told = Locked(0)
    let store = base.writeBehind(bounds: BatchBounds(changes: 50), maximumAge: .seconds(1), clock: clock) { _ in
      told.withLock { $0 += 1 }
    }
    try picky.base.apply([.set("k0", -1)])
    picky.refuse { _, _ in Self.outage(code, outcome: outcome) }
    for second in 0..<600 {
      if second < 40 {
        try await store.setValue(second, forKey: StoreKey("k\(second % 20)"))
        #expect(try await store.value(forKey: StoreKey("k\(second % 20)")) == second)
      }
      try await pass(seconds: 1)
    }
    #expect(store.statistics().pendingChanges == 40)
    #expect(store.statistics().oldestAge == .seconds(600))
    #expect(store.statistics().failedAttempts > 500)
    #expect(store.retriedError?.code == code)
    #expect(try await store.value(forKey: "k0") == 20)
    // A few attempts a second, even of a full disk, whose errors are tried in parts.
    #expect(picky.attempts < 600 * 40)
    picky.refuse(nil)
    try await pass { store.isIdle }
    try await store.flush()
    let expected = (0..<20).map { (StoreKey("k\($0)"), $0 + 20) }
    #expect(try contents() == Dictionary(uniqueKeysWithValues: expected))
    #expect(store.statistics().failedAttempts == 0 && store.retriedError == nil)
    #expect(told.withLock { $0 } == 0)
    #expect(store.takeFailures().isEmpty)
    try await store.close()
  }

  @Test func `delays double up to the maximum`() async throws {
    let store = store(
      retries: WriteBehindRetryPolicy(firstDelay: .milliseconds(10), maximumDelay: .milliseconds(15)))
    picky.refuse { _, _ in Self.outage() }
    try await store.setValue(1, forKey: "a")
    let flushing = Task { try await store.flush() }
    for (attempt, delay) in [10, 15, 15, 15].enumerated() {
      await yieldUntil { store.statistics().failedAttempts == attempt + 1 }
      try await clock.waitForSleepers(1)
      clock.advance(by: .milliseconds(delay - 1))
      #expect(picky.attempts == attempt + 1)
      clock.advance(by: .milliseconds(1))
    }
    await yieldUntil { store.statistics().failedAttempts == 5 }
    picky.refuse(nil)
    try await clock.waitForSleepers(1)
    clock.advance(by: .milliseconds(15))
    try await flushing.value
    #expect(try contents() == ["a": 1])
  }

  @Test func `full bounds make writers wait`() async throws {
    let store = store(bounds: BatchBounds(changes: 3))
    picky.refuse { _, _ in Self.outage() }
    for key in ["a", "b", "c"] { try await store.setValue(1, forKey: StoreKey(key)) }
    let waiting = Task { try await store.setValue(1, forKey: "d") }
    let cancelled = Task { try await store.setValue(1, forKey: "e") }
    await yieldUntil { store.statistics().waitingCallers == 2 }
    try await pass(seconds: 60)
    #expect(store.statistics().waitingCallers == 2)
    cancelled.cancel()
    await #expect(throws: CancellationError.self) { try await cancelled.value }
    picky.refuse(nil)
    try await pass { store.statistics().waitingCallers == 0 }
    try await waiting.value
    // One of the changes can still wait for its next attempt, if it was refused just before.
    try await pass { store.isIdle }
    try await store.flush()
    #expect(try contents() == ["a": 1, "b": 1, "c": 1, "d": 1])
  }

  /// A change whose entry another program locks, and one that can never be written, among good changes.
  @Test(arguments: [true, false]) func `good changes are written beside others`(namesKey: Bool) async throws {
    let store = store(retries: WriteBehindRetryPolicy(readRetries: 3))
    let isLocked = Locked(true)
    picky.refuse { batch, _ in
      for case .set(let key, let value) in batch.changes {
        if value == -1 { return StoreError(.encodingFailed, during: .apply, key: key, message: "the value is refused") }
        guard key == "locked", isLocked.withLock({ $0 }) else { continue }
        return StoreError(
          .timedOut, during: .apply, key: namesKey ? key : nil, message: "another program locks it", isRetryable: true)
      }
      return nil
    }
    for number in 0..<40 { try await store.setValue(number, forKey: StoreKey("k\(number)")) }
    try await store.apply([.set("locked", 1), .set("with", 1)])
    try await store.setValue(-1, forKey: "refused")
    for number in 40..<80 { try await store.setValue(number, forKey: StoreKey("k\(number)")) }
    await yieldUntil { store.statistics().pendingChanges == 83 }
    try await pass { store.statistics().pendingChanges == 2 }
    #expect(try contents().count == 80)
    // The waiting one is readable, and new changes pass it.
    #expect(store.statistics().pendingChanges == 2)
    #expect(try await store.values(forKeys: ["locked", "with"]) == [1, 1])
    try await store.setValue(7, forKey: "new")
    try await pass { store.statistics().pendingChanges == 2 }
    #expect(try contents()["new"] == 7)
    try await pass { store.statistics().failedAttempts > 4 }
    // Scans elsewhere do not wait. In its range they throw the error, and so does an update.
    #expect(try await store.count(in: .prefix("k")) == 80)
    await expectStoreError(.timedOut) { try await store.count(in: .all) }
    await expectStoreError(.timedOut) { try await store.values(forKeys: ["with", "k0"]) }
    await expectStoreError(.timedOut) { try await store.update("other") { $0 = 1 } }
    // A later change to one of its keys is written first and not overwritten.
    try await store.setValue(9, forKey: "with")
    try await pass { store.statistics().pendingChanges == 1 }
    #expect(try contents()["with"] == 9)
    isLocked.withLock { $0 = false }
    try await pass { store.isIdle }
    await expectStoreError(.encodingFailed) { try await store.flush() }
    #expect(try contents()["locked"] == 1 && contents()["with"] == 9)
    #expect(store.takeFailures().map(\.changes) == [[.set("refused", -1)]])
    #expect(try await store.count(in: .all) == 83)
    try await store.close()
  }

  @Test func `operations that need the base fail after some retries`() async throws {
    let store = store(retries: WriteBehindRetryPolicy(readRetries: 2))
    picky.refuse { _, _ in Self.outage() }
    try await store.setValue(1, forKey: "a")
    let scan = Task { try await store.count(in: .all) }
    let update = Task { try await store.update("b") { $0 = 1 } }
    await yieldUntil { store.statistics().failedAttempts == 1 && store.statistics().waitingCallers == 1 }
    try await pass { store.statistics().failedAttempts >= 4 }
    let error = await expectStoreError(.ioFailed) { try await scan.value }
    #expect(error?.isRetryable == true)
    await expectStoreError(.ioFailed) { try await update.value }
    // Later ones fail immediately, and a flush can be cancelled.
    await expectStoreError(.ioFailed) { try await store.count(in: .all) }
    let flushing = Task { try await store.flush() }
    await expectStoreError(.ioFailed) { try await store.synchronize() }
    try await pass(seconds: 60)
    flushing.cancel()
    await #expect(throws: CancellationError.self) { try await flushing.value }
    #expect(try await store.value(forKey: "a") == 1)
    picky.refuse(nil)
    try await pass { store.isIdle }
    #expect(try await store.update("a") { $0 } == 1)
    try await store.close()
  }

  /// An outage that has filled the bounds, so writes wait, does not make updates wait behind them.
  @Test func `updates fail behind writes that wait for room`() async throws {
    let store = store(bounds: BatchBounds(changes: 1), retries: WriteBehindRetryPolicy(readRetries: 2))
    picky.refuse { _, _ in Self.outage() }
    try await store.setValue(1, forKey: "a")
    let writing = Task { try await store.setValue(2, forKey: "b") }
    await yieldUntil { store.statistics().waitingCallers == 1 }
    let update = Task { try await store.update("c") { $0 = 3 } }
    await yieldUntil { store.statistics().waitingCallers == 2 }
    try await pass { store.statistics().failedAttempts >= 4 }
    #expect(store.statistics().waitingCallers == 1)
    await expectStoreError(.ioFailed) { try await store.removeAll() }
    picky.refuse(nil)
    try await pass { store.isIdle }
    try await writing.value
    await expectStoreError(.ioFailed) { try await update.value }
    // The write had room only after the first change was written.
    try await pass { try contents() == ["a": 1, "b": 2] }
    try await store.close()
  }

  @Test func `changes are given up at the age that is set`() async throws {
    let store = store(retries: WriteBehindRetryPolicy(maximumAge: .seconds(30)))
    picky.refuse { _, _ in Self.outage() }
    try await store.setValue(1, forKey: "a")
    try await pass(seconds: 20)
    try await store.setValue(2, forKey: "b")
    #expect(store.takeFailures().isEmpty)
    try await pass { store.statistics().failedChanges == 1 }
    let failures = store.takeFailures()
    #expect(failures.map(\.changes) == [[.set("a", 1)]])
    #expect(failures.map(\.error.code) == [.ioFailed])
    #expect(try await store.value(forKey: "b") == 2)
    picky.refuse(nil)
    try await pass { store.isIdle }
    #expect(try contents() == ["b": 2])
  }

  // MARK: Closing

  @Test func `closing hands over what it cannot write`() async throws {
    let told = Locked<[ChangeBatch<Int>]>([])
    let store = base.writeBehind(maximumAge: .seconds(1), clock: clock) { failure in
      told.withLock { $0.append(failure.changes) }
    }
    picky.refuse { _, _ in Self.outage() }
    try await store.setValue(1, forKey: "a")
    try await store.setValue(2, forKey: "a")
    let closing = Task { try await store.close(within: .seconds(5)) }
    // The clock moves only after an attempt, whose error is the underlying one.
    await yieldUntil { store.isClosed && store.statistics().failedAttempts > 0 }
    try await pass { told.withLock { $0.count } == 1 }
    let error = await expectStoreError(.timedOut) { try await closing.value }
    #expect((error?.underlying as? StoreError)?.code == .ioFailed)
    #expect(told.withLock { $0 } == [[.set("a", 1), .set("a", 2)]])
    #expect(store.takeFailures().map(\.changes.count) == [2])
    await yieldUntil { store.isIdle }
    await expectStoreError(.closed) { try await store.value(forKey: "a") }
    #expect(throws: StoreError.self) { try picky.value(forKey: "a") }
    try await store.close()
  }

  @Test func `a second close reports what it gives up`() async throws {
    let store = store()
    picky.refuse { _, _ in Self.outage() }
    try await store.setValue(1, forKey: "a")
    let patient = Task { try await store.close() }
    await yieldUntil { store.isClosed && store.statistics().failedAttempts > 0 }
    let hasEnded = Locked(false)
    let hasty = Task {
      defer { hasEnded.withLock { $0 = true } }
      try await store.close(within: .seconds(5))
    }
    try await pass { hasEnded.withLock { $0 } }
    await expectStoreError(.timedOut) { try await hasty.value }
    _ = await patient.result
    #expect(store.takeFailures().map(\.changes) == [[.set("a", 1)]])
  }

  @Test func `the time of the policy limits closing`() async throws {
    let store = store(bounds: BatchBounds(changes: 1), retries: WriteBehindRetryPolicy(closingTime: .seconds(5)))
    picky.refuse { _, _ in Self.outage() }
    try await store.setValue(1, forKey: "a")
    let waiting = Task { try await store.setValue(2, forKey: "b") }
    await yieldUntil { store.statistics().waitingCallers == 1 }
    let closing = Task { try await store.close() }
    await yieldUntil { store.isClosed }
    // One sleeps until the limit, the other until the next attempt.
    try await clock.waitForSleepers(2)
    clock.advance(by: .seconds(5))
    await expectStoreError(.timedOut) { try await closing.value }
    await expectStoreError(.closed) { try await waiting.value }
    #expect(store.takeFailures().map(\.changes) == [[.set("a", 1)]])
  }

  /// At the limit, the attempt that runs is cancelled and awaited.
  @Test func `an attempt that hangs is cancelled at the limit`() async throws {
    let store = store()
    base.schedule(.suspension(), on: .apply)
    try await store.setValue(1, forKey: "a")
    let closing = Task { try await store.close(within: .seconds(5)) }
    try await base.waitForSuspended()
    try await clock.waitForSleepers(1)
    clock.advance(by: .seconds(5))
    await yieldUntil { store.queue.withLock { $0.isAbandoned } }
    base.resume()
    do {
      try await closing.value
      #expect(picky.applied == [[.set("a", 1)]])
    } catch StoreError.Code.timedOut {
      #expect(store.takeFailures().map(\.changes) == [[.set("a", 1)]])
      #expect(picky.applied == [])
    }
  }

  @Test func `saved changes are restored`() async throws {
    let rescue = MemoryStore<UnwrittenChange<Int>>()
    let store = store()
    try picky.base.apply([.set("a", 0), .set("b", 0), .set("c", 0)])
    picky.refuse { _, _ in Self.outage() }
    try await store.apply([.set("a", 1), .set("d", 1)])
    try await store.apply([.set("a", 2), .remove("b")])
    let closing = Task { try await store.close(within: .seconds(1), savingTo: rescue) }
    await yieldUntil { store.isClosed }
    try await clock.waitForSleepers(2)
    clock.advance(by: .seconds(1))
    #expect(try await closing.value == 3)
    #expect(store.takeFailures().isEmpty)
    #expect(try rescue.values(forKeys: ["a", "b", "c", "d"]) == [.set(2), .removed, nil, .set(1)])

    let next = PickyStore<Int>()
    try next.base.apply([.set("a", 0), .set("b", 0), .set("c", 0)])
    let restored = next.writeBehind(bounds: BatchBounds(changes: 2), clock: clock)
    #expect(try await restored.restoreChanges(from: rescue) == 3)
    #expect(try next.values(forKeys: ["a", "b", "c", "d"]) == [2, nil, 0, 1])
    #expect(try rescue.count(in: .all) == 0)
    try await restored.close()
  }

  /// If the second store fails as well, the changes are not lost.
  @Test func `changes that cannot be saved become a failure`() async throws {
    let rescue = MemoryStore<UnwrittenChange<Int>>().faulty()
    rescue.schedule(.error(.full), on: .apply)
    let store = store()
    picky.refuse { _, _ in Self.outage() }
    try await store.setValue(1, forKey: "a")
    let closing = Task { try await store.close(within: .seconds(1), savingTo: rescue) }
    await yieldUntil { store.isClosed }
    try await clock.waitForSleepers(2)
    clock.advance(by: .seconds(1))
    await expectStoreError(.full) { try await closing.value }
    #expect(store.takeFailures().map(\.unwrittenChanges) == [[.set("a", .set(1))]])
  }
}
