import Larder
import LarderTesting
import TestSupport
import Testing

@testable import LarderCache

/// Each race that caches in front of stores are known to lose.
@Suite(.timeLimit(.minutes(60))) struct CachedStoreRaceTests {
  let memory = MemoryStore<Int>()
  let base: FaultyStore<MemoryStore<Int>>
  let store: CachedStore<FaultyStore<MemoryStore<Int>>>

  init() {
    base = memory.faulty()
    store = base.cached()
  }

  /// Begins a read that waits in the base, before it has read or after.
  func beginRead(
    _ moment: StoreFault.Moment, policy: LoadPolicy = .cacheElseLoad
  ) async throws -> Task<Int?, any Error> {
    let before = base.suspendedCount()
    base.schedule(.suspension(moment), on: .value)
    let read = Task { [store] in try await store.value(forKey: "a", policy: policy) }
    try await base.waitForSuspended(before + 1)
    return read
  }

  /// Begins a write that waits in the base, before it has written or after.
  func beginWrite(_ value: Int, _ moment: StoreFault.Moment) async throws -> Task<Void, any Error> {
    let before = base.suspendedCount(of: .apply)
    base.schedule(.suspension(moment), on: .apply)
    let write = Task { [store] in try await store.setValue(value, forKey: "a") }
    try await base.waitForSuspended(before + 1, of: .apply)
    return write
  }

  /// Waits until so many readers have joined loads.
  private func waitForJoiners(_ count: Int) async {
    while store.statistics.sharedLoads < count { await Task.yield() }
  }

  /// Reads while a load of the same key is suspended, and expects not to join that.
  private func readApart() async throws -> Int? {
    let isDone = Flag()
    let read = Task { [store] in
      defer { isDone.set() }
      return try await store.value(forKey: "a")
    }
    while !isDone.isSet && store.statistics.sharedLoads == 0 { await Task.yield() }
    #expect(store.statistics.sharedLoads == 0)
    // Else the test would wait for ever.
    if !isDone.isSet { base.resume() }
    return try await read.value
  }

  private var cached: Int? {
    get async throws { try await store.value(forKey: "a", policy: .cacheOnly) }
  }

  // MARK: Fills and writes

  @Test func aLoadThatAWriteOvertookIsNotKept() async throws {
    try memory.apply([.set("a", 1)])
    let read = try await beginRead(.after)
    try await store.setValue(2, forKey: "a")
    try await store.removeValue(forKey: "a")
    base.resume()
    #expect(try await read.value == 1)
    #expect(try await cached == nil)
    #expect(try await store.value(forKey: "a") == nil)
  }

  @Test func aLoadDoesNotReplaceWhatWasWrittenMeanwhile() async throws {
    try memory.apply([.set("a", 1)])
    let read = try await beginRead(.after)
    try await store.setValue(2, forKey: "a")
    base.resume()
    #expect(try await read.value == 1)
    #expect(try await cached == 2)
  }

  @Test func aReadOfSeveralKeysThatAWriteOvertookIsNotKept() async throws {
    try memory.apply([.set("a", 1), .set("b", 1)])
    base.schedule(.suspension(.after), on: .values)
    let read = Task { [store] in try await store.values(forKeys: ["a", "b"]) }
    try await base.waitForSuspended()
    try await store.setValue(2, forKey: "a")
    try await store.removeValue(forKey: "a")
    base.resume()
    #expect(try await read.value == [1, 1])
    #expect(try await store.values(forKeys: ["a", "b"], policy: .cacheOnly) == [nil, 1])
  }

  @Test func whatIsReadWhileAWriteRunsIsNotKept() async throws {
    try memory.apply([.set("a", 1)])
    let write = try await beginWrite(2, .before)
    // It has read the old value, and comes to its end when the new one is there.
    let read = try await beginRead(.after)
    base.resume(.apply)
    try await write.value
    base.resume(.value)
    #expect(try await read.value == 1)
    #expect(try await store.value(forKey: "a") == 2)
  }

  @Test func whileAWriteRunsReadsGoToTheBase() async throws {
    try memory.apply([.set("a", 1)])
    #expect(try await store.value(forKey: "a") == 1)
    let write = try await beginWrite(2, .after)
    // The base has it, so every reader sees it, though its writer has not heard of it.
    for _ in 1...2 { #expect(try await store.value(forKey: "a") == 2) }
    #expect(try await store.values(forKeys: ["a", "b"]) == [2, nil])
    #expect(try await cached == nil)
    base.resume()
    try await write.value
    #expect(try await cached == 2)
  }

  @Test func ofTwoWritersAtOnceNeitherKeepsItsValue() async throws {
    let first = try await beginWrite(1, .before)
    let second = try await beginWrite(2, .after)
    base.resume()
    try await first.value
    try await second.value
    #expect(try await cached == nil)
    #expect(try await store.value(forKey: "a") == memory.value(forKey: "a"))
  }

  @Test func aWriterWhomTheRemovalOfARangeOvertookDoesNotKeepItsValue() async throws {
    let write = try await beginWrite(1, .after)
    try await store.removeAll(in: .prefix("a"))
    base.resume()
    try await write.value
    #expect(try await store.value(forKey: "a") == nil)
  }

  @Test func aWriterInTheMidstOfTheRemovalOfARangeDoesNotKeepItsValue() async throws {
    base.schedule(.suspension(.before), on: .apply)
    let removal = Task { [store] in try await store.removeAll() }
    try await base.waitForSuspended()
    try await store.setValue(1, forKey: "a")
    #expect(try await cached == nil)
    base.resume()
    try await removal.value
    #expect(try await store.value(forKey: "a") == nil)
  }

  @Test func whileARangeIsRemovedReadsGoToTheBaseAndKeepNothing() async throws {
    try memory.apply([.set("a", 1), .set("b", 1)])
    #expect(try await store.values(forKeys: ["a", "b"]) == [1, 1])
    base.schedule(.suspension(.before), on: .apply)
    let removal = Task { [store] in try await store.removeAll(in: .prefix("a")) }
    try await base.waitForSuspended()
    #expect(try await store.value(forKey: "a") == 1)
    base.resume()
    try await removal.value
    #expect(try await store.value(forKey: "a") == nil)
    #expect(try await store.value(forKey: "b", policy: .cacheOnly) == 1)
  }

  @Test func aLoadThatAnUpdateOvertookDoesNotUndoIt() async throws {
    try memory.apply([.set("a", 1)])
    let read = try await beginRead(.after)
    #expect(try await store.update("a") { slot in slot.map { slot = $0 + 1 } } != nil)
    base.resume()
    #expect(try await read.value == 1)
    #expect(try await cached == 2)
  }

  // MARK: Failed writes

  @Test(arguments: [StoreFault.Moment.before, .after]) func aFailedWriteLeavesNoGhost(
    _ moment: StoreFault.Moment
  ) async throws {
    try await store.setValue(1, forKey: "a")
    base.schedule(.error(.ioFailed, moment), on: .apply)
    await expectStoreError(.ioFailed) { try await store.setValue(2, forKey: "a") }
    #expect(try await cached == nil)
    let value = try memory.value(forKey: "a")
    #expect(try await store.value(forKey: "a") == value)
    // The write is over, so what was read is kept.
    #expect(try await cached == value)
  }

  @Test(arguments: [StoreFault.Moment.before, .after]) func aFailedRemovalLeavesAMissAndNoStaleHit(
    _ moment: StoreFault.Moment
  ) async throws {
    try await store.apply([.set("a", 1), .set("b", 1)])
    base.schedule(.error(.ioFailed, moment), on: .apply)
    await expectStoreError(.ioFailed) { try await store.removeAll() }
    #expect(try await store.values(forKeys: ["a", "b"], policy: .cacheOnly) == [nil, nil])
    #expect(try await store.value(forKey: "a") == memory.value(forKey: "a"))
  }

  @Test func anAbandonedUpdateLeavesNothingOfWhatItsBodyDid() async throws {
    struct Abandonment: Error {}
    try await store.setValue(1, forKey: "a")
    await #expect(throws: Abandonment.self) {
      try await store.update("a") { slot in
        slot = 2
        throw Abandonment()
      }
    }
    #expect(try await store.value(forKey: "a") == 1)
  }

  @Test func anUpdateWhoseCommitFailsAfterItsBodyLeavesNoGhost() async throws {
    try await store.setValue(1, forKey: "a")
    base.schedule(.error(.timedOut, .after), on: .update)
    await expectStoreError(.timedOut) { try await store.update("a") { $0 = 2 } }
    #expect(try await cached == nil)
    #expect(try await store.value(forKey: "a") == 2)
  }

  // MARK: Snapshots

  @Test func aReadOfSeveralKeysIsOneSnapshot() async throws {
    try memory.apply([.set("a", 1), .set("b", 1)])
    #expect(try await store.value(forKey: "a") == 1)
    // Half of it comes from the cache, half from the base, and between the two both are written.
    base.schedule(.suspension(.before), on: .value)
    let read = Task { [store] in try await store.values(forKeys: ["a", "b"]) }
    try await base.waitForSuspended()
    try await store.apply([.set("a", 2), .set("b", 2)])
    base.resume()
    #expect(try await read.value == [2, 2])
  }

  // MARK: Shared loads

  @Test func whoComesAfterAWriteDoesNotJoinALoadFromBeforeIt() async throws {
    try memory.apply([.set("a", 1)])
    let early = try await beginRead(.after)
    base.schedule(.error(.timedOut, .after), on: .apply)
    await expectStoreError(.timedOut) { try await store.setValue(2, forKey: "a") }
    #expect(try await readApart() == 2)
    base.resume()
    #expect(try await early.value == 1)
    #expect(try await cached == 2)
  }

  @Test func whoComesAfterTheRemovalOfARangeDoesNotJoinALoadFromBeforeIt() async throws {
    try memory.apply([.set("a", 1)])
    let early = try await beginRead(.after)
    try await store.removeAll()
    #expect(try await readApart() == nil)
    base.resume()
    #expect(try await early.value == 1)
    #expect(try await cached == nil)
  }

  @Test func whoComesAfterAnInvalidationDoesNotJoinALoadFromBeforeIt() async throws {
    try memory.apply([.set("a", 1)])
    let early = try await beginRead(.after)
    try memory.apply([.set("a", 2)])
    try store.invalidate("a")
    #expect(try await readApart() == 2)
    base.resume()
    #expect(try await early.value == 1)
    #expect(try await cached == 2)
  }

  @Test func aLoadFromBeforeTheInvalidationOfAllIsNotKept() async throws {
    try memory.apply([.set("a", 1)])
    let early = try await beginRead(.after)
    try memory.apply([.set("a", 2)])
    try store.invalidateAll()
    base.resume()
    #expect(try await early.value == 1)
    #expect(try await store.value(forKey: "a") == 2)
  }

  @Test func aLoadFromBeforeAReloadDoesNotReplaceIt() async throws {
    try memory.apply([.set("a", 1)])
    let early = try await beginRead(.after)
    try memory.apply([.set("a", 2)])
    #expect(try await store.value(forKey: "a", policy: .reload) == 2)
    base.resume()
    #expect(try await early.value == 1)
    #expect(try await cached == 2)
  }

  @Test func aWriterDoesNotReplaceWhatWasReloadedMeanwhile() async throws {
    let write = try await beginWrite(1, .after)
    try memory.apply([.set("a", 2)])
    #expect(try await store.value(forKey: "a", policy: .reload) == 2)
    base.resume()
    try await write.value
    #expect(try await store.value(forKey: "a") == 2)
  }

  @Test func aRefreshThatAWriteOvertookIsNotKept() async throws {
    let clock = ManualClock()
    var options = CachedStoreOptions<Int>()
    options.refreshAge = .seconds(1)
    let store = base.cached(options, clock: clock)
    try await store.setValue(1, forKey: "a")
    clock.advance(by: .seconds(1))
    base.schedule(.suspension(.after), on: .value)
    #expect(try await store.value(forKey: "a") == 1)
    try await base.waitForSuspended()
    try await store.setValue(2, forKey: "a")
    base.resume()
    while !store.cache.isIdle { await Task.yield() }
    #expect(try await store.value(forKey: "a") == 2)
    #expect(store.statistics.loads == 1)
  }

  // MARK: Waiting

  @Test func tenThousandTasksThatMissOneKeyMakeOneLoad() async throws {
    try memory.apply([.set("a", 1)])
    let before = base.operationCount
    base.schedule(.yields(upTo: 100), probability: 1)
    try await withThrowingTaskGroup(of: Int?.self) { group in
      for _ in 0..<10_000 { group.addTask { [store] in try await store.value(forKey: "a") } }
      for try await value in group { #expect(value == 1) }
    }
    #expect(base.operationCount == before + 1)
    #expect(store.statistics.loads == 1)
    #expect(store.statistics.hits + store.statistics.misses == 10_000)
  }

  @Test func whoFoundNoCopyAndComesToLeadLooksAgain() async throws {
    try memory.apply([.set("a", 1)])
    #expect(try await store.value(forKey: "a") == 1)
    // As one does who looked before that load had ended.
    #expect(try await store.value(forKey: "a", after: .nothing) == 1)
    #expect(store.statistics.loads == 1)
    #expect(store.cache.isIdle)
  }

  @Test func readersWhoAreCancelledLeaveAtOnceAndTheLoadGoesOn() async throws {
    try memory.apply([.set("a", 1)])
    let leader = try await beginRead(.before)
    let joiners = (0..<3).map { _ in Task { [store] in try await store.value(forKey: "a") } }
    await waitForJoiners(3)
    for task in [leader] + joiners.dropLast() { task.cancel() }
    for task in [leader] + joiners.dropLast() {
      await #expect(throws: CancellationError.self) { try await task.value }
    }
    // Nobody who leaves takes the load away from those who come.
    let late = Task { [store] in try await store.value(forKey: "a") }
    await waitForJoiners(4)
    base.resume()
    #expect(try await joiners[2].value == 1)
    #expect(try await late.value == 1)
    #expect(base.operationCount == 1)
  }

  @Test func whenAllReadersHaveLeftTheLoadIsKeptAllTheSame() async throws {
    try memory.apply([.set("a", 1)])
    let leader = try await beginRead(.before)
    leader.cancel()
    await #expect(throws: CancellationError.self) { try await leader.value }
    base.resume()
    while try await cached == nil { await Task.yield() }
    #expect(base.operationCount == 1)
  }

  @Test func anErrorReachesAllWhoWaitAndIsNotKept() async throws {
    try memory.apply([.set("a", 1)])
    base.schedule(.suspension(.after), on: .value)
    base.schedule(.error(.ioFailed, .after), on: .value)
    let tasks = (0..<5).map { _ in Task { [store] in try await store.value(forKey: "a") } }
    try await base.waitForSuspended()
    await waitForJoiners(4)
    base.resume()
    for task in tasks { await expectStoreError(.ioFailed) { try await task.value } }
    #expect(try await store.value(forKey: "a") == 1)
    #expect(store.statistics.loads == 2)
    #expect(store.statistics.loadFailures == 1)
  }

  @Test func anErrorIsNotTakenForAMissingKey() async throws {
    try memory.apply([.set("a", 1)])
    var options = CachedStoreOptions<Int>()
    options.missingLifetime = .seconds(60)
    let store = base.cached(options)
    base.schedule(.error(.ioFailed), on: .value)
    await expectStoreError(.ioFailed) { try await store.value(forKey: "a") }
    #expect(try await store.value(forKey: "a") == 1)
  }
}
