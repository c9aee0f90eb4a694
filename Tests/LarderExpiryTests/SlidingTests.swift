import Foundation
import Larder
import LarderTesting
import Synchronization
import TestSupport
import Testing

@testable import LarderExpiry

@Suite(.timeLimit(.minutes(60))) struct SlidingTests {
  @Test func `reading an entry extends its deadline`() async throws {
    let bench = TestBench(.sliding(.seconds(10)))
    try await bench.store.setValue("a", forKey: "k")
    for _ in 0..<20 {
      bench.clock.advance(by: .seconds(9))
      #expect(try await bench.store["k"] == "a")
    }
    for _ in 0..<20 {
      bench.clock.advance(by: .seconds(9))
      #expect(try await bench.store.values(forKeys: ["k", "missing", "k"]) == ["a", nil, "a"])
    }
    bench.clock.advance(by: .seconds(10))
    #expect(try await bench.store["k"] == nil)
  }

  @Test func `a moved deadline is visible to the next read`() async throws {
    let bench = TestBench(.sliding(.seconds(10)))
    try await bench.store.setValue("a", forKey: "k")
    bench.clock.advance(by: .seconds(9))
    #expect(try await bench.store["k"] == "a")
    #expect(try await bench.store.remainingTime(forKey: "k") == .after(.seconds(10)))
    try await bench.store.synchronize()
    #expect(try bench.memory.value(forKey: "k")?.deadline?.date == bench.clock.date + 10)
    #expect(bench.store.statistics().pendingRenewalCount == 0)
    #expect(bench.store.statistics().writtenRenewalCount == 1)
    bench.clock.advance(by: .milliseconds(9999))
    #expect(try await bench.store.contains("k"))
    bench.clock.advance(by: .milliseconds(1))
    #expect(try await !bench.store.contains("k"))
  }

  @Test func `an update renews only what it assigns`() async throws {
    let bench = TestBench(.sliding(.seconds(10)))
    for key in ["read", "kept", "set"] { try await bench.store.setValue("a", forKey: StoreKey(key)) }
    bench.clock.advance(by: .seconds(5))
    try await bench.store.update(["read", "set"]) { slots in slots[1] = slots[0] }
    try await bench.store.update(deciding: ["kept"]) { slots in
      slots[0] = "b"
      return .discard(())
    }
    bench.clock.advance(by: .seconds(6))
    #expect(try await bench.store.values(forKeys: ["read", "kept", "set"]) == [nil, nil, "a"])
  }

  @Test func `a hot key costs at most ten writes in a window`() async throws {
    let bench = TestBench(.sliding(.seconds(10)))
    try await bench.store.setValue("a", forKey: "k")
    bench.watched.forgetCalls()
    for _ in 0..<5 {
      let before = bench.watched.count(of: .update)
      for _ in 0..<1000 {
        bench.clock.advance(by: .milliseconds(10))
        #expect(try await bench.store["k"] == "a")
      }
      try await bench.store.synchronize()
      #expect((1...10).contains(bench.watched.count(of: .update) - before))
    }
    #expect(bench.watched.count(of: .apply) == 0)
  }

  /// Many readers read while the renewal of the first read is written.
  ///
  /// None of them waits, and it is written once.
  @Test func `readers at the same time renew once and do not wait`() async throws {
    let clock = ManualClock()
    let faulty = MemoryStore<Expiring<String>>().faulty()
    let store = faulty.expiring(.sliding(.seconds(10))) { clock.date }
    try await store.setValue("a", forKey: "k")
    clock.advance(by: .seconds(5))
    faulty.schedule(.suspension(), on: .update, number: 1)
    #expect(try await store["k"] == "a")
    try await faulty.waitForSuspended(1, of: .update)
    for _ in 0..<20 { #expect(try await store["k"] == "a") }
    #expect(store.statistics().pendingRenewalCount == 1)
    faulty.resume()
    try await store.synchronize()
    #expect(store.statistics().writtenRenewalCount == 1)
    #expect(try await faulty.value(forKey: "k")?.deadline?.date == clock.date + 10)
  }

  @Test func `many keys share an update`() async throws {
    let bench = TestBench(.sliding(.seconds(10)))
    let keys = (0..<1000).map { StoreKey(integer: $0) }
    try await bench.store.apply(ChangeBatch(keys.map { .set($0, "a") }))
    bench.clock.advance(by: .seconds(5))
    bench.watched.forgetCalls()
    for key in keys { #expect(try await bench.store[key] == "a") }
    #expect(try await bench.store.values(forKeys: keys).count { $0 == "a" } == 1000)
    try await bench.store.synchronize()
    #expect(bench.watched.calls.filter { $0.operation == .update }.allSatisfy { $0.count <= 512 })
    #expect(bench.store.statistics().writtenRenewalCount == 1000)
    let deadlines = try bench.memory.values(forKeys: keys).map { $0?.deadline?.date }
    #expect(deadlines.allSatisfy { $0 == bench.clock.date + 10 })
  }

  @Test func `operations that read no value move no deadline`() async throws {
    let bench = TestBench(.sliding(.seconds(10)))
    try await bench.store.setValue("a", forKey: "k")
    bench.clock.advance(by: .seconds(5))
    bench.watched.forgetCalls()
    _ = try await bench.store.entries(in: .all, limit: 10)
    _ = try await bench.store.keys(in: .all, limit: 10)
    _ = try await bench.store.count()
    _ = try await bench.store.contains("k")
    #expect(try await bench.store.remainingTime(forKey: "k") == .after(.seconds(5)))
    #expect(bench.watched.count(of: .update) == 0)
  }

  @Test func `other deadlines are not moved`() async throws {
    let bench = TestBench(.sliding(.seconds(10)))
    try await bench.store.setValue("a", forKey: "after", timeToLive: .after(.seconds(10)))
    try await bench.store.setValue("a", forKey: "at", timeToLive: .until(bench.clock.date + 10))
    try await bench.store.setValue("a", forKey: "never", timeToLive: .never)
    bench.clock.advance(by: .seconds(9))
    bench.watched.forgetCalls()
    #expect(try await bench.store.values(forKeys: ["after", "at", "never"]) == ["a", "a", "a"])
    #expect(try await bench.store["after"] == "a")
    #expect(bench.watched.count(of: .update) == 0)
    bench.clock.advance(by: .seconds(1))
    #expect(try await bench.store.values(forKeys: ["after", "at", "never"]) == [nil, nil, "a"])
  }

  @Test func `a write between the read and the renewal stays`() async throws {
    let bench = TestBench(.sliding(.seconds(10)))
    let (store, memory, clock) = (bench.store, bench.memory, bench.clock)
    for newer in [Expiring("newer", deadline: ExpiryDeadline(clock.date + 100)), nil] {
      try await store.setValue("a", forKey: "k", timeToLive: .sliding(.seconds(10)))
      clock.advance(by: .seconds(5))
      bench.watched.intervene { operation in
        if operation == .update { try memory.apply([newer.map { .set("k", $0) } ?? .remove("k")]) }
      }
      #expect(try await store["k"] == "a")
      try await store.synchronize()
      bench.watched.intervene { _ in }
      #expect(try memory.value(forKey: "k") == newer)
      #expect(store.statistics().writtenRenewalCount == 0)
      #expect(store.statistics().failureCount == 0)
    }
  }

  /// The deadline in the base passes before the renewal is written.
  @Test func `an entry read in time stays live while its renewal is pending`() async throws {
    let clock = ManualClock()
    let faulty = MemoryStore<Expiring<String>>().faulty()
    let store = faulty.expiring(.sliding(.seconds(10)), purgesOnWrite: false) { clock.date }
    try await store.setValue("a", forKey: "k")
    clock.advance(by: .seconds(5))
    faulty.schedule(.suspension(), on: .update, number: 1)
    #expect(try await store["k"] == "a")
    try await faulty.waitForSuspended(1, of: .update)
    clock.advance(by: .seconds(6))
    #expect(try await store.remainingTime(forKey: "k") == .after(.seconds(4)))
    #expect(try await store.entries(in: .all, limit: 9).map(\.value) == ["a"])
    #expect(try await store.count() == 1)
    #expect(try await store.contains("k"))
    #expect(try await store.purgeExpired() == 0)
    // This read renews the deadline again, after the update in progress.
    #expect(try await store.values(forKeys: ["k", "k"]) == ["a", "a"])
    #expect(try await store.remainingTime(forKey: "k") == .after(.seconds(10)))
    clock.advance(by: .seconds(6))
    #expect(try await store["k"] == "a")
    faulty.resume()
    try await store.synchronize()
    #expect(try await faulty.value(forKey: "k")?.deadline?.date == clock.date + 10)
  }

  @Test func `an update sees entries with pending renewals`() async throws {
    let bench = TestBench(.sliding(.seconds(10)))
    bench.watched.intervene { operation in
      if operation == .update { throw StoreError(.full, during: .update, message: "full") }
    }
    try await bench.store.setValue("a", forKey: "k")
    bench.clock.advance(by: .seconds(5))
    #expect(try await bench.store["k"] == "a")
    while bench.store.statistics().failureCount == 0 { await Task.yield() }
    bench.watched.intervene { _ in }
    bench.clock.advance(by: .seconds(6))
    try await bench.store.updateKeepingDeadlines(["k"]) { slots in slots[0] = slots[0].map { $0 + "b" } }
    #expect(try bench.memory.value(forKey: "k")?.value == "ab")
    #expect(try await bench.store.touch("k", timeToLive: .sliding(.seconds(10))))
    bench.clock.advance(by: .seconds(10))
    // The pending renewals move neither of the two deadlines written since.
    try await bench.store.synchronize()
    #expect(try await bench.store["k"] == nil)
    #expect(bench.store.statistics().pendingRenewalCount == 0)
  }

  @Test func `an entry that Expires during a read is not revived`() async throws {
    let bench = TestBench(.sliding(.seconds(10)))
    let clock = bench.clock
    try await bench.store.setValue("a", forKey: "k")
    clock.advance(by: .seconds(5))
    bench.watched.intervene { operation in
      if operation == .value { clock.advance(by: .seconds(5)) }
    }
    // The entry was live when the read started.
    #expect(try await bench.store["k"] == "a")
    bench.watched.intervene { _ in }
    #expect(try await bench.store["k"] == nil)
    #expect(bench.store.statistics().pendingRenewalCount == 0)
  }

  @Test func `a read in a cancelled task moves no deadline`() async throws {
    let bench = TestBench(.sliding(.seconds(10)))
    let store = bench.store
    try await store.setValue("a", forKey: "k")
    bench.clock.advance(by: .seconds(5))
    let read = Task {
      withUnsafeCurrentTask { $0?.cancel() }
      return try await (store.value(forKey: "k"), store.values(forKeys: ["k"]))
    }
    let found = try await read.value
    #expect(found.0 == "a")
    #expect(found.1 == ["a"])
    #expect(try await store.remainingTime(forKey: "k") == .after(.seconds(5)))
  }

  @Test func `a failed renewal fails no read and is retried`() async throws {
    let bench = TestBench(.sliding(.seconds(10)))
    let store = bench.store
    try await store.setValue("a", forKey: "k")
    bench.watched.intervene { operation in
      if operation == .update { throw StoreError(.full, during: .update, store: "memory", message: "full") }
    }
    for _ in 0..<4 {
      bench.clock.advance(by: .seconds(5))
      #expect(try await store["k"] == "a")
      #expect(try await store.values(forKeys: ["k"]) == ["a"])
      try await store.synchronize()
    }
    let statistics = store.statistics()
    #expect(statistics.failureCount >= 4)
    #expect((statistics.lastError as? StoreError)?.code == .full)
    #expect(statistics.pendingRenewalCount == 1 && statistics.writtenRenewalCount == 0)
    bench.watched.intervene { _ in }
    bench.clock.advance(by: .seconds(5))
    #expect(try await store["k"] == "a")
    try await store.synchronize()
    #expect(store.statistics().pendingRenewalCount == 0)
    #expect(try bench.memory.value(forKey: "k")?.deadline?.date == bench.clock.date + 10)
  }

  /// The read's renewal is not due, because another read has just renewed the deadline, but its write failed.
  @Test(arguments: [true, false])
  func `a read retries a renewal a second after a failure`(readsSeveral: Bool) async throws {
    let bench = TestBench(.sliding(.seconds(3600)))
    let (store, watched) = (bench.store, bench.watched)
    func read() async throws {
      if readsSeveral {
        #expect(try await store.values(forKeys: ["k", "l"]) == ["a", nil])
      } else {
        #expect(try await store["k"] == "a")
      }
      _ = await store.renewing.withLock { $0 }?.value
    }
    try await store.setValue("a", forKey: "k")
    bench.clock.advance(by: .seconds(1800))
    watched.intervene { operation in
      if operation == .update { throw StoreError(.full, during: .update, store: "memory", message: "full") }
    }
    try await read()
    for failureCount in 1...3 {
      #expect(store.statistics().failureCount == failureCount)
      bench.clock.advance(by: .milliseconds(999))
      try await read()
      #expect(store.statistics().failureCount == failureCount)
      bench.clock.advance(by: .milliseconds(1))
      try await read()
    }
    watched.intervene { _ in }
    bench.clock.advance(by: .seconds(1))
    try await read()
    #expect(store.statistics().pendingRenewalCount == 0)
    #expect(try bench.memory.value(forKey: "k")?.deadline?.date == bench.clock.date + 3596)
  }

  /// Several entries are damaged while their renewals are pending.
  @Test func `damaged entries do not block other renewals`() async throws {
    let clock = ManualClock()
    let bytes = MemoryStore<[UInt8]>()
    let watched = WatchedStore(bytes.typed(Expiring<Int>.self, prefix: "s/", codec: .json(Int.self).expiring()))
    let store = watched.expiring(.sliding(.seconds(10)), purgesOnWrite: false) { clock.date }
    let keys = (0..<10).map { StoreKey(integer: $0) }
    try await store.apply(ChangeBatch(keys.enumerated().map { .set($1, $0) }))
    clock.advance(by: .seconds(5))
    watched.intervene { operation in
      if operation == .update { throw StoreError(.full, during: .update, message: "full") }
    }
    #expect(try await store.values(forKeys: keys) == Array(0..<10))
    _ = await store.renewing.withLock { $0 }?.value
    watched.intervene { _ in }
    for key in keys.prefix(4) { try bytes.apply([.set(StoreKey(bytes: Array("s/".utf8) + key.bytes), [0xFF])]) }
    try await store.synchronize()
    let statistics = store.statistics()
    #expect(statistics.writtenRenewalCount == 6)
    #expect(statistics.droppedRenewalCount == 4)
    #expect(statistics.failureCount == 5)
    #expect(statistics.pendingRenewalCount == 0)
    clock.advance(by: .seconds(9))
    #expect(try await watched.value(forKey: keys[9])?.deadline?.date == clock.date + 1)
  }

  @Test func `closing writes pending renewals`() async throws {
    let bench = TestBench(.sliding(.seconds(10)))
    let (memory, expected) = (bench.memory, bench.clock.date + 15)
    try await bench.store.setValue("a", forKey: "k")
    bench.clock.advance(by: .seconds(5))
    #expect(try await bench.store["k"] == "a")
    bench.watched.intervene { operation in
      guard operation == .close else { return }
      let written = try memory.value(forKey: "k")?.deadline?.date
      #expect(written == expected)
    }
    try await bench.store.close()
    #expect(bench.watched.count(of: .close) == 1)
    #expect(bench.watched.count(of: .update) == 1)
    bench.watched.intervene { _ in }
    try await bench.store.close()
  }

  @Test func `a flush writes pending renewals first`() async throws {
    let bench = TestBench(.sliding(.seconds(10)))
    try await bench.store.setValue("a", forKey: "k")
    bench.clock.advance(by: .seconds(5))
    // After a failure, no other call writes the renewal until a second has passed.
    bench.watched.intervene { operation in
      if operation == .update { throw StoreError(.full, during: .update, message: "full") }
    }
    #expect(try await bench.store["k"] == "a")
    _ = await bench.store.renewing.withLock { $0 }?.value
    bench.watched.intervene { _ in }
    bench.watched.forgetCalls()
    #expect(bench.store.statistics().pendingRenewalCount == 1)
    try await bench.store.flush()
    #expect(bench.watched.calls.map(\.operation.rawValue) == ["update", "flush"])
    #expect(try bench.memory.value(forKey: "k")?.deadline?.date == bench.clock.date + 10)
  }

  /// A read that finds the entry expired at the time of the renewal, or later, must see the flag.
  @Test func `a renewal sets the flag before it reads the clock`() async throws {
    let clock = ManualClock()
    let flag = Locked<(@Sendable () -> Bool)?>(nil)
    let flags = Locked<[Bool]>([])
    let store = MemoryStore<Expiring<String>>().expiring(.sliding(.seconds(10)), purgesOnWrite: false) {
      if let flag = flag.withLock({ $0 }) { flags.withLock { $0.append(flag()) } }
      return clock.date
    }
    try await store.setValue("a", forKey: "k")
    clock.advance(by: .seconds(5))
    flag.withLock { $0 = { [weak store] in store?.hasRenewals.load(ordering: .acquiring) == true } }
    #expect(try await store["k"] == "a")
    // The clock is read by the read itself, by its renewal, and then by the task that writes the renewal.
    #expect(flags.withLock { $0.prefix(2) } == [false, true])
  }

  @Test func `nothing is renewed in a read only store`() async throws {
    struct ReadOnly: PassingStore {
      typealias Value = Expiring<String>
      let base: WatchedStore<MemoryStore<Expiring<String>>>
      var information: StoreInformation {
        var information = base.information
        information.access = .readOnly
        return information
      }
    }
    let bench = TestBench(.sliding(.seconds(10)))
    let clock = bench.clock
    try await bench.store.setValue("a", forKey: "k")
    clock.advance(by: .seconds(5))
    let readOnly = ReadOnly(base: bench.watched).expiring { clock.date }
    #expect(try await readOnly["k"] == "a")
    try await readOnly.synchronize()
    #expect(bench.watched.count(of: .update) == 0)
    clock.advance(by: .seconds(5))
    #expect(try await readOnly["k"] == nil)
  }

  @Test func `renewals keep no store alive`() async throws {
    let clock = ManualClock()
    var store: ExpiringStore? = MemoryStore<Expiring<String>>().expiring(.sliding(.seconds(10))) { clock.date }
    weak let weakStore = store
    try await store?.setValue("a", forKey: "k")
    clock.advance(by: .seconds(5))
    #expect(try await store?["k"] == "a")
    try await store?.synchronize()
    store = nil
    await yieldUntil { weakStore == nil }
  }

  @Test func `keeping the deadline renews it as a read does`() async throws {
    let bench = TestBench(.after(.seconds(100)))
    try await bench.store.setValue("a", forKey: "k", timeToLive: .sliding(.seconds(10)))
    bench.clock.advance(by: .milliseconds(500))
    try await bench.store.setValueKeepingDeadline("b", forKey: "k")
    #expect(try await bench.store.remainingTime(forKey: "k") == .after(.milliseconds(9500)))
    bench.clock.advance(by: .seconds(5))
    try await bench.store.updateKeepingDeadlines(["k"]) { slots in slots[0] = slots[0] }
    #expect(try await bench.store.remainingTime(forKey: "k") == .after(.seconds(10)))
    #expect(try await bench.store["k"] == "b")
  }

  @Test func `setting the clock back keeps a sliding entry no longer than its window`() async throws {
    let bench = TestBench(.sliding(.seconds(10)))
    try await bench.store.setValue("a", forKey: "k")
    bench.clock.advance(by: .seconds(-1_000_000))
    #expect(try await bench.store["k"] == "a")
    #expect(try await bench.store.remainingTime(forKey: "k") == .after(.seconds(10)))
    bench.clock.advance(by: .seconds(10))
    #expect(try await bench.store["k"] == nil)
  }
}
