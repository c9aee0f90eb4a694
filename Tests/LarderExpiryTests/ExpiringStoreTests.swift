import Foundation
import Larder
import LarderExpiry
import LarderTesting
import TestSupport
import Testing

@Suite struct ExpiringStoreTests {
  // MARK: Expired entries

  @Test func `five hundred milliseconds are five hundred milliseconds`() async throws {
    let bench = TestBench(.after(.milliseconds(500)))
    try await bench.store.setValue("a", forKey: "k")
    bench.clock.advance(by: .milliseconds(499))
    #expect(try await bench.store["k"] == "a")
    bench.clock.advance(by: .microseconds(999))
    #expect(try await bench.store["k"] == "a")
    bench.clock.advance(by: .microseconds(1))
    #expect(try await bench.store["k"] == nil)
  }

  @Test func `expired entries are absent from every operation`() async throws {
    let bench = TestBench()
    let store = bench.store
    try await store.setValue("a", forKey: "a")
    try await store.setValue("b", forKey: "b", timeToLive: .after(.seconds(1)))
    try await store.setValue("c", forKey: "c", timeToLive: .sliding(.seconds(1)))
    try await store.setValue("d", forKey: "d", timeToLive: .until(bench.clock.date + 2))
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
    #expect(try await store.touch("b", timeToLive: .never) == false)
    let found = try await store.update(["a", "b", "c"]) { slots in Array(slots) }
    #expect(found == ["a", nil, nil])
    var walked: [StoreKey] = []
    for try await entry in store.entries() { walked.append(entry.key) }
    #expect(walked == ["a", "d"])
    bench.clock.advance(by: .seconds(1))
    #expect(try await store.keys(in: .all, limit: 10) == ["a"])
    // Reads remove nothing, nor does an update that assigns nothing.
    #expect(try bench.storedKeys == ["a", "b", "c", "d"])
  }

  @Test func `an entry without deadline stays`() async throws {
    let bench = TestBench()
    try await bench.store.setValue("a", forKey: "k")
    bench.clock.advance(by: .seconds(100_000_000_000))
    #expect(try await bench.store["k"] == "a")
    #expect(try await bench.store.remainingTime(forKey: "k") == .never)
    #expect(try await bench.store.timeUntilExpiry(of: "k") == nil)
  }

  // MARK: Writing

  @Test func `overwriting without a time to live removes the deadline`() async throws {
    let bench = TestBench()
    let store = bench.store
    let writes: [@Sendable () async throws -> Void] = [
      { try await store.setValue("new", forKey: "k") },
      { try await store.apply([.set("k", "new")]) },
      { try await store.apply(ExpiringBatch([.remove("k"), .set("k", "new")])) },
      { try await store.update("k") { $0 = "new" } },
    ]
    for write in writes {
      try await store.setValue("old", forKey: "k", timeToLive: .after(.seconds(1)))
      try await write()
      bench.clock.advance(by: .seconds(2))
      #expect(try await store["k"] == "new")
      #expect(try await store.remainingTime(forKey: "k") == .never)
    }
  }

  /// An expired entry that was not purged must not pass on its deadline.
  @Test func `creating after expiry works`() async throws {
    let bench = TestBench(.after(.seconds(10)))
    let store = bench.store
    let writes: [@Sendable () async throws -> Void] = [
      { try await store.setValue("new", forKey: "k") },
      { try await store.setValueKeepingDeadline("new", forKey: "k") },
      { try await store.update("k") { if $0 == nil { $0 = "new" } } },
      { try await store.updateKeepingDeadlines(["k"]) { if $0[0] == nil { $0[0] = "new" } } },
      { try await store.update(["k"], timeToLive: .after(.seconds(10))) { if $0[0] == nil { $0[0] = "new" } } },
    ]
    for write in writes {
      try await store.setValue("old", forKey: "k", timeToLive: .after(.seconds(1)))
      bench.clock.advance(by: .seconds(1))
      try await write()
      #expect(try await store["k"] == "new")
      #expect(try await store.remainingTime(forKey: "k") == .after(.seconds(10)))
      #expect(try await store.timeUntilExpiry(of: "k") == .seconds(10))
      #expect(try await store.timeUntilExpiry(of: "missing") == .zero)
      bench.clock.advance(by: .seconds(9))
      #expect(try await store["k"] == "new")
      bench.clock.advance(by: .seconds(1))
      #expect(try await store["k"] == nil)
    }
  }

  @Test func `keeping the deadline keeps it`() async throws {
    let bench = TestBench(.after(.seconds(10)))
    let store = bench.store
    try await store.setValue("old", forKey: "limited", timeToLive: .after(.seconds(3)))
    try await store.setValue("old", forKey: "unlimited", timeToLive: .never)
    bench.clock.advance(by: .seconds(1))
    for key in ["limited", "unlimited"] as [StoreKey] {
      try await store.setValueKeepingDeadline("new", forKey: key)
      try await store.updateKeepingDeadlines([key]) { $0[0]? += "er" }
      #expect(try await store[key] == "newer")
    }
    #expect(try await store.remainingTime(forKey: "limited") == .after(.seconds(2)))
    #expect(try await store.remainingTime(forKey: "unlimited") == .never)
    bench.clock.advance(by: .seconds(2))
    #expect(try await store["limited"] == nil)
  }

  @Test func `a batch gives each value its own time to live`() async throws {
    let bench = TestBench(.after(.seconds(2)))
    var batch = ExpiringBatch<String>([.set("default", "x")])
    batch.removeAll(in: .prefix("old"))
    batch.setValue("one", forKey: "one", timeToLive: .after(.seconds(1)))
    batch.setValue("own default", forKey: "own default")
    batch.setValue("never", forKey: "never", timeToLive: .never)
    batch.setValue("gone", forKey: "changed", timeToLive: .never)
    batch.setValue("changed", forKey: "changed", timeToLive: .after(.seconds(3)))
    batch.setValue("over", forKey: "over", timeToLive: .until(bench.clock.date))
    batch.removeValue(forKey: "removed")
    try await bench.store.apply([.set("old", "o"), .set("removed", "r"), .set("over", "o")])
    try await bench.store.apply(batch)
    #expect(try await bench.store.count() == 5)
    #expect(try bench.storedKeys == ["changed", "default", "never", "one", "own default"])
    let expected: [StoreKey: TimeToLive] = [
      "default": .after(.seconds(2)), "one": .after(.seconds(1)), "own default": .after(.seconds(2)),
      "never": .never, "changed": .after(.seconds(3)),
    ]
    for (key, timeToLive) in expected { #expect(try await bench.store.remainingTime(forKey: key) == timeToLive) }
  }

  @Test func `a batch with an invalid time to live changes nothing`() async throws {
    let bench = TestBench()
    var batch = ExpiringBatch<String>()
    batch.setValue("a", forKey: "a")
    batch.setValue("b", forKey: "b", timeToLive: .after(.zero))
    let error = await expectStoreError(.invalidArgument) { try await bench.store.apply(batch) }
    #expect(error?.operation == .apply)
    #expect(try bench.storedKeys == [])
  }

  // Not test arguments, because Foundation cannot describe the last date.
  private static let senseless: [TimeToLive] = [
    .after(.zero), .after(.seconds(-1)), .sliding(.zero), .until(Date(timeIntervalSince1970: .nan)),
  ]

  @Test(arguments: senseless.indices) func `a time to live must be positive`(_ index: Int) async throws {
    let timeToLive = ExpiringStoreTests.senseless[index]
    let bench = TestBench()
    let store = bench.store
    try await store.setValue("old", forKey: "k")
    let calls: [(StoreOperation, @Sendable () async throws -> Void)] = [
      (.apply, { try await store.setValue("new", forKey: "k", timeToLive: timeToLive) }),
      (.update, { try await store.update(["k"], timeToLive: timeToLive) { $0[0] = "new" } }),
      (.touch, { try await store.touch("k", timeToLive: timeToLive) }),
    ]
    for (operation, call) in calls {
      let error = await expectStoreError(.invalidArgument) { try await call() }
      #expect(error?.operation == operation)
      #expect(error?.outcome == .nothingChanged)
    }
    for duration in [Duration.zero, .nanoseconds(-1)] {
      await expectStoreError(.invalidArgument) { try await store.touch("k", timeToLive: .after(duration)) }
    }
    #expect(try await store["k"] == "old")
    // As the store's time to live, it fails only the writes that use it.
    let senseless = bench.memory.expiring(timeToLive)
    await expectStoreError(.invalidArgument) { try await senseless.setValue("new", forKey: "k") }
    await expectStoreError(.invalidArgument) { try await senseless.update("k") { $0 = "new" } }
    await expectStoreError(.invalidArgument) { try await senseless.touch("k") }
    #expect(try await senseless["k"] == "old")
    try await senseless.setValue("new", forKey: "k", timeToLive: .never)
    #expect(try await senseless["k"] == "new")
    try await senseless.removeValue(forKey: "k")
    #expect(try bench.storedKeys == [])
  }

  @Test func `an unlimited time to live never ends`() async throws {
    let bench = TestBench()
    let longest = Duration.seconds(Int64.max) * 10
    try await bench.store.setValue("a", forKey: "never", timeToLive: .never)
    try await bench.store.setValue("a", forKey: "after", timeToLive: .after(longest))
    try await bench.store.setValue("a", forKey: "sliding", timeToLive: .sliding(longest))
    try await bench.store.setValue("a", forKey: "touched", timeToLive: .after(.seconds(1)))
    try await bench.store.touch("touched", timeToLive: .after(longest))
    bench.clock.advance(by: .seconds(1_000_000_000_000))
    for key in ["never", "after", "sliding", "touched"] as [StoreKey] {
      #expect(try await bench.store[key] == "a")
      #expect(try await bench.store.remainingTime(forKey: key) == .never)
    }
  }

  @Test func `a past deadline removes the entry`() async throws {
    let bench = TestBench()
    let store = bench.store
    let date = bench.clock.date
    let writes: [@Sendable () async throws -> Void] = [
      { try await store.setValue("new", forKey: "k", timeToLive: .until(date)) },
      { try await store.setValue("new", forKey: "k", timeToLive: .until(.distantPast)) },
      { try await store.update(["k"], timeToLive: .until(date)) { $0[0] = "new" } },
      { try await store.touch("k", timeToLive: .until(date)) },
    ]
    for write in writes {
      try await store.setValue("old", forKey: "k")
      try await write()
      #expect(try await store["k"] == nil)
      #expect(try bench.storedKeys == [])
    }
  }

  @Test func `touching changes only the deadline`() async throws {
    let bench = TestBench(.after(.seconds(5)))
    let store = bench.store
    try await store.setValue("a", forKey: "k", timeToLive: .after(.seconds(1)))
    #expect(try await store.touch("k"))
    #expect(try await store.remainingTime(forKey: "k") == .after(.seconds(5)))
    #expect(try await store.touch("k", timeToLive: .never))
    #expect(try await store.remainingTime(forKey: "k") == .never)
    #expect(try await store.touch("k", timeToLive: .after(.milliseconds(500))))
    #expect(try await store.remainingTime(forKey: "k") == .after(.milliseconds(500)))
    #expect(try await store.touch("k", timeToLive: .until(bench.clock.date + 3)))
    #expect(try await store.remainingTime(forKey: "k") == .after(.seconds(3)))
    #expect(try await store["k"] == "a")
    #expect(try await store.touch("missing") == false)
    #expect(try bench.storedKeys == ["k"])
    // An entry can also get a sliding deadline.
    #expect(try await store.touch("k", timeToLive: .sliding(.seconds(10))))
    #expect(try await store.touch("k", timeToLive: .sliding(.seconds(20))))
    bench.clock.advance(by: .seconds(10))
    #expect(try await store["k"] == "a")
    #expect(try await store.remainingTime(forKey: "k") == .after(.seconds(20)))
    let error = await expectStoreError(.invalidKey) { try await store.touch("") }
    #expect(error?.operation == .touch)
  }

  @Test func `an update that throws changes nothing`() async throws {
    struct Refusal: Error {}
    let bench = TestBench(.after(.seconds(5)))
    try await bench.store.setValue("old", forKey: "k", timeToLive: .after(.seconds(1)))
    await #expect(throws: Refusal.self) {
      try await bench.store.update("k") { slot in
        slot = "new"
        throw Refusal()
      }
    }
    #expect(try await bench.store["k"] == "old")
    #expect(try await bench.store.remainingTime(forKey: "k") == .after(.seconds(1)))
  }

  // MARK: Time

  @Test func `the clock is read once in a call`() async throws {
    let reads = Locked(0)
    let memory = MemoryStore<Expiring<String>>()
    let store = memory.expiring(.after(.seconds(5)), purgesOnWrite: false) {
      reads.withLock { $0 += 1 }
      return Date(timeIntervalSince1970: 0)
    }
    try memory.apply(
      ChangeBatch((0..<40).map { .set(StoreKey(integer: $0), Expiring("a", deadline: ExpiryDeadline(.distantPast))) }))
    try await store.setValue("a", forKey: "k")
    reads.withLock { $0 = 0 }
    let calls: [@Sendable () async throws -> Void] = [
      { _ = try await store.value(forKey: "k") },
      { _ = try await store.values(forKeys: ["k", "m", "k"]) },
      { _ = try await store.entries(in: .all, limit: 1) },
      { _ = try await store.keys(in: .all, limit: 1) },
      { _ = try await store.count() },
      { try await store.apply([.set("k", "b"), .set("m", "b")]) },
      { try await store.update(["k", "m"]) { $0.assign(Array($0.reversed())) } },
      { try await store.updateKeepingDeadlines(["k", "m"]) { $0.assign(Array($0.reversed())) } },
      { try await store.touch("k") },
      { _ = try await store.remainingTime(forKey: "k") },
    ]
    for (index, call) in calls.enumerated() {
      try await call()
      #expect(reads.withLock { $0 } == index + 1)
    }
  }

  /// The deadline is moved, and the old one passes, before a read that saw the old deadline returns.
  ///
  /// The entry was live the whole time.
  @Test(arguments: [StoreOperation.value, .values, .entries])
  func `an entry touched during a read is found`(_ operation: StoreOperation) async throws {
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

  /// Time passes while an update waits for its turn.
  ///
  /// Its body must see the entries that are live when it runs.
  @Test func `an update reads the clock when its body runs`() async throws {
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
    #expect(try await store.remainingTime(forKey: "k") == .after(.seconds(1)))
  }

  @Test func `set forward clock Expires entries earlier`() async throws {
    let bench = TestBench(.after(.seconds(100)))
    try await bench.store.setValue("a", forKey: "k")
    bench.clock.advance(by: .seconds(60))
    #expect(try await bench.store.remainingTime(forKey: "k") == .after(.seconds(40)))
    bench.clock.advance(by: .seconds(39))
    #expect(try await bench.store["k"] == "a")
    bench.clock.advance(by: .seconds(1))
    #expect(try await bench.store["k"] == nil)
  }

  @Test func `set back clock Expires entries later`() async throws {
    let bench = TestBench(.after(.seconds(100)))
    try await bench.store.apply([.set("kept", "a"), .set("purged", "a")])
    bench.clock.advance(by: .seconds(100))
    #expect(try await bench.store.count() == 0)
    try await bench.memory.removeValue(forKey: "purged")
    bench.clock.advance(by: .seconds(-60))
    // Entries that were not purged are live again until the clock catches up.
    #expect(try await bench.store["kept"] == "a")
    #expect(try await bench.store["purged"] == nil)
    #expect(try await bench.store.remainingTime(forKey: "kept") == .after(.seconds(60)))
    bench.clock.advance(by: .seconds(60))
    #expect(try await bench.store["kept"] == nil)
  }

  // MARK: Pages

  @Test func `a page is filled with live entries of one snapshot`() async throws {
    let bench = TestBench()
    let numbers = 0..<100
    try await bench.store.apply(ChangeBatch(numbers.map { .set(StoreKey(integer: $0), "\($0)") }))
    for number in numbers where number % 10 != 9 {
      try await bench.store.touch(StoreKey(integer: number), timeToLive: .after(.seconds(1)))
    }
    bench.clock.advance(by: .seconds(1))
    bench.watched.forgetCalls()
    let page = try await bench.store.entries(in: .all, limit: 3)
    #expect(page.map(\.value) == ["9", "19", "29"])
    // The page is read again from its start with twice the size each time, so that its result is a snapshot of one
    // call.
    #expect(bench.watched.calls == [3, 6, 12, 24, 48].map { .init(.entries, $0) })
    #expect(try await bench.store.keys(in: .all, limit: 3, order: .descending).map(\.integer) == [99, 89, 79])
    #expect(try await bench.store.entries(in: .all, limit: .max).count == 10)
    #expect(try await bench.store.entries(in: .all, limit: 0).isEmpty)
    var walked: [[String]] = []
    for try await page in bench.store.pages(size: 4) { walked.append(page.entries.map(\.value)) }
    #expect(walked == [["9", "19", "29", "39"], ["49", "59", "69", "79"], ["89", "99"]])
  }

  @Test func `a negative limit is refused by the operation that has it`() async throws {
    let bench = TestBench()
    let store = bench.store
    let entries = await expectStoreError(.invalidArgument) { try await store.entries(in: .all, limit: -1) }
    let keys = await expectStoreError(.invalidArgument) { try await store.keys(in: .all, limit: -1) }
    #expect(entries?.operation == .entries && keys?.operation == .keys)
    // The base is not asked.
    #expect(bench.watched.calls == [])
    #expect(store.information.entryLifetime == .untilDeadline)
  }

  @Test func `no limit is too large to be doubled`() async throws {
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

  // MARK: Properties and closing

  @Test func `it forwards properties and capabilities of its base`() async throws {
    let bench = TestBench()
    #expect(bench.store.information.name == "memory")
    #expect(bench.store.information.durability == .volatile)
    #expect(AnyDataStore(bench.store).maintenance == nil)
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

  @Test func `closing waits for a page that is read again`() async throws {
    let clock = ManualClock()
    let faulty = MemoryStore<Expiring<String>>().faulty()
    let store = faulty.expiring { clock.date }
    try await store.setValue("a", forKey: "a", timeToLive: .after(.seconds(1)))
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

  /// An outer decorator can find and call this capability.
  @Test func `expiring is a capability`() async throws {
    func halve(_ store: some ExpirableStore<String>, _ key: StoreKey) async throws {
      guard case .after(let duration) = try await store.remainingTime(forKey: key) else { return }
      try await store.touch(key, timeToLive: .after(duration / 2))
    }
    let bench = TestBench(.after(.seconds(8)))
    try await bench.store.setValue("a", forKey: "k")
    try await halve(bench.store, "k")
    #expect(try await bench.store.remainingTime(forKey: "k") == .after(.seconds(4)))
  }
}
