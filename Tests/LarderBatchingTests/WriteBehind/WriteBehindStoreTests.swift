import Larder
import LarderTesting
import Synchronization
import TestSupport
import Testing

@testable import LarderBatching

@Suite(.timeLimit(.minutes(60))) struct WriteBehindStoreTests {
  private let clock = ManualClock()
  private let picky = PickyStore<Int>()
  private let base: FaultyStore<PickyStore<Int>>

  init() {
    base = picky.faulty()
  }

  private func store(
    bounds: BatchBounds<Int> = BatchBounds(), retries: RetryPolicy = RetryPolicy(attempts: 0)
  ) -> WriteBehindStore<FaultyStore<PickyStore<Int>>> {
    base.writeBehind(bounds: bounds, maximumAge: .seconds(1), retries: retries, clock: clock)
  }

  private func contents() throws -> [StoreKey: Int] {
    let entries = try picky.entries(in: .all, limit: .max, order: .ascending)
    return Dictionary(uniqueKeysWithValues: entries.map { ($0.key, $0.value) })
  }

  // MARK: Reading

  @Test func everyOperationSeesAcceptedWrites() async throws {
    let store = store()
    try picky.apply([.set("a", 0), .set("b", 0), .set("c", 0), .set("f", 0)])
    try await store.apply([.set("a", 1), .remove("b"), .set("d", 1)])
    #expect(picky.attempts == 1)
    #expect(try await store.value(forKey: "a") == 1)
    #expect(try await store.value(forKey: "b") == nil)
    #expect(try await store.value(forKey: "c") == 0)
    #expect(try await store.values(forKeys: ["d", "b", "c", "a"]) == [1, nil, 0, 1])
    #expect(try await store.values(forKeys: ["a", "b"]) == [1, nil])
    #expect(try await store.values(forKeys: ["c"]) == [0])
    let keys: [StoreKey] = ["a", "c", "d", "f"]
    for range in [KeyRange.all, "a"..<"e", "b"..."d", "c"..., "x"...] {
      for limit in [0, 1, 2, 3, 10, Int.max] {
        let inside = keys.filter(range.contains)
        #expect(try await store.keys(in: range, limit: limit, order: .ascending) == Array(inside.prefix(limit)))
        #expect(
          try await store.keys(in: range, limit: limit, order: .descending) == Array(inside.reversed().prefix(limit)))
        let entries = try await store.entries(in: range, limit: limit, order: .descending)
        #expect(entries.map(\.key) == Array(inside.reversed().prefix(limit)))
        #expect(entries.allSatisfy { $0.value == (["a", "d"].contains($0.key) ? 1 : 0) })
      }
    }
    #expect(try await !store.contains("b"))
    #expect(picky.attempts == 1)
    // Whether a pending change adds to the count depends on the base.
    #expect(try await store.count(in: "e"...) == 1)
    #expect(picky.attempts == 1)
    #expect(try await store.count() == 4)
    #expect(picky.attempts == 2)
  }

  /// Suspends a scan in the base, calls a closure, and then continues the scan.
  private func duringScan(
    _ store: WriteBehindStore<FaultyStore<PickyStore<Int>>>, limit: Int = .max, _ body: () async throws -> Void
  ) async throws -> [StoreKey: Int] {
    base.clearFaults()
    base.schedule(.suspension(), on: .entries)
    let reading = Task { try await store.entries(in: .all, limit: limit, order: .ascending) }
    try await base.waitForSuspended(of: .entries)
    base.clearFaults()
    try await body()
    base.resume(.entries)
    return Dictionary(uniqueKeysWithValues: try await reading.value.map { ($0.key, $0.value) })
  }

  @Test func aScanDuringFlushesReadsTheBaseOnceAndSeesTheLatestValues() async throws {
    let store = store()
    try picky.apply([.set("a", 0), .set("b", 0), .set("c", 0)])
    try await store.setValue(1, forKey: "a")
    let scans = picky.scanCount
    let found = try await duringScan(store) {
      for round in 2...9 {
        try await store.apply([.set("a", round), .set("b", round), .remove("c")])
        try await store.flush()
      }
      try await store.setValue(10, forKey: "a")
    }
    #expect(found == ["a": 10, "b": 9])
    #expect(picky.scanCount == scans + 1)
  }

  @Test func aScanSeesNoChangesThatAreAbandonedDuringIt() async throws {
    let store = store()
    try picky.apply([.set("a", 0), .set("b", 0)])
    picky.refuse(.encodingFailed) { $0 < 0 }
    try await store.setValue(1, forKey: "a")
    let found = try await duringScan(store) {
      try await store.setValue(-1, forKey: "b")
      await expectStoreError(.encodingFailed) { try await store.flush() }
    }
    #expect(found == ["a": 1, "b": 0])
  }

  @Test func aScanDuringAnUpdateSeesAllOfItAndEarlierWrites() async throws {
    let store = store()
    try picky.apply([.set("a", 0), .set("b", 0)])
    try await store.setValue(1, forKey: "a")
    let found = try await duringScan(store) {
      try await store.update(["a", "b"]) { $0 = [2, 2] }
    }
    #expect(found == ["a": 2, "b": 2])
  }

  /// While the base is read, more entries are removed than the read reserved for.
  @Test func concurrentRemovalsDoNotShortenAPage() async throws {
    let store = store()
    try picky.apply(ChangeBatch((0..<100).map { .set(StoreKey(integer: $0), $0) }))
    try await store.setValue(-1, forKey: StoreKey(integer: 0))
    let found = try await duringScan(store, limit: 3) {
      try await store.apply(ChangeBatch((1..<50).map { .remove(StoreKey(integer: $0)) }))
    }
    #expect(found.values.sorted() == [-1, 50, 51])
  }

  /// If a scan shows the later of two accepted writes, it also shows the earlier one.
  @Test func aScanDuringAPartialFlushSeesWritesInOrder() async throws {
    let store = store()
    picky.refuse(.encodingFailed) { $0 < 0 }
    let found = try await duringScan(store) {
      try await store.setValue(1, forKey: "b")
      try await store.setValue(-1, forKey: "z")
      try await store.setValue(1, forKey: "a")
      base.schedule(.suspension(), on: .apply, number: 3)
      let flushing = Task { try await store.flush() }
      try await base.waitForSuspended(of: .apply)
      #expect(try contents() == ["b": 1])
      base.resume(.apply)
      await expectStoreError(.encodingFailed) { try await flushing.value }
    }
    #expect(found == ["a": 1, "b": 1])
  }

  @Test func aReadOfSeveralKeysIsASnapshot() async throws {
    let store = store()
    try picky.apply([.set("a", 0), .set("b", 0)])
    try await store.setValue(1, forKey: "a")
    base.schedule(.suspension(), on: .values)
    let reading = Task { try await store.values(forKeys: ["a", "b"]) }
    try await base.waitForSuspended(of: .values)
    try await store.apply([.set("a", 2), .set("b", 2)])
    try await store.flush()
    base.resume()
    #expect(try await reading.value == [2, 2])
  }

  /// The update comes after the write in progress, but before the entries that the read finds in the base.
  @Test func anUpdateDuringAReadIsVisibleWhollyOrNotAtAll() async throws {
    let store = store()
    try picky.apply([.set("a", 0), .set("b", 0)])
    base.schedule(.suspension(), on: .apply)
    try await store.setValue(1, forKey: "a")
    let flushing = Task { try await store.flush() }
    try await base.waitForSuspended(of: .apply)
    base.schedule(.suspension(), on: .values)
    let reading = Task { try await store.values(forKeys: ["a", "b"]) }
    try await base.waitForSuspended(of: .values)
    base.resume(.apply)
    try await flushing.value
    try await store.update(["a", "b"]) { $0 = [2, 2] }
    base.resume(.values)
    #expect(try await reading.value == [2, 2])
  }

  // MARK: Writing

  @Test func onlyTheLastWriteToAKeyIsMade() async throws {
    let store = store()
    for value in 0..<100 { try await store.setValue(value, forKey: "a") }
    #expect(store.statistics.pendingChanges == 100)
    try await store.flush()
    #expect(picky.applied == [[.set("a", 99)]])
  }

  @Test func noWriteJoinsABatchThatIsBeingWritten() async throws {
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

  @Test func changesAreWrittenWhenTheyAreOldEnough() async throws {
    let store = store()
    try await store.setValue(1, forKey: "a")
    try await clock.waitForSleepers(1)
    clock.advance(by: .milliseconds(600))
    try await store.setValue(2, forKey: "b")
    #expect(store.statistics.oldestAge == .milliseconds(600))
    #expect(picky.attempts == 0)
    clock.advance(by: .milliseconds(400))
    await waitUntil { store.isIdle }
    #expect(picky.appliedSizes == [2])
    #expect(store.statistics.oldestAge == nil)
  }

  @Test func changesAreWrittenWhenTheyFillHalfTheCapacity() async throws {
    let store = store(bounds: BatchBounds(changes: 6))
    for key in ["a", "b"] { try await store.setValue(1, forKey: StoreKey(key)) }
    try await clock.waitForSleepers(1)
    #expect(picky.attempts == 0)
    try await store.setValue(1, forKey: "c")
    await waitUntil { store.isIdle }
    #expect(picky.appliedSizes == [3])
  }

  @Test func aSlowBaseDelaysCallersWithinTheBounds() async throws {
    let store = store(bounds: BatchBounds(changes: 1000, bytes: 100) { _ in 9 })
    base.schedule(.suspension(), on: .apply)
    let tasks = (0..<50).map { number in
      Task { try await store.apply([.set(StoreKey("\(number % 10)"), number)]) }
    }
    try await base.waitForSuspended()
    await waitUntil { store.statistics.waitingCallers == 40 }
    #expect(store.statistics.pendingBytes == 100)
    #expect(store.statistics.pendingChanges == 10)
    // A caller that waits for room can be cancelled, and its write is not made.
    let cancelled = Task { try await store.setValue(-1, forKey: "x") }
    await waitUntil { store.statistics.waitingCallers == 41 }
    cancelled.cancel()
    await #expect(throws: CancellationError.self) { try await cancelled.value }
    base.resume()
    for task in tasks { try await task.value }
    try await store.flush()
    #expect(try contents().count == 10)
    #expect(picky.applied.allSatisfy { $0.count <= 10 })
  }

  @Test func manyCancelledCallersLeaveNoState() async throws {
    let store = store(bounds: BatchBounds(changes: 4))
    base.schedule(.suspension(), on: .apply)
    try await store.apply([.set("a", 0), .set("b", 0), .set("c", 0), .set("d", 0)])
    try await base.waitForSuspended()
    let tasks = (0..<10_000).map { number in
      Task { try await store.apply([.set(StoreKey("a\(number)"), 1), .set(StoreKey("b\(number)"), 1)]) }
    }
    await waitUntil { store.statistics.waitingCallers == 10_000 }
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
    await waitUntil { store.isIdle }
    let keys = try picky.keys(in: .all, limit: .max, order: .ascending)
    #expect(keys.count == 4 + 2 * accepted)
    #expect(accepted >= 1)
    #expect(store.statistics.pendingChanges == 0)
  }

  @Test func updatesRangesAndLargeBatchesFollowAcceptedWrites() async throws {
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

  @Test func closingWritesEverything() async throws {
    let store = store(bounds: BatchBounds(changes: 2))
    base.schedule(.suspension(), on: .apply)
    try await store.apply([.set("a", 1), .set("b", 1)])
    try await base.waitForSuspended()
    let waiting = Task { try await store.setValue(2, forKey: "c") }
    await waitUntil { store.statistics.waitingCallers == 1 }
    let closing = Task { try await store.close() }
    await waitUntil { store.isClosed }
    base.resume()
    try await closing.value
    try await waiting.value
    #expect(picky.applied.map(\.count) == [2, 1])
    await expectStoreError(.closed) { try await store.setValue(1, forKey: "c") }
    await expectStoreError(.closed) { try await store.flush() }
    await expectStoreError(.closed) { try await store.value(forKey: "c") }
    try await store.close()
  }

  @Test func aReleasedStoreLivesUntilEverythingIsWritten() async throws {
    var store: WriteBehindStore? = store()
    weak let observed = store
    try await store?.setValue(1, forKey: "a")
    store = nil
    try await clock.waitForSleepers(1)
    clock.advance(by: .seconds(1))
    await waitUntil { observed == nil }
    #expect(try contents() == ["a": 1])
  }

  /// Includes a value that only the store still references, because it keeps the writes beside a scan.
  @Test(arguments: [false, true])
  func aValueMayCallTheStoreInItsDeinitializer(updates: Bool) async throws {
    final class Caller: Sendable {
      let call: @Sendable () -> Void
      init(_ call: @escaping @Sendable () -> Void) { self.call = call }
      deinit { call() }
    }
    let memory = MemoryStore<Caller>()
    let base = memory.faulty()
    let store = base.writeBehind(maximumAge: .seconds(1), clock: clock)
    let calls = Mutex(0)
    @Sendable func makeCaller() -> Caller {
      Caller { [weak store] in
        calls.withLock { $0 += 1 }
        _ = store?.statistics
      }
    }
    base.schedule(.suspension(), on: .entries)
    let reading = Task { try await store.entries(in: .all, limit: .max, order: .ascending).count }
    try await base.waitForSuspended(of: .entries)
    base.clearFaults()
    // The second value displaces the first one in the scan's view, and the third one displaces the second one in the
    // base.
    for _ in 0..<2 { try await store.setValue(makeCaller(), forKey: "a") }
    try await store.flush()
    try memory.apply([.set("a", makeCaller())])
    if updates { try await store.update("b") { _ in } }
    base.resume(.entries)
    #expect(try await reading.value == 1)
    await waitUntil { calls.withLock { $0 } == 2 }
  }

  // MARK: Failures

  @Test func retryableErrorsAreRetried() async throws {
    let store = store(retries: RetryPolicy(attempts: 3, firstDelay: .milliseconds(10), maximumDelay: .milliseconds(15)))
    picky.refuse { _, _ in StoreError(.full, during: .apply, message: "there is no room", isRetryable: true) }
    try await store.setValue(1, forKey: "a")
    let flushing = Task { try await store.flush() }
    for (attempt, delay) in [10, 15].enumerated() {
      try await clock.waitForSleepers(1)
      await waitUntil { picky.attempts == attempt + 1 }
      clock.advance(by: .milliseconds(delay - 1))
      #expect(clock.sleeperCount == 1)
      clock.advance(by: .milliseconds(1))
    }
    try await clock.waitForSleepers(1)
    #expect(try await store.value(forKey: "a") == 1)
    picky.refuse(nil)
    clock.advance(by: .milliseconds(15))
    try await flushing.value
    #expect(picky.attempts == 4)
    #expect(try contents() == ["a": 1])
    // A write that never succeeds is abandoned after the last attempt.
    picky.refuse { _, _ in StoreError(.full, during: .apply, message: "there is no room", isRetryable: true) }
    try await store.setValue(2, forKey: "a")
    let failing = Task { try await store.flush() }
    for _ in 0..<3 {
      try await clock.waitForSleepers(1)
      clock.advance(by: .milliseconds(15))
    }
    await expectStoreError(.full) { try await failing.value }
    #expect(picky.attempts == 8)
  }

  @Test func onlyFailedWritesAreAbandonedAndReportedUntilTaken() async throws {
    let told = Mutex<[ChangeBatch<Int>]>([])
    let store = base.writeBehind(maximumAge: .seconds(1), clock: clock) { failure in
      told.withLock { $0.append(failure.changes) }
    }
    picky.refuse(.encodingFailed) { $0 < 0 }
    try picky.base.apply([.set("b", 7)])
    try await store.setValue(1, forKey: "a")
    try await store.setValue(-1, forKey: "b")
    try await store.apply([.set("c", 1), .set("d", -1)])
    try await store.apply([.set("e", 1), .set("f", 1)])
    await expectStoreError(.encodingFailed) { try await store.flush() }
    #expect(try contents() == ["a": 1, "b": 7, "e": 1, "f": 1])
    // The abandoned writes are invisible. The store keeps and reports them until a caller takes them.
    #expect(try await store.value(forKey: "b") == 7)
    #expect(try await store.value(forKey: "c") == nil)
    #expect(store.statistics.failedChanges == 3)
    #expect(told.withLock { $0 } == [[.set("b", -1)], [.set("c", 1), .set("d", -1)]])
    await expectStoreError(.encodingFailed) { try await store.synchronize() }
    let failures = store.takeFailures()
    #expect(failures.map(\.changes) == told.withLock { $0 })
    #expect(failures.map(\.error.key) == ["b", "d"])
    try await store.flush()
    #expect(store.takeFailures().isEmpty)
    #expect(store.statistics.failedChanges == 0)
  }

  @Test func batchesThatShareAKeyAreAbandonedSeparately() async throws {
    let store = store()
    picky.refuse(.encodingFailed) { $0 < 0 }
    for number in 0..<100 { try await store.apply([.set("counter", number), .set(StoreKey(integer: number), number)]) }
    try await store.apply([.set("counter", 100), .set("bad", -1)])
    await expectStoreError(.encodingFailed) { try await store.flush() }
    #expect(store.takeFailures().map(\.changes) == [[.set("counter", 100), .set("bad", -1)]])
    #expect(try contents().count == 101)
    #expect(try contents()["counter"] == 99)
  }

  /// Because the disk may be full for large batches only, the store abandons no accepted batch untried.
  @Test(arguments: [StoreError.Code.full, .init(rawValue: "other")])
  func goodBatchesAreWrittenDespiteAnyErrorOfOthers(code: StoreError.Code) async throws {
    for mask in 1..<(1 << 7) {
      let picky = PickyStore<Int>()
      picky.refuse { batch, _ in
        for case .set(_, let value) in batch.changes where value < 0 {
          return StoreError(code, during: .apply, message: "the value is refused")
        }
        return nil
      }
      let store = picky.writeBehind(maximumAge: .seconds(1), retries: RetryPolicy(attempts: 0), clock: clock)
      let isBad = { (number: Int) in mask >> number & 1 == 1 }
      for number in 0..<7 { try await store.setValue(isBad(number) ? -1 : 1, forKey: StoreKey(integer: number)) }
      await expectStoreError(code) { try await store.flush() }
      let written = try picky.keys(in: .all, limit: .max, order: .ascending)
      #expect(written == (0..<7).filter { !isBad($0) }.map { StoreKey(integer: $0) })
      #expect(store.takeFailures().map(\.changes) == (0..<7).filter(isBad).map { [.set(StoreKey(integer: $0), -1)] })
    }
  }

  @Test func aGoodValueOutlivesTheBadOneThatFollowsIt() async throws {
    let store = store()
    picky.refuse(.encodingFailed) { $0 < 0 }
    try await store.setValue(1, forKey: "x")
    try await store.setValue(-2, forKey: "x")
    await expectStoreError(.encodingFailed) { try await store.flush() }
    #expect(try contents() == ["x": 1])
    #expect(store.takeFailures().map(\.changes) == [[.set("x", -2)]])
    #expect(try await store.value(forKey: "x") == 1)
  }

  @Test func abandonedWritesAreReportedWithEveryValue() async throws {
    let store = store()
    picky.refuse { _, _ in StoreError(.ioFailed, during: .apply, message: "the sync failed", outcome: .unknown) }
    try await store.setValue(1, forKey: "x")
    try await store.setValue(2, forKey: "x")
    await expectStoreError(.ioFailed) { try await store.flush() }
    #expect(store.takeFailures().map(\.changes) == [[.set("x", 1), .set("x", 2)]])
  }

  @Test func aFailedSyncIsNotRetried() async throws {
    let store = store(retries: RetryPolicy())
    picky.refuse { _, _ in
      StoreError(.ioFailed, during: .apply, key: "a", message: "the sync failed", isRetryable: true, outcome: .unknown)
    }
    try await store.setValue(1, forKey: "a")
    try await store.setValue(1, forKey: "b")
    await expectStoreError(.ioFailed) { try await store.flush() }
    #expect(picky.attempts == 1)
    let failures = store.takeFailures()
    #expect(failures.map(\.error.outcome) == [.unknown])
    #expect(failures.map(\.changes.count) == [2])
  }

  @Test func failuresUseCapacityUntilTheyAreTaken() async throws {
    let store = store(bounds: BatchBounds(changes: 3))
    picky.refuse(.encodingFailed) { $0 < 0 }
    for key in ["a", "b", "c"] { try await store.setValue(-1, forKey: StoreKey(key)) }
    await expectStoreError(.encodingFailed) { try await store.flush() }
    let error = await expectStoreError(.full) { try await store.setValue(1, forKey: "d") }
    #expect((error?.underlying as? StoreError)?.code == .encodingFailed)
    try await store.update("u") { $0 = 1 }
    #expect(store.takeFailures().count == 3)
    try await store.setValue(1, forKey: "d")
    try await store.flush()
    #expect(try contents() == ["d": 1, "u": 1])
  }

  @Test func closingReportsAbandonedWrites() async throws {
    let store = store()
    picky.refuse(.encodingFailed) { $0 < 0 }
    try await store.setValue(-1, forKey: "a")
    try await store.setValue(1, forKey: "b")
    await expectStoreError(.encodingFailed) { try await store.close() }
    #expect(picky.applied == [[.set("b", 1)]])
    #expect(store.takeFailures().map(\.changes) == [[.set("a", -1)]])
    try await store.close()
  }

  /// Many tasks write over a base with permanent and temporary failures.
  @Test func acceptedWritesAreWrittenOrAbandoned() async throws {
    var generator = SeededGenerator(seed: SeededGenerator.seedOfProcess)
    for _ in 0..<20 {
      let (picky, seed) = (PickyStore<Int>(), generator.next())
      let chance = Mutex(SeededGenerator(seed: seed))
      picky.refuse { batch, _ in
        for case .set(let key, let value) in batch.changes where value.isMultiple(of: 17) {
          return StoreError(.encodingFailed, during: .apply, key: key, message: "the value is refused")
        }
        let isBusy = chance.withLock { Int.random(in: 0..<4, using: &$0) } == 0
        return isBusy ? StoreError(.locked, during: .apply, message: "busy", isRetryable: true) : nil
      }
      var plan = FaultPlan(seed: seed)
      plan.schedule(.yields(upTo: 2), probability: 1)
      let store = picky.faulty(plan: plan).writeBehind(
        bounds: BatchBounds(changes: 24), maximumAge: .microseconds(10),
        retries: RetryPolicy(attempts: 1000, firstDelay: .zero))
      try await withThrowingDiscardingTaskGroup { group in
        for task in 0..<4 {
          group.addTask {
            for step in 0..<25 {
              // Each task has its own keys, and writes two of them with one value.
              let value = 100 * task + step
              try await store.apply([.set(StoreKey("\(task)a"), value), .set(StoreKey("\(task)b"), value)])
              let seen = try await store.values(forKeys: [StoreKey("\(task)a"), StoreKey("\(task)b")])
              #expect(seen[0] == seen[1], "seed \(seed)")
            }
          }
        }
      }
      do {
        try await store.flush()
      } catch StoreError.Code.encodingFailed {
        let failures = store.takeFailures()
        #expect(!failures.isEmpty)
        for failure in failures {
          let values = failure.changes.changes.map { if case .set(_, let value) = $0 { value } else { 1 } }
          #expect(values.count == 2 && values[0] == values[1] && values[0].isMultiple(of: 17), "seed \(seed)")
        }
      }
      for task in 0..<4 {
        let values = try picky.values(forKeys: [StoreKey("\(task)a"), StoreKey("\(task)b")])
        #expect(values == [100 * task + 24, 100 * task + 24], "seed \(seed)")
      }
    }
  }

  // MARK: Capabilities

  @Test func capabilitiesOfTheBaseAreReachable() async throws {
    let able = CapableStore()
    let store = able.writeBehind(maximumAge: .seconds(1), clock: clock)
    #expect("\(store)" == "WriteBehindStore[\(able)]")
    #expect(store.information.name == "able")
    #expect(store.information.durability == .accepted)
    #expect(MemoryStore<Int>().writeBehind().information.durability == .volatile)
    try await store.setValue(5, forKey: "a")
    #expect(try await store.remainingTime(forKey: "b") == nil)
    #expect(try await store.remainingTime(forKey: "a") == .limited(.seconds(5)))
    try await store.setValue(6, forKey: "a")
    #expect(try await store.touch("a", timeToLive: .limited(.seconds(1))))
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
