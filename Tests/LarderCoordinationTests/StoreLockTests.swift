import Larder
import LarderObservation
import LarderTesting
import TestSupport
import Testing

@testable import LarderCoordination

@Suite struct StoreLockTests {
  private let clock = ManualClock()
  private let base = MemoryStore<[UInt8]>()

  @Test func `an uncontended lock costs two commits`() async throws {
    let store = CountedStore(base)
    let locks = try StoreLock(testing: store, clock)
    for number in 1...3 {
      let token = try await locks.withLock("a") { $0 }
      #expect(token.number == UInt64(number))
      #expect(store.commits == 2 * number)
    }
    #expect(try base.keys(in: .all, limit: 9, order: .ascending) == ["locks/ta"])
  }

  @Test func `writes require the token`() async throws {
    let locks = try StoreLock(testing: base, clock)
    let held = try await locks.acquire("a")
    try await locks.update(["x"], requiring: held.token) { $0[0] = [1] }
    try await base.transaction { tx in
      try await tx.require(held.token)
      try tx.setValue([2], forKey: "y")
      return .commit(())
    }
    #expect(try base.values(forKeys: ["x", "y"]) == [[1], [2]])
    let other = try await locks.acquire("b")
    let copy = MemoryStore<[UInt8]>()
    let foreign = try await StoreLock(testing: copy, clock).acquire("a")
    #expect(foreign.token.number == held.token.number)
    #expect(try await held.release())
    #expect(try await !held.release())
    // A released one, one of another store, and one whose record was removed.
    try base.apply([.remove("locks/tb")])
    for token in [held.token, foreign.token, other.token] {
      await expectStoreError(.lockLost) { try await locks.update(["x"], requiring: token) { $0[0] = [3] } }
      await expectStoreError(.lockLost) {
        try await base.transaction { tx in
          // A write of the record in the same transaction does not help.
          try tx.setValue(token.term.record, forKey: token.key)
          try await tx.require(token)
          try tx.setValue([3], forKey: "y")
          return .commit(())
        }
      }
    }
    #expect(try base.values(forKeys: ["x", "y"]) == [[1], [2]])
    #expect(try await !other.release())
  }

  /// The token is checked at the commit, and not only when the transaction reads it.
  @Test func `a lock that is lost during the transaction refuses it`() async throws {
    let locks = try StoreLock(testing: base, clock)
    let held = try await locks.acquire("a")
    await expectStoreError(.lockLost) {
      try await base.transaction { tx in
        try await tx.require(held.token)
        try await held.release()
        try tx.setValue([1], forKey: "x")
        return .commit(())
      }
    }
    #expect(try base.value(forKey: "x") == nil)
  }

  @Test func `a renewal makes no transaction run again`() async throws {
    let locks = try StoreLock(testing: base, clock)
    let held = try await locks.acquire("a")
    let runs = Locked(0)
    try await base.transaction { tx in
      runs.withLock { $0 += 1 }
      try await tx.require(held.token)
      let isRenewed = try await locks.renew(held.token)
      #expect(isRenewed)
      try tx.setValue([1], forKey: "x")
      return .commit(())
    }
    #expect(runs.withLock { $0 } == 1)
  }

  /// A holder that cannot reach its store gives up, and its closure is cancelled.
  @Test func `a lost lock cancels its closure`() async throws {
    let store = CountedStore(base)
    let locks = try StoreLock(testing: store, clock)
    let work = Task { [clock] in
      try await locks.withLock("a") { _ in
        store.fail(with: .ioFailed)
        try await clock.sleep(for: .seconds(86_400))
      }
    }
    try await clock.waitForSleepers(2)
    await clock.advance(by: .milliseconds(100), whileSleeping: 2) { clock.now.offset >= .seconds(3) }
    let error = await expectStoreError(.lockLost) { try await work.value }
    #expect(error?.underlying is CancellationError)
    // The next caller of the same object is not held up.
    store.fail(with: nil)
    let next = Task { try await locks.acquire("a").token.number }
    await clock.advance(by: .milliseconds(500), whileSleeping: 1) { (try? Self.term(base))?.number == 2 }
    #expect(try await next.value == 2)
  }

  /// A holder that was suspended finds its lock taken when it continues.
  @Test func `a taken lock cancels its closure`() async throws {
    let locks = try StoreLock(testing: base, clock)
    let work = Task { [clock] in
      try await locks.withLock("a") { _ in try await clock.sleep(for: .seconds(86_400)) }
    }
    try await clock.waitForSleepers(2)
    // As another process would after a lease.
    try await base.update("locks/ta") { record in
      var state = try LockState(term: record, heartbeat: nil)
      state.begin(owner: 99, lease: 3_000_000_000)
      record = state.term?.record
    }
    clock.advance(by: .seconds(1))
    await expectStoreError(.lockLost) { try await work.value }
    #expect(try Self.term(base)?.owner == 99)
  }

  @Test func `each closure for a loss is called`() async throws {
    let store = CountedStore(base)
    let held = try await StoreLock(testing: store, clock).acquire("a")
    let calls = Notes()
    held.onLoss { calls.append(1) }
    held.onLoss { calls.append(2) }
    store.fail(with: .ioFailed)
    await clock.advance(by: .milliseconds(100), whileSleeping: 1) { held.isLost }
    await yieldUntil { calls.all.count == 2 }
    #expect(calls.all == [1, 2])
    held.onLoss { calls.append(3) }
    #expect(calls.all == [1, 2, 3])
  }

  @Test func `nothing runs under a lock that has ended`() async throws {
    let store = CountedStore(base)
    let locks = try StoreLock(testing: store, clock)
    let (released, lost) = (try await locks.acquire("a"), try await locks.acquire("b"))
    try await released.release()
    store.fail(with: .closed)
    await clock.advance(by: .milliseconds(100), whileSleeping: 1) { lost.isLost }
    for held in [released, lost] {
      await expectStoreError(.lockLost) { try await held.run { _ in #expect(Bool(false)) } }
    }
  }

  /// A renewal that finds the term ended by the release of its own lock is no loss.
  @Test func `a renewal during the release is no loss`() async throws {
    let store = CountedStore(base)
    let held = try await StoreLock(testing: store, clock).acquire("a")
    let calls = Notes()
    held.onLoss { calls.append(1) }
    try await clock.waitForSleepers(1)
    store.afterNextCommit { [clock, store] in
      let updates = store.updates
      clock.advance(by: .seconds(1))
      await yieldUntil { store.updates == updates + 1 }
      // The renewal sleeps again, or has ended.
      for _ in 0..<1000 { await Task.yield() }
    }
    #expect(try await held.release())
    #expect(!held.isLost)
    #expect(calls.all.isEmpty)
  }

  @Test func `a renewal that hangs does not keep the lock`() async throws {
    let store = CountedStore(base)
    let held = try await StoreLock(testing: store, clock).acquire("a")
    try await clock.waitForSleepers(1)
    let mayEnd = Flag()
    store.afterNextCommit { await yieldUntil { mayEnd.isSet } }
    let updates = store.updates
    clock.advance(by: .seconds(1))
    await yieldUntil { store.updates == updates + 1 }
    #expect(!held.isLost)
    // The watch over the renewal has a task of its own, which may not sleep yet.
    try await clock.waitForSleepers(1)
    clock.advance(by: .seconds(3))
    await yieldUntil { held.isLost }
    #expect(held.isLost)
    mayEnd.set()
  }

  @Test func `the error of the closure is passed on`() async throws {
    struct Failure: Error {}
    let locks = try StoreLock(testing: base, clock)
    await #expect(throws: Failure.self) { try await locks.withLock("a") { _ in throw Failure() } }
    #expect(try await locks.tryAcquire("a") != nil)
  }

  // MARK: Waiting

  @Test func `callers of an object take turns`() async throws {
    let locks = try StoreLock(testing: base, clock)
    let order = Notes()
    let first = try await locks.acquire("a")
    let arrival = ArrivalOrder()
    let tasks = (0..<5).map { number in
      Task(executorPreference: arrival) {
        order.append(number)
        try await locks.withLock("a") { _ in order.append(number + 10) }
      }
    }
    // It starts when all of them wait.
    await Task(executorPreference: arrival) {}.value
    #expect(try await locks.tryAcquire("a") == nil)
    #expect(try await locks.tryAcquire("b") != nil)
    try await first.release()
    for task in tasks { try await task.value }
    #expect(order.all == [0, 1, 2, 3, 4, 10, 11, 12, 13, 14])
    // No time has passed, so no waiter has polled.
    #expect(clock.now.offset == .zero)
  }

  // MARK: Dead holders and failures

  /// Attempts without a wait add up.
  @Test func `attempts replace a dead holder`() async throws {
    var held: HeldLock? = try await StoreLock(testing: base, clock).acquire("a")
    #expect(held?.isLost == false)
    held = nil
    let locks = try StoreLock(testing: base, clock)
    for _ in 0..<3 {
      #expect(try await locks.tryAcquire("a") == nil)
      clock.advance(by: .seconds(1))
    }
    #expect(try await locks.tryAcquire("a")?.token.number == 2)
  }

  @Test func `short waits replace a dead holder`() async throws {
    var held: HeldLock? = try await StoreLock(testing: base, clock).acquire("a")
    #expect(held?.isLost == false)
    held = nil
    let locks = try StoreLock(testing: base, clock)
    for _ in 0..<2 {
      let waiter = Task { try await locks.acquire("a") }
      try await clock.waitForSleepers(1)
      waiter.cancel()
      await #expect(throws: CancellationError.self) { try await waiter.value }
      clock.advance(by: .milliseconds(1500))
    }
    #expect(try await locks.acquire("a").token.number == 2)
  }

  @Test func `attempts do not replace a holder that renews`() async throws {
    let holder = try StoreLock(testing: base, clock)
    let held = try await holder.acquire("a")
    let locks = try StoreLock(testing: base, clock)
    for _ in 0..<9 {
      #expect(try await locks.tryAcquire("a") == nil)
      #expect(try await holder.renew(held.token))
      clock.advance(by: .milliseconds(2900))
    }
  }

  @Test func `a short failure does not end a wait`() async throws {
    let store = CountedStore(base)
    let locks = try StoreLock(testing: store, clock)
    store.fail(with: .ioFailed)
    let waiter = Task { try await locks.acquire("a").token.number }
    try await clock.waitForSleepers(1)
    clock.advance(by: .seconds(1))
    try await clock.waitForSleepers(1)
    store.fail(with: nil)
    clock.advance(by: .seconds(1))
    #expect(try await waiter.value == 1)
  }

  @Test func `a failure for a lease ends a wait`() async throws {
    let store = CountedStore(base)
    let locks = try StoreLock(testing: store, clock)
    store.fail(with: .ioFailed)
    let done = Notes()
    let waiter = Task {
      defer { done.append(1) }
      _ = try await locks.acquire("a")
    }
    await clock.advance(by: .milliseconds(100), whileSleeping: 1) { !done.all.isEmpty }
    await expectStoreError(.ioFailed) { try await waiter.value }
    #expect(clock.now.offset >= .seconds(3))
    #expect(clock.now.offset < .seconds(5))
  }

  /// A caller recognizes the term of a commit whose answer got lost.
  @Test func `a grant without an answer is found again`() async throws {
    let store = CountedStore(base)
    let locks = try StoreLock(testing: store, clock)
    store.failAfterNextCommit(isRetryable: true)
    let held = try await locks.acquire("a")
    #expect(held.token.number == 1)
    #expect(clock.now.offset == .zero)
    try await locks.update(["x"], requiring: held.token) { $0[0] = [1] }
    // The lease has begun again.
    #expect(try Self.beats(base) == 1)
  }

  private static func beats(_ base: MemoryStore<[UInt8]>) throws -> UInt64? {
    try base.value(forKey: "locks/ha").map { try LockHeartbeat(record: $0).count }
  }

  private static func term(_ base: MemoryStore<[UInt8]>) throws -> LockTerm? {
    try base.value(forKey: "locks/ta").map { try LockTerm(record: $0) }
  }

  static func claims(_ base: MemoryStore<[UInt8]>) throws -> Int? {
    try base.value(forKey: "locks/ha").map { try LockHeartbeat(record: $0).claims.count }
  }

  @Test func `a report wakes a waiter`() async throws {
    let observed = base.observable()
    #expect(observed.information.reportsAllCommits)
    let (holder, other) = (try StoreLock(testing: observed, clock), try StoreLock(testing: observed, clock))
    let held = try await holder.acquire("a")
    let waiter = Task { try await other.acquire("a").token.number }
    try await clock.waitForSleepers(2)
    try await held.release()
    #expect(try await waiter.value == 2)
    #expect(clock.now.offset == .zero)
  }

  @Test func `a cancelled waiter gives up its place`() async throws {
    let held = try await StoreLock(testing: base, clock).acquire("a")
    let locks = try StoreLock(testing: base, clock)
    let waiter = Task { try await locks.acquire("a") }
    await yieldUntil { (try? Self.claims(base)) == 1 }
    // The second caller of the object waits in the process.
    let second = Task { try await locks.acquire("a") }
    for _ in 0..<10 { await Task.yield() }
    second.cancel()
    waiter.cancel()
    await #expect(throws: CancellationError.self) { try await waiter.value }
    await #expect(throws: CancellationError.self) { try await second.value }
    #expect(try Self.claims(base) == nil)
    try await held.release()
    #expect(try await locks.tryAcquire("a") != nil)
  }

  // MARK: Refusals

  @Test func `invalid uses are refused`() async throws {
    func configured(_ configuration: StoreLockConfiguration) throws -> StoreLock {
      try StoreLock(base, prefix: "l/", configuration: configuration)
    }
    expectStoreError(.invalidArgument) { try configured(StoreLockConfiguration(lease: .zero)) }
    expectStoreError(.invalidArgument) { try configured(StoreLockConfiguration(pollInterval: .seconds(90_000))) }
    let locks = try configured(StoreLockConfiguration())
    await expectStoreError(.invalidKey) { try await locks.acquire(StoreKey(String(repeating: "n", count: 509))) }
    try base.apply([.set("l/ta", [1, 2, 3]), .set("l/tb", [9, 2, 3])])
    await expectStoreError(.corrupted) { try await locks.acquire("a") }
    await expectStoreError(.versionMismatch) { try await locks.tryAcquire("b") }
    var information = base.information
    information.entryLifetime = .untilEvicted
    let evicting = InformedStore(base: base, information: information)
    expectStoreError(.unsupported) { try StoreLock(evicting, prefix: "l/") }
    information = base.information
    information.maximumValueSize = 10
    expectStoreError(.unsupported) { try StoreLock(InformedStore(base: base, information: information), prefix: "l/") }
    // The damaged record holds up no other caller.
    await expectStoreError(.corrupted) { try await locks.acquire("a") }
  }
}

/// A store that describes itself otherwise.
private struct InformedStore<Base: DataStore>: PassingStore {
  let base: Base
  let information: StoreInformation
}
