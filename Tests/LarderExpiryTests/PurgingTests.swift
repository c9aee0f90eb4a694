import Foundation
import Larder
import LarderExpiry
import LarderTesting
import TestSupport
import Testing

@Suite struct PurgingTests {
  private func fill(_ bench: TestBench, _ numbers: Range<Int>, timeToLive: TimeToLive) async throws {
    var batch = ExpiringBatch<String>()
    for number in numbers { batch.setValue("\(number)", forKey: StoreKey(integer: number), timeToLive: timeToLive) }
    try await bench.store.apply(batch)
  }

  @Test func `purging removes expired entries and returns their count`() async throws {
    let bench = TestBench()
    try await fill(bench, 0..<300, timeToLive: .after(.seconds(1)))
    try await fill(bench, 300..<500, timeToLive: .after(.seconds(2)))
    try await fill(bench, 500..<600, timeToLive: .never)
    #expect(try await bench.store.purgeExpired() == 0)
    bench.clock.advance(by: .seconds(1))
    #expect(try await bench.store.purgeExpired() == 300)
    #expect(try bench.storedKeys == (300..<600).map { StoreKey(integer: $0) })
    #expect(try await bench.store.purgeExpired() == 0)
    bench.clock.advance(by: .seconds(1))
    #expect(try await bench.store.purgeExpired() == 200)
    #expect(try bench.storedKeys == (500..<600).map { StoreKey(integer: $0) })
  }

  @Test func `purging keeps to its limit`() async throws {
    let bench = TestBench()
    try await fill(bench, 0..<300, timeToLive: .after(.seconds(1)))
    bench.clock.advance(by: .seconds(1))
    #expect(try await bench.store.purgeExpired(limit: 0) == 0)
    #expect(try await bench.store.purgeExpired(limit: 10) == 10)
    #expect(try bench.storedKeys.count == 290)
    #expect(try await bench.store.purgeExpired(limit: 200) == 200)
    #expect(try await bench.store.purgeExpired(limit: 200) == 90)
    let error = await expectStoreError(.invalidArgument) { try await bench.store.purgeExpired(limit: -1) }
    #expect(error?.operation == .purgeExpired)
  }

  /// No update takes more than 128 keys, and other callers have their turn between two updates.
  @Test func `many are purged in slices`() async throws {
    let bench = TestBench()
    let count = 20_000
    try await fill(bench, 0..<count, timeToLive: .after(.seconds(1)))
    bench.clock.advance(by: .seconds(1))
    bench.watched.forgetCalls()
    #expect(try await bench.store.purgeExpired() == count)
    let calls = bench.watched.calls
    #expect(calls.allSatisfy { $0.count <= 128 })
    #expect(bench.watched.count(of: .update) == (count + 127) / 128)
    #expect(Set(calls.map(\.operation)) == [.entries, .update])
    #expect(try bench.memory.count(in: .all) == 0)
  }

  @Test func `nothing is written if nothing has expired`() async throws {
    let bench = TestBench()
    try await fill(bench, 0..<300, timeToLive: .after(.seconds(1)))
    bench.watched.forgetCalls()
    #expect(try await bench.store.purgeExpired() == 0)
    #expect(bench.watched.count(of: .update) == 0)
  }

  // MARK: Races

  @Test func `entries written between the scan and the removal stay`() async throws {
    let bench = TestBench()
    let memory = bench.memory
    try await fill(bench, 0..<3, timeToLive: .after(.seconds(1)))
    bench.clock.advance(by: .seconds(1))
    bench.watched.intervene { operation in
      guard operation == .update else { return }
      try memory.apply([.set(StoreKey(integer: 0), Expiring("new")), .remove(StoreKey(integer: 1))])
    }
    #expect(try await bench.store.purgeExpired() == 1)
    #expect(try await bench.store[StoreKey(integer: 0)] == "new")
    #expect(try bench.storedKeys == [StoreKey(integer: 0)])
    // If all entries were rewritten, nothing is written at all.
    bench.watched.intervene { operation in
      guard operation == .update else { return }
      try memory.apply([.set(StoreKey(integer: 0), Expiring("newer"))])
    }
    try memory.apply([.set(StoreKey(integer: 0), Expiring("old", deadline: ExpiryDeadline(.distantPast)))])
    #expect(try await bench.store.purgeExpired() == 0)
    #expect(try await bench.store[StoreKey(integer: 0)] == "newer")
  }

  @Test func `a purge never removes a newer value`() async throws {
    var generator = SeededGenerator(seed: SeededGenerator.seedOfProcess, purpose: "PurgingTests")
    for _ in 0..<30 {
      let clock = ManualClock()
      var plan = FaultPlan(seed: generator.next())
      plan.schedule(.yields(upTo: 4), probability: 1)
      let memory = MemoryStore<Expiring<Int>>()
      let store = memory.faulty(plan: plan).expiring(.never) { clock.date }
      let keys = (0..<200).map { StoreKey(integer: $0) }
      try memory.apply(ChangeBatch(keys.map { .set($0, Expiring(0, deadline: ExpiryDeadline(clock.date + 1))) }))
      clock.advance(by: .seconds(1))
      let rewritten = keys.filter { _ in Bool.random(using: &generator) }.shuffled(using: &generator)
      try await withThrowingTaskGroup(of: Void.self) { group in
        for _ in 0..<2 { group.addTask { try await store.purgeExpired() } }
        for part in 0..<4 {
          group.addTask {
            for (index, key) in rewritten.enumerated() where index % 4 == part {
              switch index % 3 {
              case 0: try await store.setValue(index + 1, forKey: key)
              case 1: try await store.update(key) { $0 = ($0 ?? 0) + index + 1 }
              default: try await store.setValueKeepingDeadline(index + 1, forKey: key)
              }
            }
          }
        }
        try await group.waitForAll()
      }
      for (index, key) in rewritten.enumerated() {
        #expect(try memory.value(forKey: key) == Expiring(index + 1), "seed \(SeededGenerator.seedOfProcess)")
      }
      #expect(try await store.count() == rewritten.count)
      try await store.purgeExpired()
      #expect(try memory.count(in: .all) == rewritten.count)
    }
  }

  // MARK: By writes

  @Test func `writes purge a few entries`() async throws {
    let bench = TestBench(purgesOnWrite: true)
    let last = StoreKey(bytes: [0xFF])
    try await fill(bench, 0..<1000, timeToLive: .after(.seconds(1)))
    bench.clock.advance(by: .seconds(1))
    bench.watched.forgetCalls()
    for _ in 0..<160 { try await bench.store.setValue("a", forKey: last) }
    let calls = bench.watched.calls
    #expect(calls.count { $0 == .init(.entries, 32) } == 10)
    #expect(calls.allSatisfy { $0.count <= 32 })
    let stored = try bench.storedKeys.count
    #expect(stored == 1000 - 10 * 32 + 1)
    for _ in 0..<500 { try await bench.store.update(last) { _ in } }
    #expect(try bench.storedKeys == [last])
  }

  @Test func `purges by writes keep expired entries fewer than live ones`() async throws {
    let bench = TestBench(.after(.seconds(100)), purgesOnWrite: true)
    var most = 0
    for number in 0..<5000 {
      bench.clock.advance(by: .seconds(1))
      try await bench.store.setValue("a", forKey: StoreKey(integer: number))
      most = max(most, try bench.memory.count(in: .all))
    }
    // A hundred entries are live at any time.
    #expect(most <= 250)
  }

  @Test func `purges by writes can be disabled`() async throws {
    let bench = TestBench(purgesOnWrite: false)
    try await fill(bench, 0..<100, timeToLive: .after(.seconds(1)))
    bench.clock.advance(by: .seconds(1))
    bench.watched.forgetCalls()
    for _ in 0..<100 { try await bench.store.setValue("a", forKey: "z") }
    #expect(bench.watched.count(of: .entries) == 0)
    #expect(try bench.storedKeys.count == 101)
  }

  @Test func `a failed purge fails no write`() async throws {
    let bench = TestBench(purgesOnWrite: true)
    let failures = Locked(0)
    bench.watched.intervene { operation in
      guard operation == .entries else { return }
      failures.withLock { $0 += 1 }
      throw StoreError(.ioFailed, during: .entries, store: "memory", message: "broken", outcome: .unknown)
    }
    for number in 0..<33 { try await bench.store.setValue("a", forKey: StoreKey(integer: number)) }
    #expect(try bench.storedKeys.count == 33)
    // The purge is retried when it is due again.
    #expect(failures.withLock { $0 } == 2)
    #expect(bench.store.statistics().failureCount == 2)
    #expect((bench.store.statistics().lastError as? StoreError)?.operation == .purgeExpired)
  }

  @Test func `a failed purge continues at its position`() async throws {
    let bench = TestBench(purgesOnWrite: true)
    let last = StoreKey(bytes: [0xFF])
    try await fill(bench, 0..<32, timeToLive: .never)
    try await fill(bench, 32..<64, timeToLive: .after(.seconds(1)))
    bench.clock.advance(by: .seconds(1))
    // One slice has seen the live entries. The next slice fails and is not skipped.
    for _ in 0..<16 { try await bench.store.setValue("a", forKey: last) }
    bench.watched.intervene { operation in
      if operation == .entries { throw StoreError(.ioFailed, during: .entries, store: "memory", message: "broken") }
    }
    for _ in 0..<16 { try await bench.store.setValue("a", forKey: last) }
    #expect(bench.store.statistics().failureCount == 1)
    bench.watched.intervene { _ in }
    #expect(try bench.storedKeys.count == 65)
    for _ in 0..<16 { try await bench.store.setValue("a", forKey: last) }
    #expect(try bench.storedKeys.count == 33)
  }

  // MARK: On opening

  // MARK: On a schedule

  @Test func `a purger purges at its interval`() async throws {
    let bench = TestBench(.after(.seconds(90)))
    let schedule = bench.clock
    let purger = bench.store.purger(every: .seconds(60), clock: schedule)
    let running = Task { try await purger.run() }
    try await fill(bench, 0..<300, timeToLive: .after(.seconds(90)))
    try await schedule.waitForSleepers(1)
    schedule.advance(by: .seconds(60))
    try await schedule.waitForSleepers(1)
    #expect(try bench.storedKeys.count == 300)
    schedule.advance(by: .seconds(60))
    try await schedule.waitForSleepers(1)
    #expect(try bench.storedKeys == [])
    running.cancel()
    try await running.value
  }

  @Test func `a purger that is cancelled during a purge returns`() async throws {
    let bench = TestBench()
    try await fill(bench, 0..<300, timeToLive: .after(.seconds(1)))
    let faulty = bench.memory.faulty()
    let clock = bench.clock
    let store = faulty.expiring { clock.date }
    let running = Task { try await store.purger(every: .seconds(60), clock: clock).run() }
    faulty.schedule(.suspension(), on: .entries, number: 2)
    try await clock.waitForSleepers(1)
    clock.advance(by: .seconds(60))
    try await faulty.waitForSuspended()
    running.cancel()
    try await running.value
    // The entries purged before stay purged.
    #expect(try bench.storedKeys.count == 300 - 128)
    #expect(try await store.count() == 0)
  }

  @Test func `a purger keeps no store alive`() async throws {
    let clock = ManualClock()
    var store: ExpiringStore? = MemoryStore<Expiring<String>>().expiring { clock.date }
    weak let weakStore = store
    let purger = try #require(store).purger(every: .seconds(60), clock: clock)
    let running = Task { try await purger.run() }
    try await clock.waitForSleepers(1)
    store = nil
    #expect(weakStore == nil)
    clock.advance(by: .seconds(60))
    try await running.value
  }

  @Test func `a purger of a closed store returns`() async throws {
    let bench = TestBench()
    let (store, clock) = (bench.store, bench.clock)
    let running = Task { try await store.purger(every: .seconds(60), clock: clock).run() }
    try await clock.waitForSleepers(1)
    try await store.close()
    clock.advance(by: .seconds(60))
    try await running.value
  }

  @Test func `a purger throws the purges error and may run again`() async throws {
    let bench = TestBench()
    let (store, clock) = (bench.store, bench.clock)
    let purger = store.purger(every: .seconds(60), clock: clock)
    bench.watched.intervene { _ in throw StoreError(.ioFailed, during: .entries, message: "broken") }
    let failing = Task { try await purger.run() }
    try await clock.waitForSleepers(1)
    clock.advance(by: .seconds(60))
    #expect(await expectStoreError(.ioFailed) { try await failing.value }?.operation == .purgeExpired)
    bench.watched.intervene { _ in }
    let running = Task { try await purger.run() }
    try await clock.waitForSleepers(1)
    running.cancel()
    try await running.value
    await expectStoreError(.invalidArgument) { try await store.purger(every: .zero, clock: clock).run() }
  }

  @Test func `a cancelled purge stops between slices`() async throws {
    let bench = TestBench()
    let store = bench.store
    try await fill(bench, 0..<300, timeToLive: .after(.seconds(1)))
    bench.clock.advance(by: .seconds(1))
    bench.watched.intervene { operation in
      if operation == .update { withUnsafeCurrentTask { $0?.cancel() } }
    }
    await #expect(throws: CancellationError.self) { try await Task { try await store.purgeExpired() }.value }
    // An update in progress may complete or report that it did not.
    #expect(try [300, 300 - 128].contains(bench.storedKeys.count))
  }
}
