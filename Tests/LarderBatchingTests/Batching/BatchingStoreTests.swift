import Foundation
import Larder
import LarderTesting
import TestSupport
import Testing

@testable import LarderBatching

@Suite struct BatchingStoreTests {
  private typealias Base = FaultyStore<PickyStore<Int>>
  private typealias Call<Result> = @Sendable (BatchingStore<Base>) async throws -> Result

  private let picky = PickyStore<Int>()
  private let base: FaultyStore<PickyStore<Int>>
  private let store: BatchingStore<FaultyStore<PickyStore<Int>>>

  init() {
    base = picky.faulty()
    store = base.batched(bounds: BatchBounds(changes: 5))
  }

  /// Starts calls one after another during a commit of the key `first`, which continues once all calls wait.
  private func duringACommit<Result: Sendable>(
    _ calls: [Call<Result>]
  ) async throws -> [Swift.Result<Result, any Error>] {
    base.schedule(.suspension(), on: .apply)
    let first = Task { try await store.setValue(0, forKey: "first") }
    try await base.waitForSuspended()
    var tasks: [Task<Result, any Error>] = []
    for call in calls {
      tasks.append(Task { try await call(store) })
      await yieldUntil { store.waitingCount == tasks.count }
    }
    base.resume()
    try await first.value
    var results: [Swift.Result<Result, any Error>] = []
    for task in tasks { results.append(await task.result) }
    await yieldUntil { store.isIdle }
    return results
  }

  private func puts(_ values: some Sequence<Int>) -> [Call<Void>] {
    values.map { value in { try await $0.setValue(value, forKey: StoreKey(integer: value)) } }
  }

  private func applies(_ batch: ChangeBatch<Int>) -> Call<Void> {
    { try await $0.apply(batch) }
  }

  private func codes(_ results: [Result<Void, any Error>]) -> [StoreError.Code?] {
    errors(results).map { $0?.code }
  }

  private func errors(_ results: [Result<Void, any Error>]) -> [StoreError?] {
    results.map { result in if case .failure(let error as StoreError) = result { error } else { nil } }
  }

  // MARK: Groups

  @Test func `a single caller is served directly`() async throws {
    for value in 0..<3 { try await store.setValue(value, forKey: "a") }
    #expect(picky.appliedSizes == [1, 1, 1])
    #expect(store.isIdle)
  }

  @Test func `calls during a commit share the next one`() async throws {
    _ = try await duringACommit(puts(1...4)).map { try $0.get() }
    #expect(picky.appliedSizes == [1, 4])
    #expect(picky.applied.last?.changes.compactMap(\.key) == (1...4).map { StoreKey(integer: $0) })
  }

  @Test func `a group is as large as its bounds allow`() async throws {
    _ = try await duringACommit(puts(1...12)).map { try $0.get() }
    #expect(picky.appliedSizes == [1, 5, 5, 2])
  }

  @Test func `bytes are counted if the user measures them`() async throws {
    let store = base.batched(bounds: BatchBounds(changes: 5, bytes: 100) { $0 })
    base.schedule(.suspension(), on: .apply)
    let first = Task { try await store.setValue(0, forKey: "first") }
    try await base.waitForSuspended()
    var tasks: [Task<Void, any Error>] = []
    // Each write has a key of one byte. The fourth one is too large for any group.
    for (index, value) in [49, 48, 1, 1000, Int.max, 2].enumerated() {
      tasks.append(Task { try await store.apply([.set("k", value)]) })
      await yieldUntil { store.waitingCount == index + 1 }
    }
    base.resume()
    try await first.value
    for task in tasks { try await task.value }
    #expect(picky.appliedSizes == [1, 2, 1, 1, 1, 1])
  }

  @Test func `a batch larger than the bounds is committed alone`() async throws {
    let large = ChangeBatch((0..<20).map { BatchChange.set(StoreKey(integer: $0), $0) })
    _ = try await duringACommit([{ try await $0.apply(large) }] + puts(1...3)).map { try $0.get() }
    #expect(picky.appliedSizes == [1, 20, 3])
  }

  @Test func `many tasks share commits`() async throws {
    var plan = FaultPlan()
    plan.schedule(.yields(upTo: 3), probability: 1)
    let picky = PickyStore<Int>()
    let store = picky.faulty(plan: plan).batched()
    try await withThrowingDiscardingTaskGroup { group in
      for task in 0..<100 {
        group.addTask {
          for step in 0..<20 { try await store.setValue(step, forKey: StoreKey(integer: 100 * step + task)) }
        }
      }
    }
    #expect(try picky.count(in: .all) == 2000)
    #expect(picky.appliedSizes.reduce(0, +) == 2000)
    #expect(picky.applied.count < 500)
  }

  // MARK: Order

  @Test func `an update comes between the writes around it`() async throws {
    let replacement: ChangeBatch<Int> = [.removeAll(.all), .set("b", 1)]
    let calls: [Call<Int>] = [
      {
        try await $0.setValue(1, forKey: "a")
        return 0
      },
      {
        try await $0.update("a") { value in
          value = 10 * (value ?? 0)
          return value ?? 0
        }
      },
      {
        try await $0.apply(replacement)
        return 0
      },
      { try await $0.update("a") { value in value == nil ? -1 : 0 } },
      {
        try await $0.setValue(7, forKey: "a")
        return 0
      },
    ]
    let results = try await duringACommit(calls)
    #expect(try results.map { try $0.get() } == [0, 10, 0, -1, 0])
    #expect(try picky.entries(in: .all, limit: .max, order: .ascending).map(\.value) == [7, 1])
    #expect(picky.appliedSizes == [1, 1, 2, 1])
  }

  /// The first commit is the turn of its caller, and no committer runs that could serve the callers behind it.
  @Test func `a turn is followed by the next caller`() async throws {
    let update: Call<Int> = { store in
      try await store.update("a") { value in
        let number = (value ?? 0) + 1
        value = number
        return number
      }
    }
    #expect(try await duringACommit([update, update]).map { try $0.get() } == [1, 2])
    let synchronize: Call<Void> = { try await $0.synchronize() }
    for result in try await duringACommit([synchronize, synchronize]) { try result.get() }
    #expect(picky.appliedSizes == [1, 1])
  }

  @Test func `synchronizing and closing wait for earlier writes`() async throws {
    let picky = picky
    let calls: [Call<Int>] = [
      {
        try await $0.setValue(1, forKey: "a")
        return 0
      },
      {
        try await $0.synchronize()
        // Later writes may have been committed as well.
        return min(try picky.count(in: .all), 2)
      },
      {
        try await $0.setValue(2, forKey: "b")
        return 0
      },
      {
        try await $0.close()
        return picky.applied.count
      },
    ]
    let results = try await duringACommit(calls)
    #expect(try results.map { try $0.get() } == [0, 2, 0, 3])
    await expectStoreError(.closed) { try await store.setValue(1, forKey: "c") }
    await expectStoreError(.closed) { try await store.synchronize() }
    await expectStoreError(.closed) { try await store.value(forKey: "a") }
    try await store.close()
  }

  @Test func `a caller that cancels itself in an update affects no other caller`() async throws {
    let results = try await duringACommit(
      puts([1]) + [
        {
          try await $0.update("u") { value in
            withUnsafeCurrentTask { $0?.cancel() }
            value = 1
          }
        }
      ] + puts(2...4))
    #expect(codes(results) == [nil, nil, nil, nil, nil])
    for result in results { try result.get() }
    #expect(try picky.count(in: .all) == 6)
  }

  // MARK: Many callers

  @Test func `a thousand waiters share one commit`() async throws {
    let store = base.batched()
    base.schedule(.suspension(), on: .apply)
    let first = Task { try await store.setValue(0, forKey: "first") }
    try await base.waitForSuspended()
    let tasks = (0..<1000).map { number in
      Task { try await store.setValue(number, forKey: StoreKey(integer: number)) }
    }
    await yieldUntil { store.waitingCount == 1000 }
    base.resume()
    try await first.value
    for task in tasks { try await task.value }
    #expect(picky.appliedSizes == [1, 1000])
  }

  /// Callers that compute as soon as they are resumed occupy all threads of the pool.
  @Test func `the next commit does not wait for the callers of the last`() async throws {
    let (store, picky) = (base.batched(), picky)
    base.schedule(.suspension(), on: .apply, number: 1)
    base.schedule(.suspension(), on: .apply, number: 2)
    let first = Task { try await store.setValue(0, forKey: "first") }
    try await base.waitForSuspended()
    let callers = (0..<4 * ProcessInfo.processInfo.activeProcessorCount).map { number in
      Task {
        try await store.setValue(number, forKey: StoreKey(integer: number))
        let deadline = ContinuousClock.now + .seconds(10)
        while picky.attempts < 3, .now < deadline {}
        return picky.attempts >= 3
      }
    }
    await yieldUntil { store.waitingCount == callers.count }
    base.resume()
    try await first.value
    try await base.waitForSuspended()
    let next = Task { try await store.setValue(0, forKey: "next") }
    await yieldUntil { store.waitingCount == 1 }
    base.resume()
    for caller in callers { #expect(try await caller.value, "the next commit has not started") }
    try await next.value
  }

  /// Some callers are cancelled at arbitrary times.
  @Test func `thousands of callers receive accurate results`() async throws {
    var plan = FaultPlan()
    plan.schedule(.yields(upTo: 10), on: .apply, probability: 1)
    let base = MemoryStore<Int>()
    let store = base.faulty(plan: plan).batched()
    let tasks = (0..<2000).map { task in
      Task {
        for step in 0..<20 {
          do {
            try await store.setValue(step, forKey: StoreKey(integer: task))
          } catch is CancellationError {
            return step
          }
        }
        return 20
      }
    }
    var generator = SeededGenerator(seed: SeededGenerator.seedOfProcess)
    for task in tasks.shuffled(using: &generator).prefix(500) {
      task.cancel()
      await Task.yield()
    }
    for (number, task) in tasks.enumerated() {
      let steps = try await task.value
      // A cancelled write has not been made.
      #expect(try base.value(forKey: StoreKey(integer: number)) == (steps == 0 ? nil : steps - 1))
    }
    await yieldUntil { store.isIdle }
    #expect(store.waitingCount == 0)
  }

  /// The caller notices its cancellation in the wait queue and leaves it.
  @Test func `a caller that is already cancelled is not served`() async throws {
    let results = try await duringACommit(puts([1]))
    #expect(codes(results) == [nil])
    base.schedule(.suspension(), on: .apply)
    let first = Task { try await store.setValue(0, forKey: "first") }
    try await base.waitForSuspended()
    let late = Task {
      withUnsafeCurrentTask { $0?.cancel() }
      try await store.setValue(2, forKey: "late")
    }
    await #expect(throws: CancellationError.self) { try await late.value }
    #expect(store.waitingCount == 0)
    base.resume()
    try await first.value
    #expect(try picky.value(forKey: "late") == nil)
  }

  // MARK: Failures

  @Test(arguments: [StoreError.Code.encodingFailed, .valueTooLarge, .invalidKey, .full, .init(rawValue: "other")])
  func `an error of one call fails only that call`(code: StoreError.Code) async throws {
    picky.refuse(code) { $0 == 3 }
    let results = try await duringACommit(puts(1...5))
    #expect(codes(results) == [nil, nil, code, nil, nil])
    #expect(try picky.keys(in: .all, limit: .max, order: .ascending).count == 5)
    #expect(picky.appliedSizes == [1, 2, 2])
  }

  @Test func `a batch stays whole when its group is tried in parts`() async throws {
    picky.refuse(.encodingFailed) { $0 < 0 }
    let results = try await duringACommit([
      applies([.set("a", 1), .set("b", 1)]),
      applies([.set("c", 2), .set("d", -2)]),
      applies([.set("e", 3)]),
    ])
    #expect(codes(results) == [nil, .encodingFailed, nil])
    #expect(try picky.keys(in: .all, limit: .max, order: .ascending) == ["a", "b", "e", "first"])
  }

  @Test func `a full store fails exactly the calls that do not fit`() async throws {
    picky.refuse { batch, store in
      let room = 4 - (try store.count(in: .all))
      return batch.count <= room ? nil : StoreError(.full, during: .apply, store: "picky", message: "there is no room")
    }
    let results = try await duringACommit([
      applies([.set("a", 1)]),
      applies([.set("b", 1), .set("c", 1), .set("d", 1)]),
      applies([.set("e", 1), .set("f", 1)]),
      applies([.set("g", 1)]),
    ])
    #expect(codes(results) == [nil, .full, nil, .full])
    #expect(try picky.keys(in: .all, limit: .max, order: .ascending) == ["a", "e", "f", "first"])
  }

  @Test func `an error of the store reaches all callers without a retry`() async throws {
    for (code, outcome) in [(StoreError.Code.ioFailed, StoreError.Outcome.nothingChanged), (.full, .unknown)] {
      let attempts = picky.attempts
      picky.refuse { batch, _ in
        guard batch.count > 1 else { return nil }
        return StoreError(
          code, during: .apply, store: "picky", key: batch.changes.first?.key, message: "it failed", outcome: outcome)
      }
      let results = try await duringACommit(puts(1...4))
      #expect(codes(results) == [code, code, code, code])
      for case .failure(let error as StoreError) in results {
        #expect(error.outcome == outcome)
        // No caller sees the key of another.
        #expect(error.key == nil)
      }
      #expect(picky.attempts == attempts + 2)
    }
  }

  @Test func `untried calls after a failed sync report nothing changed`() async throws {
    picky.refuse { batch, _ in
      let values = batch.changes.compactMap { if case .set(_, let value) = $0 { value } else { nil } }
      if values.count > 2 { return StoreError(.encodingFailed, during: .apply, message: "one of them is bad") }
      guard values.contains(1) else { return nil }
      return StoreError(.ioFailed, during: .apply, message: "the sync failed", outcome: .unknown)
    }
    let results = try await duringACommit(puts(1...4))
    #expect(errors(results).map { $0?.outcome } == [.unknown, .unknown, .nothingChanged, .nothingChanged])
    #expect(picky.appliedSizes == [1])
  }

  // MARK: Cancellation

  @Test func `a waiting caller can be cancelled and its write is not made`() async throws {
    base.schedule(.suspension(), on: .apply)
    let first = Task { try await store.setValue(0, forKey: "first") }
    try await base.waitForSuspended()
    let waiting = [
      Task { try await store.setValue(1, forKey: "a") },
      Task { try await store.update("b") { $0 = 1 } },
    ]
    await yieldUntil { store.waitingCount == 2 }
    for task in waiting {
      task.cancel()
      await #expect(throws: CancellationError.self) { try await task.value }
    }
    #expect(store.waitingCount == 0)
    base.resume()
    try await first.value
    #expect(try picky.keys(in: .all, limit: .max, order: .ascending) == ["first"])
    #expect(store.isIdle)
  }

  @Test func `a group that is being committed is not stopped`() async throws {
    base.schedule(.suspension(), on: .apply, number: 1)
    base.schedule(.suspension(), on: .apply, number: 2)
    let first = Task { try await store.setValue(0, forKey: "first") }
    try await base.waitForSuspended()
    let tasks = (1...3).map { value in Task { try await store.setValue(value, forKey: StoreKey(integer: value)) } }
    await yieldUntil { store.waitingCount == 3 }
    base.resume()
    try await first.value
    try await base.waitForSuspended()
    for task in tasks { task.cancel() }
    base.resume()
    for task in tasks { try await task.value }
    #expect(picky.appliedSizes == [1, 3])
  }

  @Test func `many cancelled callers leave no state`() async throws {
    final class Content: Sendable {
      static let count = Locked(0)
      init() { Content.count.withLock { $0 += 1 } }
      deinit { Content.count.withLock { $0 -= 1 } }
    }
    let picky = PickyStore<Content>()
    let base = picky.faulty()
    let store = base.batched()
    base.schedule(.suspension(), on: .apply)
    let first = Task { try await store.removeValue(forKey: "first") }
    try await base.waitForSuspended()
    let tasks = (0..<10_000).map { number in
      Task {
        let content = Content()
        try await store.apply([.set(StoreKey("a\(number)"), content), .set(StoreKey("b\(number)"), content)])
      }
    }
    await yieldUntil { store.waitingCount == 10_000 }
    for (number, task) in tasks.enumerated() where !number.isMultiple(of: 100) { task.cancel() }
    await yieldUntil { store.waitingCount == 100 }
    base.resume()
    // More callers are cancelled while their groups are formed.
    for task in tasks { task.cancel() }
    try await first.value
    var returned: [Int] = []
    for (number, task) in tasks.enumerated() {
      switch await task.result {
      case .success: returned.append(number)
      case .failure(let error): #expect(error is CancellationError)
      }
    }
    await yieldUntil { store.isIdle }
    let keys = Set(try picky.keys(in: .all, limit: .max, order: .ascending))
    #expect(keys == Set(returned.flatMap { [StoreKey("a\($0)"), StoreKey("b\($0)")] }))
    try await store.removeAll()
    picky.forget()
    #expect(Content.count.withLock { $0 } == 0)
  }

  // MARK: Capabilities

  @Test func `capabilities of the base are reachable`() async throws {
    let able = CapableStore()
    let store = able.batched()
    #expect("\(store)" == "BatchingStore[\(able)]")
    #expect(store.information.name == "able")
    #expect(store.information.durability == .synced)
    try await store.setValue(5, forKey: "a")
    #expect(try await store.touch("a", timeToLive: .after(.seconds(1))))
    #expect(try await store.remainingTime(forKey: "a") == .after(.seconds(5)))
    #expect(try await store.purgeExpired(limit: 9) == 3)
    try store.invalidate("b")
    try store.invalidateAll()
    try await store.flush()
    try await store.synchronize()
    _ = try await store.storeStatistics()
    try await store.close()
    #expect(
      able.calls == [
        "apply 1", "touch a", "remainingTime a", "purgeExpired 9", "invalidate b", "invalidateAll", "flush",
        "synchronize", "statistics", "close",
      ])
    await expectStoreError(.closed) { try await store.touch("a", timeToLive: nil) }
    await expectStoreError(.closed) { try await store.flush() }
  }
}
