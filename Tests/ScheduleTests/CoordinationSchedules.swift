import Larder
import LarderCBOR
import LarderCoordination
import LarderTesting
import TestSupport
import Testing

/// Locks, elections and idempotency keys of several programs: no write lands after a later token was issued, and each effect
/// in a transaction happens once.
@Suite(.enabled(if: ScheduledTrial.isAvailable, "this runtime lets no program choose the order of its jobs"))
struct CoordinationSchedules {
  private static let configuration = StoreLockConfiguration(lease: .seconds(3), pollInterval: .seconds(1))

  private static func locks(_ store: some DataStore<[UInt8]>, _ context: ScheduledContext) throws -> StoreLock {
    try StoreLock(store, prefix: "locks/", configuration: configuration, clock: context.clock)
  }

  /// Programs whose stores fail and hang, so that holders lose their locks and do not notice.
  @Test func `no write lands after a later token`() async throws {
    try await runSchedules("fenced writes") { context in
      let base = MemoryStore<[UInt8]>()
      let issued = Shared<UInt64>(0)
      let done = Shared(0)
      try await concurrently(3) { task in
        var generator = context.generator("program \(task)")
        var plan = FaultPlan(seed: context.seed &+ UInt64(task))
        plan.schedule(.yields(upTo: 2), probability: 0.5)
        plan.schedule(.error(.ioFailed), on: .update, probability: 0.1)
        plan.schedule(.error(.ioFailed, .after), on: .update, probability: 0.1)
        let locks = try Self.locks(base.faulty(plan: plan, clock: context.clock), context)
        for _ in 0..<2 {
          do {
            let held = try await locks.acquire("a")
            issued.change { $0 = max($0, held.token.number) }
            // It works for longer than its lease now and then, and does not look whether it has lost the lock.
            for _ in 0..<Int.random(in: 1...3, using: &generator) {
              try await context.clock.sleep(for: .milliseconds(Int.random(in: 0...2_500, using: &generator)))
              let before = issued.value
              try await locks.update(["data"], requiring: held.token) { $0[0] = ($0[0] ?? []) + [1] }
              guard before <= held.token.number else {
                throw Wrong("a write with the token \(held.token.number) landed after \(before) was issued")
              }
              done.change { $0 += 1 }
            }
            try await held.release()
          } catch StoreError.Code.lockLost {
          } catch StoreError.Code.ioFailed {
          }
        }
      }
      // No lock is lost forever, and its counter was never set back.
      let last = try await Self.locks(base, context).withLock("a") { $0.number }
      guard last > issued.value else { throw Wrong("the token \(last) was issued after \(issued.value)") }
      let writes = try base.value(forKey: "data")?.count ?? 0
      guard writes >= done.value else { throw Wrong("\(writes) of \(done.value) writes are there") }
    }
  }

  @Test func `waiters that are cancelled hold up no other`() async throws {
    try await runSchedules("cancelled waiters", switchesAtLocks: false) { context in
      let store = context.slowStore()
      let holders = Shared(0)
      let tasks = try (0..<4).map { _ in
        let locks = try Self.locks(store, context)
        return Task {
          try await locks.withLock("a") { _ in
            let count = holders.change { count in
              count += 1
              return count
            }
            defer { holders.change { $0 -= 1 } }
            guard count == 1 else { throw Wrong("two programs hold the lock") }
            try await context.clock.sleep(for: .milliseconds(500))
          }
        }
      }
      context.mayCancel(tasks[0])
      context.mayCancel(tasks[2])
      for task in tasks {
        do {
          try await task.value
        } catch is CancellationError {
        }
      }
      guard context.clock.now.offset < .seconds(60) else { throw Wrong("a waiter was held up") }
    }
  }

  @Test func `an effect in a transaction happens once`() async throws {
    try await runSchedules("idempotent transactions") { context in
      let store = context.slowStore()
      let keys = try IdempotencyKeys(
        store, prefix: "requests/", codec: .cbor(Int.self), configuration: Self.configuration, clock: context.clock,
        now: { context.clock.date })
      let outcomes = Shared<Set<Int>>([])
      try await concurrently(3) { task in
        let outcome = try await store.transaction { tx in
          .commit(
            try await tx.perform("k", fingerprint: [1], with: keys) {
              let count = try await tx.value(forKey: "effect")?.first ?? 0
              try tx.setValue([count + 1], forKey: "effect")
              return task
            })
        }
        outcomes.change { _ = $0.insert(outcome) }
      }
      let effect = try await store.value(forKey: "effect")
      guard effect == [1], outcomes.value.count == 1 else {
        throw Wrong("the effect is \(effect ?? []), and the outcomes are \(outcomes.value)")
      }
    }
  }

  @Test func `an effect outside happens at most once`() async throws {
    try await runSchedules("idempotent requests", switchesAtLocks: false) { context in
      let store = context.slowStore()
      let effects = Shared(0)
      let tasks = try (0..<3).map { _ in
        let keys = try IdempotencyKeys(
          store, prefix: "requests/", codec: .cbor(Int.self), configuration: Self.configuration, clock: context.clock,
          now: { context.clock.date })
        return Task {
          try await keys.perform("k", fingerprint: [1]) {
            effects.change { $0 += 1 }
            // It does not end early if it is cancelled.
            await Task.yield()
            return 7
          }
        }
      }
      context.mayCancel(tasks[1])
      var outcomes: [Int] = []
      for task in tasks {
        do {
          outcomes.append(try await task.value)
        } catch is CancellationError {
        }
      }
      guard effects.value == 1, outcomes.allSatisfy({ $0 == 7 }), outcomes.count >= 2 else {
        throw Wrong("\(effects.value) effects with the outcomes \(outcomes)")
      }
    }
  }

  @Test func `a value is taken once`() async throws {
    try await runSchedules("taken values") { context in
      let store = context.slowStore(of: Int.self)
      let taken = Shared<[Int]>([])
      try await concurrently(4) { task in
        if try await store.insertValue(task, forKey: "token") { return }
        guard let value = try await store.takeValue(forKey: "token") else { return }
        taken.change { $0.append(value) }
      }
      let left = try await store.value(forKey: "token")
      let all = taken.value + (left.map { [$0] } ?? [])
      guard Set(all).count == all.count else { throw Wrong("\(all) were taken or are left") }
    }
  }
}
