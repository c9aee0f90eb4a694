import Foundation
import Larder
import LarderExpiry
import LarderTesting
import Synchronization
import TestSupport
import Testing

@Suite struct ExpiringStoreTests {
  // MARK: Expired is absent

  @Test func fiveHundredMillisecondsAreFiveHundredMilliseconds() async throws {
    let bench = TestBench(.after(.milliseconds(500)))
    try await bench.store.setValue("a", forKey: "k")
    bench.clock.advance(by: .milliseconds(499))
    #expect(try await bench.store["k"] == "a")
    bench.clock.advance(by: .microseconds(999))
    #expect(try await bench.store["k"] == "a")
    bench.clock.advance(by: .microseconds(1))
    #expect(try await bench.store["k"] == nil)
  }

  @Test func whatHasExpiredIsAbsentFromEveryOperation() async throws {
    let bench = TestBench()
    let store = bench.store
    try await store.setValue("a", forKey: "a")
    try await store.setValue("b", forKey: "b", expires: .after(.seconds(1)))
    try await store.setValue("c", forKey: "c", expires: .sliding(.seconds(1)))
    try await store.setValue("d", forKey: "d", expires: .at(bench.clock.date + 2))
    #expect(try await store.count() == 4)
    bench.clock.advance(by: .seconds(1))
    #expect(try await store["b"] == nil)
    #expect(try await store["c"] == nil)
    #expect(try await store.values(forKeys: ["d", "c", "b", "a", "c"]) == ["d", nil, nil, "a", nil])
    #expect(try await store.entries(in: .all, limit: 10).map(\.key) == ["a", "d"])
    #expect(try await store.entries(in: .all, limit: 10, order: .descending).map(\.value) == ["d", "a"])
    #expect(try await store.keys(in: .all, limit: 10) == ["a", "d"])
    #expect(try await store.count() == 2)
    #expect(try await store.count(in: .only("b")) == 0)
    #expect(try await !store.contains("b"))
    #expect(try await store.contains("a"))
    #expect(try await store.pages(size: 1).pageCount == 2)
    #expect(try await store.remainingTime(forKey: "b") == nil)
    #expect(try await store.touch("b") == false)
    #expect(try await store.touch("b", lifetime: .unlimited) == false)
    let found = try await store.update(["a", "b", "c"]) { slots in slots }
    #expect(found == ["a", nil, nil])
    var walked: [StoreKey] = []
    for try await entry in store.entries() { walked.append(entry.key) }
    #expect(walked == ["a", "d"])
    bench.clock.advance(by: .seconds(1))
    #expect(try await store.keys(in: .all, limit: 10) == ["a"])
    // Reading removes nothing.
    #expect(try bench.storedKeys == ["a", "d"])
  }

  @Test func anEntryWithoutDeadlineStays() async throws {
    let bench = TestBench()
    try await bench.store.setValue("a", forKey: "k")
    bench.clock.advance(by: .seconds(100_000_000_000))
    #expect(try await bench.store["k"] == "a")
    #expect(try await bench.store.remainingTime(forKey: "k") == .unlimited)
  }

  // MARK: Writing

  @Test func overwritingWithoutALifetimeClearsTheOldOne() async throws {
    let bench = TestBench()
    let store = bench.store
    let writes: [@Sendable () async throws -> Void] = [
      { try await store.setValue("new", forKey: "k") },
      { try await store.apply([.set("k", "new")]) },
      { try await store.apply(ExpiringBatch([.remove("k"), .set("k", "new")])) },
      { try await store.update("k") { $0 = "new" } },
    ]
    for write in writes {
      try await store.setValue("old", forKey: "k", expires: .after(.seconds(1)))
      try await write()
      bench.clock.advance(by: .seconds(2))
      #expect(try await store["k"] == "new")
      #expect(try await store.remainingTime(forKey: "k") == .unlimited)
    }
  }

  /// An entry that has expired and was not purged must not pass its deadline on.
  @Test func creatingAfterExpiryWorks() async throws {
    let bench = TestBench(.after(.seconds(10)))
    let store = bench.store
    let writes: [@Sendable () async throws -> Void] = [
      { try await store.setValue("new", forKey: "k") },
      { try await store.setValueKeepingDeadline("new", forKey: "k") },
      { try await store.update("k") { if $0 == nil { $0 = "new" } } },
      { try await store.updateKeepingDeadlines(["k"]) { if $0[0] == nil { $0[0] = "new" } } },
      { try await store.update(["k"], expires: .after(.seconds(10))) { if $0[0] == nil { $0[0] = "new" } } },
    ]
    for write in writes {
      try await store.setValue("old", forKey: "k", expires: .after(.seconds(1)))
      bench.clock.advance(by: .seconds(1))
      try await write()
      #expect(try await store["k"] == "new")
      #expect(try await store.remainingTime(forKey: "k") == .limited(.seconds(10)))
      bench.clock.advance(by: .seconds(9))
      #expect(try await store["k"] == "new")
      bench.clock.advance(by: .seconds(1))
      #expect(try await store["k"] == nil)
    }
  }

  @Test func keepingTheDeadlineKeepsIt() async throws {
    let bench = TestBench(.after(.seconds(10)))
    let store = bench.store
    try await store.setValue("old", forKey: "limited", expires: .after(.seconds(3)))
    try await store.setValue("old", forKey: "unlimited", expires: .never)
    bench.clock.advance(by: .seconds(1))
    for key in ["limited", "unlimited"] as [StoreKey] {
      try await store.setValueKeepingDeadline("new", forKey: key)
      try await store.updateKeepingDeadlines([key]) { $0[0]? += "er" }
      #expect(try await store[key] == "newer")
    }
    #expect(try await store.remainingTime(forKey: "limited") == .limited(.seconds(2)))
    #expect(try await store.remainingTime(forKey: "unlimited") == .unlimited)
    bench.clock.advance(by: .seconds(2))
    #expect(try await store["limited"] == nil)
  }

  @Test func aBatchGivesEachValueAnExpirationOfItsOwn() async throws {
    let bench = TestBench(.after(.seconds(2)))
    var batch = ExpiringBatch<String>([.set("default", "x")])
    batch.removeAll(in: .prefix("old"))
    batch.setValue("one", forKey: "one", expires: .after(.seconds(1)))
    batch.setValue("own default", forKey: "own default")
    batch.setValue("never", forKey: "never", expires: .never)
    batch.setValue("gone", forKey: "changed", expires: .never)
    batch.setValue("changed", forKey: "changed", expires: .after(.seconds(3)))
    batch.setValue("over", forKey: "over", expires: .at(bench.clock.date))
    batch.removeValue(forKey: "removed")
    try await bench.store.apply([.set("old", "o"), .set("removed", "r"), .set("over", "o")])
    try await bench.store.apply(batch)
    #expect(try await bench.store.count() == 5)
    #expect(try bench.storedKeys == ["changed", "default", "never", "one", "own default"])
    let expected: [StoreKey: Lifetime] = [
      "default": .limited(.seconds(2)), "one": .limited(.seconds(1)), "own default": .limited(.seconds(2)),
      "never": .unlimited, "changed": .limited(.seconds(3)),
    ]
    for (key, lifetime) in expected { #expect(try await bench.store.remainingTime(forKey: key) == lifetime) }
  }

  @Test func aBatchWithOneSenselessExpirationChangesNothing() async throws {
    let bench = TestBench()
    var batch = ExpiringBatch<String>()
    batch.setValue("a", forKey: "a")
    batch.setValue("b", forKey: "b", expires: .after(.zero))
    let error = await expectStoreError(.invalidArgument) { try await bench.store.apply(batch) }
    #expect(error?.operation == .apply)
    #expect(try bench.storedKeys == [])
  }

  // Not as arguments of the test: Foundation cannot describe the date of the last one.
  private static let senseless: [Expiration] = [
    .after(.zero), .after(.seconds(-1)), .sliding(.zero), .at(Date(timeIntervalSince1970: .nan)),
  ]

  @Test(arguments: senseless.indices) func aLifetimeOfZeroOrLessIsRefused(_ index: Int) async throws {
    let expiration = ExpiringStoreTests.senseless[index]
    let bench = TestBench()
    let store = bench.store
    try await store.setValue("old", forKey: "k")
    let calls: [(StoreOperation, @Sendable () async throws -> Void)] = [
      (.apply, { try await store.setValue("new", forKey: "k", expires: expiration) }),
      (.update, { try await store.update(["k"], expires: expiration) { $0[0] = "new" } }),
      (.touch, { try await store.touch("k", expires: expiration) }),
    ]
    for (operation, call) in calls {
      let error = await expectStoreError(.invalidArgument) { try await call() }
      #expect(error?.operation == operation)
      #expect(error?.outcome == .nothingChanged)
    }
    for duration in [Duration.zero, .nanoseconds(-1)] {
      await expectStoreError(.invalidArgument) { try await store.touch("k", lifetime: .limited(duration)) }
    }
    #expect(try await store["k"] == "old")
    // As the expiration of the store it makes the writes that need it fail, and no others.
    let senseless = bench.memory.expiring(expiration)
    await expectStoreError(.invalidArgument) { try await senseless.setValue("new", forKey: "k") }
    await expectStoreError(.invalidArgument) { try await senseless.update("k") { $0 = "new" } }
    await expectStoreError(.invalidArgument) { try await senseless.touch("k") }
    #expect(try await senseless["k"] == "old")
    try await senseless.setValue("new", forKey: "k", expires: .never)
    #expect(try await senseless["k"] == "new")
    try await senseless.removeValue(forKey: "k")
    #expect(try bench.storedKeys == [])
  }

  @Test func aLifetimeWithoutEndNeverEnds() async throws {
    let bench = TestBench()
    let longest = Duration.seconds(Int64.max) * 10
    try await bench.store.setValue("a", forKey: "never", expires: .never)
    try await bench.store.setValue("a", forKey: "after", expires: .after(longest))
    try await bench.store.setValue("a", forKey: "sliding", expires: .sliding(longest))
    try await bench.store.setValue("a", forKey: "touched", expires: .after(.seconds(1)))
    try await bench.store.touch("touched", lifetime: .limited(longest))
    bench.clock.advance(by: .seconds(1_000_000_000_000))
    for key in ["never", "after", "sliding", "touched"] as [StoreKey] {
      #expect(try await bench.store[key] == "a")
      #expect(try await bench.store.remainingTime(forKey: key) == .unlimited)
    }
  }

  @Test func aDateThatHasComeRemovesWhatWasThere() async throws {
    let bench = TestBench()
    let store = bench.store
    let date = bench.clock.date
    let writes: [@Sendable () async throws -> Void] = [
      { try await store.setValue("new", forKey: "k", expires: .at(date)) },
      { try await store.setValue("new", forKey: "k", expires: .at(.distantPast)) },
      { try await store.update(["k"], expires: .at(date)) { $0[0] = "new" } },
      { try await store.touch("k", expires: .at(date)) },
    ]
    for write in writes {
      try await store.setValue("old", forKey: "k")
      try await write()
      #expect(try await store["k"] == nil)
      #expect(try bench.storedKeys == [])
    }
  }

  @Test func touchingChangesTheDeadlineAndNothingElse() async throws {
    let bench = TestBench(.after(.seconds(5)))
    let store = bench.store
    try await store.setValue("a", forKey: "k", expires: .after(.seconds(1)))
    #expect(try await store.touch("k"))
    #expect(try await store.remainingTime(forKey: "k") == .limited(.seconds(5)))
    #expect(try await store.touch("k", lifetime: .unlimited))
    #expect(try await store.remainingTime(forKey: "k") == .unlimited)
    #expect(try await store.touch("k", lifetime: .limited(.milliseconds(500))))
    #expect(try await store.remainingTime(forKey: "k") == .limited(.milliseconds(500)))
    #expect(try await store.touch("k", expires: .at(bench.clock.date + 3)))
    #expect(try await store.remainingTime(forKey: "k") == .limited(.seconds(3)))
    #expect(try await store["k"] == "a")
    #expect(try await store.touch("missing") == false)
    #expect(try bench.storedKeys == ["k"])
    // A deadline that slides goes on to.
    #expect(try await store.touch("k", expires: .sliding(.seconds(10))))
    #expect(try await store.touch("k", lifetime: .limited(.seconds(20))))
    bench.clock.advance(by: .seconds(10))
    #expect(try await store["k"] == "a")
    #expect(try await store.remainingTime(forKey: "k") == .limited(.seconds(20)))
    let error = await expectStoreError(.invalidKey) { try await store.touch("") }
    #expect(error?.operation == .touch)
  }

  @Test func anUpdateThatThrowsChangesNothing() async throws {
    struct Refusal: Error {}
    let bench = TestBench(.after(.seconds(5)))
    try await bench.store.setValue("old", forKey: "k", expires: .after(.seconds(1)))
    await #expect(throws: Refusal.self) {
      try await bench.store.update("k") { slot in
        slot = "new"
        throw Refusal()
      }
    }
    #expect(try await bench.store["k"] == "old")
    #expect(try await bench.store.remainingTime(forKey: "k") == .limited(.seconds(1)))
  }

  // MARK: Time

  @Test func theClockIsReadOnceInACall() async throws {
    let reads = Mutex(0)
    let memory = MemoryStore<Expiring<String>>()
    let store = memory.expiring(.after(.seconds(5)), purgesOnWrite: false) {
      reads.withLock { $0 += 1 }
      return Date(timeIntervalSince1970: 0)
    }
    try memory.apply(
      ChangeBatch((0..<40).map { .set(StoreKey(integer: $0), Expiring("a", deadline: Deadline(.distantPast))) }))
    try await store.setValue("a", forKey: "k")
    reads.withLock { $0 = 0 }
    let calls: [@Sendable () async throws -> Void] = [
      { _ = try await store.value(forKey: "k") },
      { _ = try await store.values(forKeys: ["k", "m", "k"]) },
      { _ = try await store.entries(in: .all, limit: 1) },
      { _ = try await store.keys(in: .all, limit: 1) },
      { _ = try await store.count() },
      { try await store.apply([.set("k", "b"), .set("m", "b")]) },
      { try await store.update(["k", "m"]) { $0 = $0.reversed() } },
      { try await store.updateKeepingDeadlines(["k", "m"]) { $0 = $0.reversed() } },
      { try await store.touch("k") },
      { _ = try await store.remainingTime(forKey: "k") },
    ]
    for (index, call) in calls.enumerated() {
      try await call()
      #expect(reads.withLock { $0 } == index + 1)
    }
  }

  /// The deadline is put off and the old one passes while a read that has seen the old one is on its way back: the entry
  /// was live all the time.
  @Test(arguments: [StoreOperation.value, .values, .entries])
  func anEntryThatIsTouchedInTheMidstOfAReadIsFound(_ operation: StoreOperation) async throws {
    let clock = ManualClock()
    let faulty = MemoryStore<Expiring<String>>().faulty()
    let store = faulty.expiring(.after(.seconds(10))) { clock.date }
    try await store.setValue("a", forKey: "k")
    faulty.schedule(.suspension(.after), on: operation)
    let reading = Task {
      switch operation {
      case .value: try await store.value(forKey: "k")
      case .values: try await store.values(forKeys: ["k"])[0]
      default: try await store.entries(in: .all, limit: 1).first?.value
      }
    }
    try await faulty.waitForSuspended()
    clock.advance(by: .seconds(5))
    try await store.touch("k")
    clock.advance(by: .seconds(6))
    faulty.resume()
    #expect(try await reading.value == "a")
  }

  /// The time passes while an update waits for its turn: what its body sees has to be live when it runs.
  @Test func anUpdateLooksAtTheClockWhenItsBodyRuns() async throws {
    let bench = TestBench(.after(.seconds(1)))
    let (store, clock) = (bench.store, bench.clock)
    try await store.setValue("a", forKey: "k")
    bench.watched.intervene { operation in
      if operation == .update { clock.advance(by: .seconds(1)) }
    }
    let found = try await store.update("k") { slot in
      defer { slot = "new" }
      return slot
    }
    #expect(found == nil)
    #expect(try await store.remainingTime(forKey: "k") == .limited(.seconds(1)))
  }

  @Test func aClockPutForwardLetsEntriesExpireEarlierByAsMuch() async throws {
    let bench = TestBench(.after(.seconds(100)))
    try await bench.store.setValue("a", forKey: "k")
    bench.clock.advance(by: .seconds(60))
    #expect(try await bench.store.remainingTime(forKey: "k") == .limited(.seconds(40)))
    bench.clock.advance(by: .seconds(39))
    #expect(try await bench.store["k"] == "a")
    bench.clock.advance(by: .seconds(1))
    #expect(try await bench.store["k"] == nil)
  }

  @Test func aClockPutBackLetsEntriesLiveLongerByAsMuch() async throws {
    let bench = TestBench(.after(.seconds(100)))
    try await bench.store.apply([.set("kept", "a"), .set("purged", "a")])
    bench.clock.advance(by: .seconds(100))
    #expect(try await bench.store.count() == 0)
    try await bench.memory.removeValue(forKey: "purged")
    bench.clock.advance(by: .seconds(-60))
    // What was not purged is live again, and for so long as the clock was put back.
    #expect(try await bench.store["kept"] == "a")
    #expect(try await bench.store["purged"] == nil)
    #expect(try await bench.store.remainingTime(forKey: "kept") == .limited(.seconds(60)))
    bench.clock.advance(by: .seconds(60))
    #expect(try await bench.store["kept"] == nil)
  }

  // MARK: Pages

  @Test func aPageIsFilledWithLiveEntriesOfOneSnapshot() async throws {
    let bench = TestBench()
    let numbers = 0..<100
    try await bench.store.apply(ChangeBatch(numbers.map { .set(StoreKey(integer: $0), "\($0)") }))
    for number in numbers where number % 10 != 9 {
      try await bench.store.touch(StoreKey(integer: number), lifetime: .limited(.seconds(1)))
    }
    bench.clock.advance(by: .seconds(1))
    bench.watched.forgetCalls()
    let page = try await bench.store.entries(in: .all, limit: 3)
    #expect(page.map(\.value) == ["9", "19", "29"])
    // Read again from its start, twice as much each time: what is returned is one call's.
    #expect(bench.watched.calls == [3, 6, 12, 24, 48].map { .init(.entries, $0) })
    #expect(try await bench.store.keys(in: .all, limit: 3, order: .descending).map(\.integer) == [99, 89, 79])
    #expect(try await bench.store.entries(in: .all, limit: .max).count == 10)
    #expect(try await bench.store.entries(in: .all, limit: 0).isEmpty)
    var walked: [[String]] = []
    for try await page in bench.store.pages(size: 4) { walked.append(page.entries.map(\.value)) }
    #expect(walked == [["9", "19", "29", "39"], ["49", "59", "69", "79"], ["89", "99"]])
  }

  @Test func noLimitIsTooLargeToBeDoubled() async throws {
    let bench = TestBench()
    try await bench.store.setValue("a", forKey: "k")
    for limit in [Int.max, .max - 1, .max / 2, .max / 2 + 1] {
      #expect(try await bench.store.entries(in: .all, limit: limit).count == 1)
      #expect(try await bench.store.keys(in: .all, limit: limit) == ["k"])
    }
    await expectStoreError(.invalidArgument) { try await bench.store.entries(in: .all, limit: -1) }
    let error = await expectStoreError(.invalidArgument) { try await bench.store.keys(in: .all, limit: -1) }
    #expect(error?.operation == .keys)
  }

  // MARK: Itself

  @Test func itHandsOnWhatItsBaseSaysAndCanDo() async throws {
    let bench = TestBench()
    #expect(bench.store.information.name == "memory")
    #expect(bench.store.information.acknowledgement == .volatile)
    #expect(bench.store.information.maintenance == nil)
    #expect("\(bench.memory.expiring())" == "ExpiringStore[MemoryStore(memory)]")
    try bench.store.invalidate("k")
    try bench.store.invalidateAll()
    try await bench.store.flush()
    try await bench.store.synchronize()
    try await bench.store.close()
    try await bench.store.close()
    #expect(
      bench.watched.calls.map(\.operation.rawValue)
        == ["invalidate \"k\"", "invalidateAll", "flush", "synchronize", "close", "close"])
    for call in [
      { try await bench.store.touch("k") as Any }, { try await bench.store.remainingTime(forKey: "k") as Any },
      { try await bench.store.purgeExpired() }, { try await bench.store.setValueKeepingDeadline("a", forKey: "k") },
    ] as [() async throws -> Any] {
      await expectStoreError(.closed) { try await call() }
    }
  }

  @Test func closingWaitsForAPageThatIsReadAgain() async throws {
    let clock = ManualClock()
    let faulty = MemoryStore<Expiring<String>>().faulty()
    let store = faulty.expiring { clock.date }
    try await store.setValue("a", forKey: "a", expires: .after(.seconds(1)))
    try await store.setValue("b", forKey: "b")
    clock.advance(by: .seconds(1))
    faulty.schedule(.suspension(), on: .entries, number: 2)
    let reading = Task { try await store.entries(in: .all, limit: 1).map(\.value) }
    try await faulty.waitForSuspended()
    let closing = Task { try await store.close() }
    var isClosing = false
    while !isClosing {
      do {
        _ = try await store.count()
      } catch StoreError.Code.closed {
        isClosing = true
      }
    }
    faulty.resume()
    #expect(try await reading.value == ["b"])
    try await closing.value
  }

  /// A decorator outside that knows the ability reaches it.
  @Test func whatExpiresIsAnAbility() async throws {
    func halve(_ store: some ExpirableStore<String>, _ key: StoreKey) async throws {
      guard case .limited(let duration) = try await store.remainingTime(forKey: key) else { return }
      try await store.touch(key, lifetime: .limited(duration / 2))
    }
    let bench = TestBench(.after(.seconds(8)))
    try await bench.store.setValue("a", forKey: "k")
    try await halve(bench.store, "k")
    #expect(try await bench.store.remainingTime(forKey: "k") == .limited(.seconds(4)))
  }
}
