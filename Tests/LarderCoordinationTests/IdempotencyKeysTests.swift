import Foundation
import Larder
import LarderCache
import LarderTesting
import TestSupport
import Testing

@testable import LarderCoordination

@Suite struct IdempotencyKeysTests {
  private struct Failure: Error {}

  private let clock = ManualClock()
  private let base = MemoryStore<[UInt8]>()

  private func keys(
    _ base: some DataStore<[UInt8]>, _ interruptions: InterruptionPolicy = .refuse,
    now: (@Sendable () -> Date)? = nil
  ) throws -> IdempotencyKeys<String> {
    try IdempotencyKeys(
      base, prefix: "requests/", codec: .json(String.self), interruptions: interruptions,
      configuration: StoreLockConfiguration(lease: .seconds(3), pollInterval: .seconds(1)), clock: clock,
      now: now ?? { [clock] in clock.date })
  }

  @Test func `a repetition gets the outcome`() async throws {
    let store = CountedStore(base)
    let keys = try keys(store)
    #expect(try await keys.perform("k", fingerprint: [1]) { "a" } == "a")
    #expect(store.commits == 2)
    #expect(try await keys.perform("k", fingerprint: [1]) { throw Failure() } == "a")
    #expect(store.commits == 2)
    await expectStoreError(.otherRequest) { try await keys.perform("k", fingerprint: [2]) { "b" } }
    // Only the record is kept, without a lock.
    #expect(try base.keys(in: .all, limit: 9, order: .ascending) == ["requests/ok"])
    try await keys.remove("k")
    #expect(try await keys.perform("k", fingerprint: [2]) { "b" } == "b")
  }

  @Test func `an error is no outcome`() async throws {
    let keys = try keys(base)
    await #expect(throws: Failure.self) { try await keys.perform("k", fingerprint: [1]) { throw Failure() } }
    #expect(try base.count(in: .all) == 0)
    #expect(try await keys.perform("k", fingerprint: [2]) { "a" } == "a")
  }

  @Test func `another request does not wait`() async throws {
    let keys = try keys(base)
    let first = Task { [clock] in
      try await keys.perform("k", fingerprint: [1]) {
        try await clock.sleep(for: .seconds(1))
        return "a"
      }
    }
    try await clock.waitForSleepers(2)
    await expectStoreError(.otherRequest) { try await keys.perform("k", fingerprint: [2]) { "b" } }
    clock.advance(by: .seconds(1))
    #expect(try await first.value == "a")
  }

  /// Leaves a request as a crash in its closure does.
  private func crash() async throws {
    let store = CountedStore(base)
    let keys = try keys(store)
    await #expect(throws: Failure.self) {
      try await keys.perform("k", fingerprint: [1]) {
        store.fail(with: .ioFailed)
        throw Failure()
      }
    }
  }

  @Test func `a crash is refused`() async throws {
    try await crash()
    let keys = try keys(base)
    let next = Task { try await keys.perform("k", fingerprint: [1]) { "b" } }
    try await clock.waitForSleepers(1)
    await clock.advance(by: .seconds(1), whileSleeping: 1) { clock.now.offset >= .seconds(3) }
    await expectStoreError(.interrupted) { try await next.value }
    // It stays so, without another wait for the lease, until it is settled.
    await expectStoreError(.interrupted) { try await keys.perform("k", fingerprint: [1]) { "b" } }
    await expectStoreError(.otherRequest) { try await keys.perform("k", fingerprint: [2]) { "b" } }
    try await keys.remove("k")
    #expect(try await keys.perform("k", fingerprint: [2]) { "b" } == "b")
  }

  @Test func `a crash runs again`() async throws {
    try await crash()
    let keys = try keys(base, .runAgain)
    let next = Task { try await keys.perform("k", fingerprint: [1]) { "b" } }
    try await clock.waitForSleepers(1)
    await clock.advance(by: .seconds(1), whileSleeping: 1) { clock.now.offset >= .seconds(3) }
    #expect(try await next.value == "b")
    #expect(try await keys.perform("k", fingerprint: [1]) { "c" } == "b")
  }

  /// A request whose process was suspended cannot replace the outcome of the one that ran again.
  @Test func `a late outcome is refused`() async throws {
    let (first, second) = (try keys(base, .runAgain), try keys(base, .runAgain))
    await expectStoreError(.lockLost) {
      try await first.perform("k", fingerprint: [1]) {
        // As a lease later in another process.
        try base.apply([.remove("requests/ltk")])
        _ = try await second.perform("k", fingerprint: [1]) { "b" }
        return "a"
      }
    }
    #expect(try await first.perform("k", fingerprint: [1]) { "c" } == "b")
  }

  /// A request whose key was removed cannot store its outcome, and the next one with the key does not wait for it.
  @Test func `a request whose key was removed stores nothing`() async throws {
    let keys = try keys(base)
    await expectStoreError(.lockLost) {
      try await keys.perform("k", fingerprint: [1]) {
        try await keys.remove("k")
        return "a"
      }
    }
    #expect(try base.count(in: .all) == 0)
    #expect(try await keys.perform("k", fingerprint: [2]) { "b" } == "b")
  }

  // MARK: Interruptions

  /// It is unknown how far a closure has come that was cancelled.
  @Test(arguments: [InterruptionPolicy.refuse, .runAgain]) func `a cancellation is an interruption`(
    policy: InterruptionPolicy
  ) async throws {
    let keys = try keys(base, policy)
    let first = Task { [clock] in
      try await keys.perform("k", fingerprint: [1]) {
        try? await clock.sleep(for: .seconds(86_400))
        throw Failure()
      }
    }
    try await clock.waitForSleepers(2)
    first.cancel()
    await #expect(throws: Failure.self) { try await first.value }
    if policy == .runAgain {
      #expect(try await keys.perform("k", fingerprint: [1]) { "b" } == "b")
    } else {
      await expectStoreError(.interrupted) { try await keys.perform("k", fingerprint: [1]) { "b" } }
    }
    await #expect(throws: CancellationError.self) {
      try await keys.perform("l", fingerprint: [1]) { throw CancellationError() }
    }
    #expect(try base.value(forKey: "requests/ol") != nil)
  }

  @Test func `a lost lease is an interruption`() async throws {
    let store = CountedStore(base)
    let keys = try keys(store)
    let first = Task { [clock] in
      try await keys.perform("k", fingerprint: [1]) {
        store.fail(with: .ioFailed)
        try? await clock.sleep(for: .seconds(86_400))
        store.fail(with: nil)
        throw Failure()
      }
    }
    try await clock.waitForSleepers(2)
    await clock.advance(by: .milliseconds(100), whileSleeping: 2) { clock.now.offset >= .seconds(3) }
    await expectStoreError(.lockLost) { try await first.value }
    await expectStoreError(.interrupted) { try await keys.perform("k", fingerprint: [1]) { "b" } }
  }

  @Test func `a grant without an answer leaves no record`() async throws {
    let store = CountedStore(base)
    let keys = try keys(store)
    store.failAfterNextCommit(isRetryable: false)
    await expectStoreError(.ioFailed) { try await keys.perform("k", fingerprint: [1]) { "a" } }
    #expect(try base.count(in: .all) == 0)
    // A retryable error does not end the wait.
    store.failAfterNextCommit(isRetryable: true)
    #expect(try await keys.perform("k", fingerprint: [1]) { "b" } == "b")
  }

  @Test func `storing the outcome is repeated`() async throws {
    let store = CountedStore(base)
    let keys = try keys(store)
    let first = Task {
      try await keys.perform("k", fingerprint: [1]) {
        store.fail(with: .ioFailed)
        return "a"
      }
    }
    try await clock.waitForSleepers(2)
    clock.advance(by: .milliseconds(300))
    try await clock.waitForSleepers(2)
    store.fail(with: nil)
    clock.advance(by: .milliseconds(300))
    #expect(try await first.value == "a")
    #expect(try await keys.perform("k", fingerprint: [1]) { "b" } == "a")
  }

  @Test func `an outcome without an answer is found`() async throws {
    let store = CountedStore(base)
    let keys = try keys(store)
    let first = Task {
      try await keys.perform("k", fingerprint: [1]) {
        store.failAfterNextCommit(isRetryable: true)
        return "a"
      }
    }
    try await clock.waitForSleepers(2)
    clock.advance(by: .milliseconds(300))
    #expect(try await first.value == "a")
  }

  /// The effect has happened, so the next request is refused, without a wait for a lease.
  @Test func `an outcome that cannot be encoded is an interruption`() async throws {
    let keys = try IdempotencyKeys(base, prefix: "requests/", codec: .json(Double.self), clock: clock)
    await #expect(throws: (any Error).self) { try await keys.perform("k", fingerprint: [1]) { .infinity } }
    await expectStoreError(.interrupted) { try await keys.perform("k", fingerprint: [1]) { 1 } }
    #expect(clock.now.offset == .zero)
  }

  /// A cache still has the outcome of a key that another program has removed.
  @Test func `a copy is no outcome`() async throws {
    let cached = try keys(base.cached())
    #expect(try await cached.perform("k", fingerprint: [1]) { "a" } == "a")
    #expect(try await cached.perform("k", fingerprint: [1]) { "b" } == "a")
    try await keys(base).remove("k")
    #expect(try await cached.perform("k", fingerprint: [1]) { "b" } == "b")
  }

  // MARK: Transactions

  @Test func `in a transaction effect and record are one commit`() async throws {
    let store = CountedStore(base)
    let keys = try keys(store)
    for _ in 0..<2 {
      let outcome = try await store.transaction { tx in
        .commit(
          try await tx.perform("k", fingerprint: [1], with: keys) {
            let count = try await tx.value(forKey: "count")?.first ?? 0
            try tx.setValue([count + 1], forKey: "count")
            return "a"
          })
      }
      #expect(outcome == "a")
    }
    #expect(try base.value(forKey: "count") == [1])
    #expect(store.commits == 1)
    #expect(try await keys.perform("k", fingerprint: [1]) { "b" } == "a")
    await expectStoreError(.otherRequest) {
      try await store.transaction { tx in
        .commit(try await tx.perform("k", fingerprint: [2], with: keys) { "b" })
      }
    }
    // An error of the closure leaves nothing.
    await #expect(throws: Failure.self) {
      try await store.transaction { tx in
        .commit(
          try await tx.perform("other", fingerprint: [1], with: keys) {
            try tx.setValue([9], forKey: "count")
            throw Failure()
          })
      }
    }
    #expect(try base.value(forKey: "count") == [1])
    #expect(try base.value(forKey: "requests/oother") == nil)
  }

  @Test func `a transaction does not join a request that runs`() async throws {
    let keys = try keys(base)
    _ = try await keys.perform("k", fingerprint: [1]) { [base] in
      await expectStoreError(.interrupted) {
        try await base.transaction { tx in
          .commit(try await tx.perform("k", fingerprint: [1], with: keys) { "b" })
        }
      }
      return "a"
    }
  }

  // MARK: Retention

  @Test func `records are kept for a day`() async throws {
    let keys = try keys(base)
    for number in 0..<100 { _ = try await keys.perform(StoreKey(integer: number), fingerprint: [1]) { "a" } }
    try await crash()
    clock.advance(by: .seconds(86_399))
    #expect(try await keys.purge() == 0)
    #expect(try await keys.perform(StoreKey(integer: 7), fingerprint: [1]) { "b" } == "a")
    clock.advance(by: .seconds(1))
    #expect(try await keys.perform(StoreKey(integer: 7), fingerprint: [2]) { "b" } == "b")
    #expect(try await keys.purge() == 99)
    // The request that was interrupted may still run, as far as this object knows.
    #expect(try await keys.purge() == 0)
    clock.advance(by: .seconds(3))
    #expect(try await keys.purge() == 1)
    #expect(try base.count(in: .all) == 1)
  }

  @Test func `a request can run for longer than its retention`() async throws {
    let hours = Locked(0)
    let date = clock.date
    let keys = try keys(base, now: { date.addingTimeInterval(TimeInterval(hours.withLock { $0 }) * 3600) })
    let outcome = try await keys.perform("k", fingerprint: [1]) { [base] in
      hours.withLock { $0 = 25 }
      let purged = try await keys.purge()
      #expect(purged == 0)
      await expectStoreError(.interrupted) {
        try await base.transaction { tx in
          .commit(try await tx.perform("k", fingerprint: [1], with: keys) { "b" })
        }
      }
      return "a"
    }
    #expect(outcome == "a")
    #expect(try await keys.perform("k", fingerprint: [1]) { "c" } == "a")
  }

  @Test func `a damaged record does not stop cleaning`() async throws {
    let keys = try keys(base)
    for key: StoreKey in ["a", "c"] { _ = try await keys.perform(key, fingerprint: [1]) { "a" } }
    try base.apply([.set("requests/ob", [1])])
    clock.advance(by: .seconds(86_400))
    await expectStoreError(.corrupted) { try await keys.purge() }
    #expect(try base.keys(in: .all, limit: 9, order: .ascending) == ["requests/ob"])
  }

  @Test func `a deadline of a clock that was ahead is corrected`() async throws {
    let ahead = try keys(base, now: { [clock] in clock.date.addingTimeInterval(3600) })
    _ = try await ahead.perform("k", fingerprint: [1]) { "a" }
    let keys = try keys(base)
    #expect(try await keys.purge() == 0)
    clock.advance(by: .seconds(86_399))
    #expect(try await keys.purge() == 0)
    clock.advance(by: .seconds(1))
    #expect(try await keys.purge() == 1)
  }

  @Test func `invalid uses are refused`() async throws {
    expectStoreError(.invalidArgument) {
      try IdempotencyKeys(base, prefix: "r/", codec: .json(String.self), retention: .zero)
    }
    let keys = try keys(base)
    await expectStoreError(.invalidKey) {
      try await keys.perform(StoreKey(String(repeating: "n", count: 505)), fingerprint: []) { "a" }
    }
    try base.apply([.set("requests/ok", [7])])
    await expectStoreError(.versionMismatch) { try await keys.perform("k", fingerprint: []) { "a" } }
    await expectStoreError(.versionMismatch) { try await keys.purge() }
  }
}
