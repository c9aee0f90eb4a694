import Larder
import LarderTesting
import Testing

@Suite struct FaultyStoreTests {
  let base = MemoryStore<Int>()

  // MARK: Errors

  @Test func `without a plan the store only forwards`() async throws {
    let store = base.faulty()
    try await store.setValue(1, forKey: "a")
    #expect(try await store.update("a") { $0 = ($0 ?? 0) + 1 } == ())
    #expect(try await store.values(forKeys: ["a", "b"]) == [2, nil])
    #expect(try await store.entries(in: .all, limit: 1).map(\.value) == [2])
    #expect(try await store.keys(in: .all, limit: 1) == ["a"])
    #expect(try await store.count() == 1)
    try await store.synchronize()
    #expect(store.operationCount == 7)
    #expect(store.information.name == base.information.name)
    #expect("\(store)" == "FaultyStore[MemoryStore(memory)]")
    #expect("\(store.faulty())" == "FaultyStore[FaultyStore[MemoryStore(memory)]]")
    try await store.close()
    #expect(throws: StoreError.self) { try base.count(in: .all) }
  }

  @Test func `an error before the base changes nothing`() async throws {
    let store = base.faulty()
    store.schedule(.error(.full), on: .apply)
    let error = try await #require(throws: StoreError.self) { try await store.setValue(1, forKey: "a") }
    #expect(error.code == .full && error.operation == .apply && error.store == "memory")
    #expect(error.outcome == .nothingChanged)
    #expect(try base.value(forKey: "a") == nil)
    try await store.setValue(1, forKey: "a")
    #expect(try base.value(forKey: "a") == 1)
  }

  @Test func `an error before the base may hide that nothing changed`() async throws {
    let store = base.faulty()
    store.schedule(.error(.ioFailed, outcome: .unknown), on: .apply)
    let error = try await #require(throws: StoreError.self) { try await store.setValue(1, forKey: "a") }
    #expect(error.outcome == .unknown)
    #expect(try base.value(forKey: "a") == nil)
  }

  @Test func `an error after the base has an unknown outcome`() async throws {
    let store = base.faulty()
    store.schedule(.error(.ioFailed, .after), on: .apply)
    store.schedule(.error(.ioFailed, .after), on: .update)
    store.schedule(.error(.ioFailed, .after), on: .value)
    let errors = [
      try await #require(throws: StoreError.self) { try await store.setValue(1, forKey: "a") },
      try await #require(throws: StoreError.self) { try await store.update("b") { $0 = 2 } },
    ]
    #expect(errors.map(\.outcome) == [.unknown, .unknown])
    #expect(try base.values(forKeys: ["a", "b"]) == [1, 2])
    let reading = try await #require(throws: StoreError.self) { try await store.value(forKey: "a") }
    #expect(reading.outcome == .nothingChanged && reading.key == "a")
  }

  @Test func `a schedule counts later operations of its kind`() async throws {
    let store = base.faulty()
    try await store.setValue(0, forKey: "a")
    store.schedule(.error(.full), on: .apply, number: 3)
    store.schedule(.error(.ioFailed), number: 2)
    try await store.setValue(1, forKey: "a")
    await #expect(throws: StoreError.self) { try await store.count() }
    try await store.setValue(2, forKey: "a")
    await #expect(throws: StoreError.self) { try await store.setValue(3, forKey: "a") }
    try await store.setValue(4, forKey: "a")
    #expect(try base.value(forKey: "a") == 4)
  }

  @Test func `scheduled faults can be cancelled`() async throws {
    let store = base.faulty()
    store.schedule(.error(.full))
    store.schedule(.error(.full), probability: 1)
    store.clearFaults()
    #expect(try await store.count() == 0)
  }

  @Test func `the seed determines random faults`() async throws {
    func failures(seed: UInt64) async throws -> [Int] {
      var plan = FaultPlan(seed: seed)
      plan.schedule(.error(.ioFailed), on: .count, probability: 0.3)
      let store = MemoryStore<Int>().faulty(plan: plan)
      var failures: [Int] = []
      for number in 0..<100 {
        _ = try await store.keys(in: .all, limit: 1)
        do {
          _ = try await store.count()
        } catch StoreError.Code.ioFailed {
          failures.append(number)
        }
      }
      return failures
    }
    let first = try await failures(seed: 1)
    #expect((15...50).contains(first.count))
    #expect(try await failures(seed: 1) == first)
    #expect(try await failures(seed: 2) != first)
  }

  @Test func `closing closes the base even if it fails`() async throws {
    for moment in [StoreFault.Moment.before, .after] {
      let base = MemoryStore<Int>()
      let store = base.faulty()
      store.schedule(.error(.ioFailed, moment), on: .close)
      await #expect(throws: StoreError.self) { try await store.close() }
      #expect(throws: StoreError.self) { try base.count(in: .all) }
      try await store.close()
    }
  }

  // MARK: Waiting

  @Test func `a suspended operation waits for the test`() async throws {
    let store = base.faulty()
    store.schedule(.suspension(), on: .apply)
    store.schedule(.suspension(.after), on: .value)
    let writing = Task { try await store.setValue(1, forKey: "a") }
    try await store.waitForSuspended(of: .apply)
    #expect(try base.value(forKey: "a") == nil)
    let reading = Task { try await store.value(forKey: "a") }
    try await store.waitForSuspended(2)
    #expect(store.suspendedCount() == 2)
    #expect(store.suspendedCount(of: .value) == 1)
    // The writer continues, and the result of the reader is unchanged.
    store.resume(.apply)
    try await writing.value
    #expect(try base.value(forKey: "a") == 1)
    #expect(store.suspendedCount() == 1)
    store.resume()
    #expect(try await reading.value == nil)
  }

  @Test func `cancellation ends a suspension`() async throws {
    let store = base.faulty()
    store.schedule(.suspension(), on: .apply)
    store.schedule(.suspension(.after), on: .update)
    store.schedule(.suspension(), on: .synchronize)
    let writing = Task { try await store.setValue(1, forKey: "a") }
    let updating = Task { try await store.update("b") { $0 = 2 } }
    let synchronizing = Task { try await store.synchronize() }
    try await store.waitForSuspended(3)
    for task in [writing, updating, synchronizing] { task.cancel() }
    // A call that has not started never does. A call that has taken effect, or that ignores cancellation, continues.
    await #expect(throws: CancellationError.self) { try await writing.value }
    try await updating.value
    try await synchronizing.value
    #expect(try base.values(forKeys: ["a", "b"]) == [nil, 2])
    #expect(store.suspendedCount() == 0)
  }

  @Test func `waiting for a suspension can be cancelled`() async throws {
    let store = base.faulty()
    let waiting = Task { try await store.waitForSuspended() }
    waiting.cancel()
    await #expect(throws: CancellationError.self) { try await waiting.value }
  }

  @Test func `a delay is measured by the clock`() async throws {
    let clock = ManualClock()
    let store = base.faulty(clock: clock)
    store.schedule(.delay(.seconds(5)), on: .apply)
    let writing = Task { try await store.setValue(1, forKey: "a") }
    try await clock.waitForSleepers(1)
    clock.advance(by: .seconds(4))
    #expect(clock.sleeperCount == 1)
    #expect(try base.value(forKey: "a") == nil)
    clock.advance(by: .seconds(1))
    try await writing.value
    #expect(try base.value(forKey: "a") == 1)
  }

  @Test func `faults of an operation occur in order`() async throws {
    let clock = ManualClock()
    let store = base.faulty(clock: clock)
    store.schedule(.yields(upTo: 3), on: .count)
    store.schedule(.delay(.seconds(1)), on: .count)
    store.schedule(.suspension(), on: .count)
    store.schedule(.error(.timedOut), on: .count)
    let counting = Task { try await store.count() }
    try await clock.waitForSleepers(1)
    #expect(store.suspendedCount() == 0)
    clock.advance(by: .seconds(1))
    try await store.waitForSuspended()
    store.resume()
    await #expect(throws: StoreError.self) { try await counting.value }
  }
}
