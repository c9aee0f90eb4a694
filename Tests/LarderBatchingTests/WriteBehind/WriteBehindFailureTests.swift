import Larder
import LarderTesting
import TestSupport
import Testing

@testable import LarderBatching

@Suite(.timeLimit(.minutes(60))) struct WriteBehindFailureTests: WriteBehindSuite {
  let clock = ManualClock()
  let base = PickyStore<Int>().faulty()

  @Test func `only failed writes are abandoned and reported until taken`() async throws {
    let told = Locked<[ChangeBatch<Int>]>([])
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
    #expect(store.statistics().failedChanges == 3)
    #expect(told.withLock { $0 } == [[.set("b", -1)], [.set("c", 1), .set("d", -1)]])
    await expectStoreError(.encodingFailed) { try await store.synchronize() }
    let failures = store.takeFailures()
    #expect(failures.map(\.changes) == told.withLock { $0 })
    #expect(failures.map(\.error.key) == ["b", "d"])
    try await store.flush()
    #expect(store.takeFailures().isEmpty)
    #expect(store.statistics().failedChanges == 0)
  }

  @Test func `batches that share a key are abandoned separately`() async throws {
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
  func `good batches are written despite any error of others`(code: StoreError.Code) async throws {
    for mask in 1..<(1 << 7) {
      let picky = PickyStore<Int>()
      picky.refuse { batch, _ in
        for case .set(_, let value) in batch.changes where value < 0 {
          return StoreError(code, during: .apply, message: "the value is refused")
        }
        return nil
      }
      let store = picky.writeBehind(maximumAge: .seconds(1), clock: clock)
      let isBad = { (number: Int) in mask >> number & 1 == 1 }
      for number in 0..<7 { try await store.setValue(isBad(number) ? -1 : 1, forKey: StoreKey(integer: number)) }
      await expectStoreError(code) { try await store.flush() }
      let written = try picky.keys(in: .all, limit: .max, order: .ascending)
      #expect(written == (0..<7).filter { !isBad($0) }.map { StoreKey(integer: $0) })
      #expect(store.takeFailures().map(\.changes) == (0..<7).filter(isBad).map { [.set(StoreKey(integer: $0), -1)] })
    }
  }

  @Test func `a good value outlives the bad one that follows it`() async throws {
    let store = store()
    picky.refuse(.encodingFailed) { $0 < 0 }
    try await store.setValue(1, forKey: "x")
    try await store.setValue(-2, forKey: "x")
    await expectStoreError(.encodingFailed) { try await store.flush() }
    #expect(try contents() == ["x": 1])
    #expect(store.takeFailures().map(\.changes) == [[.set("x", -2)]])
    #expect(try await store.value(forKey: "x") == 1)
  }

  @Test func `abandoned writes are reported with every value`() async throws {
    let store = store()
    picky.refuse { _, _ in StoreError(.ioFailed, during: .apply, message: "the sync failed", outcome: .unknown) }
    try await store.setValue(1, forKey: "x")
    try await store.setValue(2, forKey: "x")
    await expectStoreError(.ioFailed) { try await store.flush() }
    #expect(store.takeFailures().map(\.changes) == [[.set("x", 1), .set("x", 2)]])
  }

  @Test func `a failed sync is not retried`() async throws {
    let store = store()
    picky.refuse { _, _ in
      StoreError(.ioFailed, during: .apply, key: "a", message: "the sync failed", outcome: .unknown)
    }
    try await store.setValue(1, forKey: "a")
    try await store.setValue(1, forKey: "b")
    await expectStoreError(.ioFailed) { try await store.flush() }
    #expect(picky.attempts == 1)
    let failures = store.takeFailures()
    #expect(failures.map(\.error.outcome) == [.unknown])
    #expect(failures.map(\.changes.count) == [2])
  }

  @Test func `failures use capacity until they are taken`() async throws {
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

  @Test func `closing reports abandoned writes`() async throws {
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
  @Test func `accepted writes are written or abandoned`() async throws {
    var generator = SeededGenerator(seed: SeededGenerator.seedOfProcess)
    for _ in 0..<20 {
      let (picky, seed) = (PickyStore<Int>(), generator.next())
      let chance = Locked(SeededGenerator(seed: seed))
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
        retries: WriteBehindRetryPolicy(maximumDelay: .milliseconds(1), readRetries: .max))
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
}
