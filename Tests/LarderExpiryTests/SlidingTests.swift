import Foundation
import Larder
import LarderExpiry
import LarderTesting
import TestSupport
import Testing

@Suite struct SlidingTests {
  @Test func anEntryThatIsReadLivesOn() async throws {
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

  @Test func aPutOffDeadlineIsSeenByTheNextReadAtOnce() async throws {
    let bench = TestBench(.sliding(.seconds(10)))
    try await bench.store.setValue("a", forKey: "k")
    bench.clock.advance(by: .seconds(9))
    #expect(try await bench.store["k"] == "a")
    #expect(try await bench.store.remainingTime(forKey: "k") == .limited(.seconds(10)))
    #expect(try bench.memory.value(forKey: "k")?.deadline?.date == bench.clock.date + 10)
    bench.clock.advance(by: .milliseconds(9999))
    #expect(try await bench.store.contains("k"))
    bench.clock.advance(by: .milliseconds(1))
    #expect(try await !bench.store.contains("k"))
  }

  @Test func aHotKeyCostsAtMostTenWritesInAWindow() async throws {
    let bench = TestBench(.sliding(.seconds(10)))
    try await bench.store.setValue("a", forKey: "k")
    bench.watched.forgetCalls()
    for _ in 0..<5 {
      let before = bench.watched.count(of: .update)
      for _ in 0..<1000 {
        bench.clock.advance(by: .milliseconds(10))
        #expect(try await bench.store["k"] == "a")
      }
      #expect(bench.watched.count(of: .update) - before == 10)
    }
    #expect(bench.watched.count(of: .apply) == 0)
  }

  /// Many read in the same moment and all find that the deadline must be put off: one of them writes.
  @Test func readersAtTheSameTimeWriteOnce() async throws {
    let clock = ManualClock()
    let memory = MemoryStore<Expiring<String>>()
    let counting = CommitCounter(memory)
    let faulty = counting.faulty()
    let store = faulty.expiring(.sliding(.seconds(10))) { clock.date }
    try await store.setValue("a", forKey: "k")
    clock.advance(by: .seconds(5))
    faulty.schedule(.suspension(), on: .update, probability: 1)
    let readers = (0..<20).map { _ in Task { try await store.value(forKey: "k") } }
    try await faulty.waitForSuspended(20, of: .update)
    faulty.clearFaults()
    faulty.resume()
    for reader in readers { #expect(try await reader.value == "a") }
    #expect(counting.updateCount == 1)
    #expect(try await store.remainingTime(forKey: "k") == .limited(.seconds(10)))
  }

  @Test func whatDoesNotReadTheValueOfAKeyPutsNothingOff() async throws {
    let bench = TestBench(.sliding(.seconds(10)))
    try await bench.store.setValue("a", forKey: "k")
    bench.clock.advance(by: .seconds(5))
    bench.watched.forgetCalls()
    _ = try await bench.store.entries(in: .all, limit: 10)
    _ = try await bench.store.keys(in: .all, limit: 10)
    _ = try await bench.store.count()
    _ = try await bench.store.contains("k")
    #expect(try await bench.store.remainingTime(forKey: "k") == .limited(.seconds(5)))
    #expect(bench.watched.count(of: .update) == 0)
  }

  @Test func otherDeadlinesAreNotPutOff() async throws {
    let bench = TestBench(.sliding(.seconds(10)))
    try await bench.store.setValue("a", forKey: "after", expires: .after(.seconds(10)))
    try await bench.store.setValue("a", forKey: "at", expires: .at(bench.clock.date + 10))
    try await bench.store.setValue("a", forKey: "never", expires: .never)
    bench.clock.advance(by: .seconds(9))
    bench.watched.forgetCalls()
    #expect(try await bench.store.values(forKeys: ["after", "at", "never"]) == ["a", "a", "a"])
    #expect(try await bench.store["after"] == "a")
    #expect(bench.watched.count(of: .update) == 0)
    bench.clock.advance(by: .seconds(1))
    #expect(try await bench.store.values(forKeys: ["after", "at", "never"]) == [nil, nil, "a"])
  }

  @Test func aWriteBetweenTheReadAndThePuttingOffStays() async throws {
    let bench = TestBench(.sliding(.seconds(10)))
    let (store, memory, clock) = (bench.store, bench.memory, bench.clock)
    for newer in [Expiring("newer", deadline: Deadline(clock.date + 100)), nil] {
      try await store.setValue("a", forKey: "k", expires: .sliding(.seconds(10)))
      clock.advance(by: .seconds(5))
      bench.watched.intervene { operation in
        if operation == .update { try memory.apply([newer.map { .set("k", $0) } ?? .remove("k")]) }
      }
      #expect(try await store["k"] == "a")
      bench.watched.intervene { _ in }
      #expect(try memory.value(forKey: "k") == newer)
    }
  }

  @Test func whatExpiresBeforeItsDeadlineIsPutOffStaysExpired() async throws {
    let bench = TestBench(.sliding(.seconds(10)))
    let clock = bench.clock
    try await bench.store.setValue("a", forKey: "k")
    clock.advance(by: .seconds(5))
    bench.watched.intervene { operation in
      if operation == .update { clock.advance(by: .seconds(5)) }
    }
    // It was live when the read began.
    #expect(try await bench.store["k"] == "a")
    bench.watched.intervene { _ in }
    #expect(try await bench.store["k"] == nil)
  }

  @Test func aReadInACancelledTaskReadsAndPutsNothingOff() async throws {
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
    #expect(try await store.remainingTime(forKey: "k") == .limited(.seconds(5)))
  }

  @Test func whereTheDeadlineCannotBePutOffTheReadSaysSo() async throws {
    let bench = TestBench(.sliding(.seconds(10)))
    try await bench.store.setValue("a", forKey: "k")
    bench.clock.advance(by: .seconds(5))
    bench.watched.intervene { operation in
      if operation == .update { throw StoreError(.full, during: .update, store: "memory", message: "full") }
    }
    #expect(await expectStoreError(.full) { try await bench.store["k"] }?.operation == .value)
    let error = await expectStoreError(.full) { try await bench.store.values(forKeys: ["k"]) }
    #expect(error?.operation == .values)
    // What needs no write still reads.
    #expect(try await bench.store.entries(in: .all, limit: 1).count == 1)
    bench.watched.intervene { _ in }
    #expect(try await bench.store["k"] == "a")
  }

  @Test func keepingTheDeadlinePutsItOffAsAReadDoes() async throws {
    let bench = TestBench(.after(.seconds(100)))
    try await bench.store.setValue("a", forKey: "k", expires: .sliding(.seconds(10)))
    bench.clock.advance(by: .milliseconds(500))
    try await bench.store.setValueKeepingDeadline("b", forKey: "k")
    #expect(try await bench.store.remainingTime(forKey: "k") == .limited(.milliseconds(9500)))
    bench.clock.advance(by: .seconds(5))
    try await bench.store.updateKeepingDeadlines(["k"]) { _ in }
    #expect(try await bench.store.remainingTime(forKey: "k") == .limited(.seconds(10)))
    #expect(try await bench.store["k"] == "b")
  }

  @Test func aClockPutBackLetsAnEntryThatSlidesLiveNoLongerThanItsWindow() async throws {
    let bench = TestBench(.sliding(.seconds(10)))
    try await bench.store.setValue("a", forKey: "k")
    bench.clock.advance(by: .seconds(-1_000_000))
    #expect(try await bench.store["k"] == "a")
    #expect(try await bench.store.remainingTime(forKey: "k") == .limited(.seconds(10)))
    bench.clock.advance(by: .seconds(10))
    #expect(try await bench.store["k"] == nil)
  }
}
