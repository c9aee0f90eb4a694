import Larder
import LarderObservation
import LarderTesting
import TestSupport
import Testing

@testable import LarderBatching

@Suite(.timeLimit(.minutes(60))) struct WriteBehindStoreTests: WriteBehindSuite {
  let clock = ManualClock()
  let base = PickyStore<Int>().faulty()

  @Test func `only the last write to a key is made`() async throws {
    let store = store()
    for value in 0..<100 { try await store.setValue(value, forKey: "a") }
    #expect(store.statistics().pendingChanges == 100)
    try await store.flush()
    #expect(picky.applied == [[.set("a", 99)]])
  }

  @Test func `no write joins a batch that is being written`() async throws {
    let store = store()
    base.schedule(.suspension(), on: .apply)
    try await store.setValue(1, forKey: "a")
    let flushing = Task { try await store.flush() }
    try await base.waitForSuspended()
    try await store.setValue(2, forKey: "a")
    #expect(try await store.value(forKey: "a") == 2)
    base.resume()
    try await flushing.value
    #expect(try contents() == ["a": 1])
    #expect(try await store.value(forKey: "a") == 2)
    try await store.flush()
    #expect(picky.appliedSizes == [1, 1])
    #expect(try contents() == ["a": 2])
  }

  @Test func `changes are written when they are old enough`() async throws {
    let store = store()
    try await store.setValue(1, forKey: "a")
    try await clock.waitForSleepers(1)
    clock.advance(by: .milliseconds(600))
    try await store.setValue(2, forKey: "b")
    #expect(store.statistics().oldestAge == .milliseconds(600))
    #expect(picky.attempts == 0)
    clock.advance(by: .milliseconds(400))
    await yieldUntil { store.isIdle }
    #expect(picky.appliedSizes == [2])
    #expect(store.statistics().oldestAge == nil)
  }

  @Test func `changes are written when they fill half the capacity`() async throws {
    let store = store(bounds: BatchBounds(changes: 6))
    for key in ["a", "b"] { try await store.setValue(1, forKey: StoreKey(key)) }
    try await clock.waitForSleepers(1)
    #expect(picky.attempts == 0)
    try await store.setValue(1, forKey: "c")
    await yieldUntil { store.isIdle }
    #expect(picky.appliedSizes == [3])
  }

  @Test func `a slow base delays callers within the bounds`() async throws {
    let store = store(bounds: BatchBounds(changes: 1000, bytes: 100) { _ in 9 })
    base.schedule(.suspension(), on: .apply)
    let tasks = (0..<50).map { number in
      Task { try await store.apply([.set(StoreKey("\(number % 10)"), number)]) }
    }
    try await base.waitForSuspended()
    await yieldUntil { store.statistics().waitingCallers == 40 }
    #expect(store.statistics().pendingBytes == 100)
    #expect(store.statistics().pendingChanges == 10)
    // A caller that waits for room can be cancelled, and its write is not made.
    let cancelled = Task { try await store.setValue(-1, forKey: "x") }
    await yieldUntil { store.statistics().waitingCallers == 41 }
    cancelled.cancel()
    await #expect(throws: CancellationError.self) { try await cancelled.value }
    base.resume()
    for task in tasks { try await task.value }
    try await store.flush()
    #expect(try contents().count == 10)
    #expect(picky.applied.allSatisfy { $0.count <= 10 })
  }

  @Test func `many cancelled callers leave no state`() async throws {
    let store = store(bounds: BatchBounds(changes: 4))
    base.schedule(.suspension(), on: .apply)
    try await store.apply([.set("a", 0), .set("b", 0), .set("c", 0), .set("d", 0)])
    try await base.waitForSuspended()
    let tasks = (0..<10_000).map { number in
      Task { try await store.apply([.set(StoreKey("a\(number)"), 1), .set(StoreKey("b\(number)"), 1)]) }
    }
    await yieldUntil { store.statistics().waitingCallers == 10_000 }
    for (number, task) in tasks.enumerated() where number != 5000 { task.cancel() }
    base.resume()
    var accepted = 0
    for task in tasks {
      switch await task.result {
      case .success: accepted += 1
      case .failure(let error): #expect(error is CancellationError)
      }
    }
    try await store.flush()
    await yieldUntil { store.isIdle }
    let keys = try picky.keys(in: .all, limit: .max, order: .ascending)
    #expect(keys.count == 4 + 2 * accepted)
    #expect(accepted >= 1)
    #expect(store.statistics().pendingChanges == 0)
  }

  @Test func `updates ranges and large batches follow accepted writes`() async throws {
    let store = store(bounds: BatchBounds(changes: 4))
    try await store.setValue(1, forKey: "a")
    #expect(try await store.update("a") { value in value.map { $0 + 1 } } == 2)
    #expect(try contents() == ["a": 1])
    try await store.setValue(5, forKey: "b")
    try await store.apply([.removeAll("b"...), .set("c", 7)])
    #expect(try contents() == ["a": 1, "c": 7])
    try await store.removeValue(forKey: "a")
    try await store.apply(ChangeBatch((0..<9).map { .set(StoreKey("k\($0)"), $0) }))
    #expect(try contents().count == 10)
    #expect(picky.appliedSizes.suffix(2) == [1, 9])
  }

  @Test func `closing writes everything`() async throws {
    let store = store(bounds: BatchBounds(changes: 2))
    base.schedule(.suspension(), on: .apply)
    try await store.apply([.set("a", 1), .set("b", 1)])
    try await base.waitForSuspended()
    let waiting = Task { try await store.setValue(2, forKey: "c") }
    await yieldUntil { store.statistics().waitingCallers == 1 }
    let closing = Task { try await store.close() }
    await yieldUntil { store.isClosed }
    base.resume()
    try await closing.value
    try await waiting.value
    #expect(picky.applied.map(\.count) == [2, 1])
    await expectStoreError(.closed) { try await store.setValue(1, forKey: "c") }
    await expectStoreError(.closed) { try await store.flush() }
    await expectStoreError(.closed) { try await store.value(forKey: "c") }
    try await store.close()
  }

  @Test func `a released store lives until everything is written`() async throws {
    var store: WriteBehindStore? = store()
    weak let observed = store
    try await store?.setValue(1, forKey: "a")
    store = nil
    try await clock.waitForSleepers(1)
    clock.advance(by: .seconds(1))
    await yieldUntil { observed == nil }
    #expect(try contents() == ["a": 1])
  }

  @Test func `a value may call the store in its deinitializer`() async throws {
    final class Caller: Sendable {
      let call: @Sendable () -> Void
      init(_ call: @escaping @Sendable () -> Void) { self.call = call }
      deinit { call() }
    }
    let memory = MemoryStore<Caller>()
    let store = memory.writeBehind(maximumAge: .seconds(1), clock: clock)
    let calls = Locked(0)
    @Sendable func makeCaller() -> Caller {
      Caller { [weak store] in
        calls.withLock { $0 += 1 }
        _ = store?.statistics
      }
    }
    // The second value displaces the first one in the pending changes, and the third one displaces the second one in
    // the base.
    for _ in 0..<2 { try await store.setValue(makeCaller(), forKey: "a") }
    try await store.flush()
    try memory.apply([.set("a", makeCaller())])
    await yieldUntil { calls.withLock { $0 } == 2 }
  }

  @Test func `an observer is called for accepted and for committed changes until it is cancelled`() async throws {
    let store = MemoryStore<Int>().observable().writeBehind(maximumAge: .seconds(1), clock: clock)
    let count = Locked(0)
    let observation = store.observe(.all) { _ in count.withLock { $0 += 1 } }
    try await store.setValue(1, forKey: "a")
    #expect(count.withLock { $0 } == 1)
    try await store.flush()
    #expect(count.withLock { $0 } == 2)
    observation.cancel()
    try await store.setValue(2, forKey: "a")
    try await store.flush()
    #expect(count.withLock { $0 } == 2)
  }

  @Test func `capabilities of the base are reachable`() async throws {
    let able = CapableStore()
    let store = able.writeBehind(maximumAge: .seconds(1), clock: clock)
    #expect("\(store)" == "WriteBehindStore[\(able)]")
    #expect(store.information.name == "able")
    #expect(store.information.durability == .accepted)
    #expect(MemoryStore<Int>().writeBehind().information.durability == .volatile)
    try await store.setValue(5, forKey: "a")
    #expect(try await store.remainingTime(forKey: "b") == nil)
    #expect(try await store.remainingTime(forKey: "a") == .after(.seconds(5)))
    try await store.setValue(6, forKey: "a")
    #expect(try await store.touch("a", timeToLive: .after(.seconds(1))))
    #expect(try await store.purgeExpired(limit: 9) == 3)
    try store.invalidate("b")
    try store.invalidateAll()
    try await store.setValue(7, forKey: "a")
    _ = try await store.storeStatistics()
    try await store.setValue(8, forKey: "a")
    _ = try await store.verify()
    try await store.setValue(9, forKey: "a")
    try await store.compact()
    try await store.setValue(10, forKey: "a")
    try await store.backup(to: "elsewhere", compacting: true)
    try await store.setValue(11, forKey: "a")
    try await store.synchronize()
    try await store.close()
    #expect(
      able.calls == [
        "remainingTime b", "apply 1", "remainingTime a", "apply 1", "touch a", "purgeExpired 9", "invalidate b",
        "invalidateAll", "apply 1", "statistics", "apply 1", "verify", "apply 1", "compact", "apply 1",
        "backup elsewhere true", "apply 1", "synchronize", "close",
      ])
    await expectStoreError(.closed) { try await store.touch("a", timeToLive: nil) }
    await expectStoreError(.closed) { try await store.remainingTime(forKey: "a") }
  }
}
