#if HTTPCache
import Larder
import LarderTesting
import TestSupport
import Testing

@testable import LarderHTTPCache

@Suite struct StoreCallsTests {
  private let clock = ManualClock()
  private var calls: StoreCalls { StoreCalls(of: "test", limit: .seconds(5), clock: clock) }

  @Test func `a call returns its result or its error`() async throws {
    let calls = calls
    #expect(try await calls { 1 } == 1)
    await expectStoreError(.full) {
      try await calls { throw StoreError(.full, during: .apply, message: "full") }
    }
    #expect(calls.counts.failures == 1)
    #expect(calls.counts.timeouts == 0)
    #expect(clock.sleeperCount == 0, "a call that returns immediately starts no timer")
  }

  @Test func `a call that hangs ends after the limit`() async throws {
    let calls = calls
    let hang = SharedResult<Int>()
    let caller = Task { try await calls { try await hang.value() } }
    try await clock.waitForSleepers(1)
    clock.advance(by: .seconds(4))
    #expect(calls.counts.timeouts == 0)
    clock.advance(by: .seconds(1))
    await expectStoreError(.timedOut) { try await caller.value }
    #expect(calls.counts.timeouts == 1)
  }

  @Test func `a store that hangs is left alone for a while`() async throws {
    let calls = calls
    let hang = Uncancellable()
    let caller = Task { try await calls { await hang.value() } }
    try await clock.waitForSleepers(1)
    clock.advance(by: .seconds(5))
    await expectStoreError(.timedOut) { try await caller.value }
    await expectStoreError(.timedOut) { try await calls { 1 } }
    clock.advance(by: .seconds(5))
    #expect(try await calls { 1 } == 1)
    hang.finish()
  }

  @Test func `a store that returns is used again`() async throws {
    let calls = calls
    let hang = Uncancellable()
    let caller = Task { try await calls { await hang.value() } }
    try await clock.waitForSleepers(1)
    clock.advance(by: .seconds(5))
    await expectStoreError(.timedOut) { try await caller.value }
    hang.finish()
    try await waitUntil { (try? await calls { 1 }) != nil }
  }

  @Test func `a cancelled caller does not wait`() async throws {
    let calls = calls
    let hang = Uncancellable()
    let caller = Task { try await calls { await hang.value() } }
    try await clock.waitForSleepers(1)
    caller.cancel()
    await #expect(throws: CancellationError.self) { try await caller.value }
    #expect(calls.counts.failures == 0)
    hang.finish()
  }

  @Test func `every waiter has its own deadline`() async throws {
    let result = SharedResult<Int>()
    let limit = TimeLimit(.seconds(10), clock: clock)
    let first = Task { try await result.value(within: limit) }
    try await clock.waitForSleepers(1)
    clock.advance(by: .seconds(6))
    let second = Task { try await result.value(within: limit) }
    try await clock.waitForSleepers(2)
    clock.advance(by: .seconds(4))
    await #expect(throws: SharedResult<Int>.TimedOut.self) { try await first.value }
    result.finish(.success(7))
    #expect(try await second.value == 7)
    result.finish(.success(8))
    #expect(try await result.value() == 7)
    #expect(result.waiterCount == 0)
    try await waitUntil { clock.sleeperCount == 0 }
  }

  @Test func `a thousand waiters`() async throws {
    let result = SharedResult<Int>()
    let limit = TimeLimit(.seconds(10), clock: clock)
    let waiters = (0..<1_000).map { _ in Task { try await result.value(within: limit) } }
    try await clock.waitForSleepers(1_000)
    clock.advance(by: .seconds(10))
    for waiter in waiters {
      await #expect(throws: SharedResult<Int>.TimedOut.self) { try await waiter.value }
    }
    #expect(result.waiterCount == 0)
  }

  /// Waiters are cancelled, run out of time and get the result in any order, also before they are suspended.
  @Test func `waiters end in any order`() async throws {
    for round in 0..<200 {
      let result = SharedResult<Int>()
      let limit = TimeLimit(round.isMultiple(of: 2) ? .zero : .seconds(10), clock: clock)
      let waiters = (0..<4).map { _ in Task { try await result.value(within: limit) } }
      waiters[0].cancel()
      if round.isMultiple(of: 3) { result.finish(.success(7)) }
      clock.advance(by: .seconds(10))
      waiters[1].cancel()
      for waiter in waiters {
        try await waitUntil {
          clock.advance(by: .seconds(10))
          return result.waiterCount == 0
        }
        switch await waiter.result {
        case .success(let value): #expect(value == 7)
        case .failure(let error): #expect(error is CancellationError || error is SharedResult<Int>.TimedOut)
        }
      }
    }
  }
}

/// A suspension that ignores cancellation, like a system call that hangs.
private final class Uncancellable: Sendable {
  private let state = Locked<(isFinished: Bool, waiter: CheckedContinuation<Void, Never>?)>((false, nil))

  func value() async {
    await withCheckedContinuation { continuation in
      let isFinished = state.withLock { state in
        if !state.isFinished { state.waiter = continuation }
        return state.isFinished
      }
      if isFinished { continuation.resume() }
    }
  }

  func finish() {
    let waiter = state.withLock { state in
      state.isFinished = true
      defer { state.waiter = nil }
      return state.waiter
    }
    waiter?.resume()
  }
}
#endif
