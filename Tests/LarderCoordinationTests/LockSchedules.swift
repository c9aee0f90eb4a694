import Larder
import LarderCache
import LarderTesting
import TestSupport
import Testing

@testable import LarderCoordination

/// Locks, elections and idempotency keys that wait, in many schedules, in which time passes only while nothing else can happen.
@Suite(.enabled(if: ScheduledTrial.isAvailable, "this runtime lets no program choose the order of its jobs"))
struct LockSchedules {
  /// The store and the clock of one run.
  private struct Run: Sendable {
    let base = MemoryStore<[UInt8]>()
    let clock: ManualClock

    func makeLocks() throws -> StoreLock { try StoreLock(testing: base, clock) }

    func makeKeys() throws -> IdempotencyKeys<String> {
      try IdempotencyKeys(
        base, prefix: "requests/", codec: .json(String.self),
        configuration: StoreLockConfiguration(lease: .seconds(3), pollInterval: .seconds(1)), clock: clock,
        now: { [clock] in clock.date })
    }

    /// The number of the objects that wait for the lock "a".
    var claims: Int { get throws { try StoreLockTests.claims(base) ?? 0 } }
  }

  /// Runs a closure in a few schedules, in which no other work runs around locks, because renewals are cancelled.
  private func runSchedules(
    _ name: String, _ body: @escaping @Sendable (Run) async throws -> Void
  ) async throws {
    try await TestSupport.runSchedules(name, share: 0.3, switchesAtLocks: false) {
      try await body(Run(clock: $0.clock))
    }
  }

  // MARK: Locks

  @Test func `a holder renews its lock`() async throws {
    try await runSchedules("a holder that renews") { run in
      let store = CountedStore(run.base)
      let held = try await StoreLock(testing: store, run.clock).acquire("a")
      try await run.clock.sleep(for: .milliseconds(9_500))
      try check(store.commits == 10, "\(store.commits) commits")
      try check(!held.isLost, "the lock is lost")
      let other = try await run.makeLocks().tryAcquire("a")
      try check(other == nil, "another one has the lock")
      let wasHeld = try await held.release()
      try check(wasHeld, "the lock was lost")
    }
  }

  @Test func `a dead holder costs one lease`() async throws {
    try await runSchedules("a dead holder") { run in
      var held: HeldLock? = try await run.makeLocks().acquire("a")
      try check(held?.token.number == 1, "another term")
      held = nil
      run.clock.advance(by: .seconds(3600))
      let start = run.clock.now
      let number = try await run.makeLocks().acquire("a").token.number
      let waited = start.duration(to: run.clock.now)
      try check(number == 2 && waited == .seconds(3), "the term \(number) after \(waited)")
    }
  }

  @Test func `objects take turns and poll`() async throws {
    try await runSchedules("objects that take turns") { run in
      let order = Notes()
      let first = try await run.makeLocks().acquire("a")
      try await withThrowingTaskGroup { group in
        for number in 0..<4 {
          let locks = try run.makeLocks()
          group.addTask { try await locks.withLock("a") { _ in order.append(number) } }
          try await yieldUntil { try run.claims == number + 1 }
        }
        try await first.release()
        try await group.waitForAll()
      }
      try check(order.all == [0, 1, 2, 3], "the order is \(order.all)")
      try check(run.clock.now.offset <= .seconds(8), "the last one ends at \(run.clock.now.offset)")
    }
  }

  /// The reads of a cache above another program's writes are old, so a waiter looks in updates.
  @Test func `a cache does not hide a heartbeat`() async throws {
    try await runSchedules("a heartbeat behind a cache") { run in
      let holder = try await run.makeLocks().acquire("a")
      let locks = try StoreLock(testing: run.base.cached(), run.clock)
      async let next = locks.acquire("a").token.number
      try await run.clock.sleep(for: .seconds(6))
      try check(!holder.isLost, "the lock is lost")
      try await holder.release()
      let number = try await next
      try check(number == 2, "the term \(number)")
    }
  }

  @Test(arguments: [false, true]) func `a lost term is followed by another campaign`(bodyReturns: Bool) async throws {
    try await runSchedules("a lost term") { run in
      let store = CountedStore(run.base)
      let election = LeaderElection(try StoreLock(testing: store, run.clock), name: "scheduler")
      let terms = Notes()
      try await election.run { token in
        terms.append(Int(token.number))
        if token.number == 2 { return }
        store.fail(with: .ioFailed)
        defer { store.fail(with: nil) }
        do {
          try await run.clock.sleep(for: .seconds(86_400))
        } catch  where bodyReturns {
          // Work that ends early when it is cancelled.
        }
      }
      try check(terms.all == [1, 2], "the terms are \(terms.all)")
      let next = try await election.locks.tryAcquire("scheduler")
      try check(next != nil, "the lock is not free")
    }
  }

  // MARK: Idempotency keys

  @Test func `repetitions wait for the first request`() async throws {
    try await runSchedules("repetitions that wait") { run in
      let calls = Notes()
      let objects = try (0..<4).map { _ in try run.makeKeys() }
      let outcomes = try await withThrowingTaskGroup(of: String.self) { group in
        for number in 0..<12 {
          group.addTask {
            try await objects[number % 4].perform("k", fingerprint: [1]) {
              calls.append(number)
              try await run.clock.sleep(for: .seconds(5))
              return "\(number)"
            }
          }
        }
        return try await group.reduce(into: Set<String>()) { $0.insert($1) }
      }
      try check(calls.all.count == 1 && outcomes == ["\(calls.all[0])"], "\(calls.all) called, \(outcomes)")
      let keys = try run.base.keys(in: .all, limit: 9, order: .ascending)
      try check(keys == ["requests/ok"], "\(keys)")
    }
  }

  @Test(arguments: [false, true]) func `a repetition waits for a time only`(_ hasObjectOfItsOwn: Bool) async throws {
    try await runSchedules("a repetition with a limit") { run in
      let keys = try run.makeKeys()
      let other = hasObjectOfItsOwn ? try run.makeKeys() : keys
      async let first = keys.perform("k", fingerprint: [1]) {
        try await run.clock.sleep(for: .seconds(10))
        return "a"
      }
      try await run.clock.sleep(for: .milliseconds(100))
      do {
        let outcome = try await other.perform("k", fingerprint: [1], waitLimit: .seconds(5)) { "b" }
        throw Wrong("the outcome is \(outcome)")
      } catch StoreError.Code.stillRunning {}
      let waited = run.clock.now.offset
      try check(waited >= .seconds(5) && waited < .seconds(7), "it waits until \(waited)")
      // The wait leaves no place in the order of the waiters.
      let outcome = try await first
      let again = try await other.perform("k", fingerprint: [1], waitLimit: .seconds(5)) { "b" }
      try check(outcome == "a" && again == "a", "\(outcome), then \(again)")
      // A caller that is cancelled is not told that its time is over.
      let third = try await keys.perform("l", fingerprint: [1], waitLimit: .seconds(5)) { "c" }
      try check(third == "c", third)
    }
  }
}
