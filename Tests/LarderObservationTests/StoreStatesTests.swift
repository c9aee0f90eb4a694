import Larder
import LarderBatching
import LarderCache
import LarderExpiry
import LarderTesting
import Synchronization
import TestSupport
import Testing

@testable import LarderObservation

/// The states of observed values and entries: errors, expiry, and the lives of observers.
@Suite(.timeLimit(.minutes(60))) struct StoreStatesTests {
  private let clock = ManualClock()
  private let base = MemoryStore<Int>().faulty()
  private let store: ObservingStore<FaultyStore<MemoryStore<Int>>>

  init() {
    store = base.observable()
  }

  // MARK: Errors

  @Test func `a read error is thrown once and survived`() async throws {
    try await store.setValue(1, forKey: "a")
    let reader = Reader(store.updates(forKey: "a", clock: clock))
    #expect(try await reader.next() == .some(1))
    base.schedule(.error(.ioFailed), on: .value, probability: 1)
    try await store.setValue(2, forKey: "a")
    await expectStoreError(.ioFailed) { try await reader.next() }
    let isRecovered = Atomic(false)
    let recovered = Task {
      defer { isRecovered.store(true, ordering: .releasing) }
      return try await reader.next()
    }
    // The read fails again at each try.
    for _ in 0..<3 {
      let count = base.operationCount
      while base.operationCount == count {
        clock.advance(by: .seconds(1))
        await Task.yield()
      }
    }
    base.clearFaults()
    while !isRecovered.load(ordering: .acquiring) {
      clock.advance(by: .seconds(1))
      await Task.yield()
    }
    #expect(try await recovered.value == .some(2))
  }

  @Test func `a read that keeps failing is repeated less and less often`() async throws {
    let reader = Reader(store.updates(forKey: "a", clock: clock))
    #expect(try await reader.next() == .some(nil))
    base.schedule(.error(.ioFailed), on: .value, probability: 1)
    try await store.setValue(1, forKey: "a")
    await expectStoreError(.ioFailed) { try await reader.next() }
    async let next = reader.next()
    try await clock.waitForSleepers(1)
    let count = base.operationCount
    for _ in 0..<120 {
      clock.advance(by: .seconds(1))
      try await clock.waitForSleepers(1)
    }
    // After 1, 2, 4, 8, 16 and 32 seconds; the next one comes after 60.
    #expect(base.operationCount - count == 6)
    base.clearFaults()
    clock.advance(by: .seconds(60))
    #expect(try await next == .some(1))
  }

  @Test func `every kind of error is thrown and the state afterwards is returned even if equal`() async throws {
    try await store.setValue(1, forKey: "a")
    let reader = Reader(store.entries(observing: .all, clock: clock))
    let entries = [StoreEntry(key: "a", value: 1)]
    #expect(try await reader.next() == entries)
    base.schedule(.error(.ioFailed), on: .entries)
    base.schedule(.error(.corrupted), on: .entries, number: 2)
    try await store.setValue(1, forKey: "a")
    await expectStoreError(.ioFailed) { try await reader.next() }
    let second = Task { try await reader.next() }
    try await clock.waitForSleepers(1)
    clock.advance(by: .seconds(1))
    await expectStoreError(.corrupted) { try await second.value }
    async let third = reader.next()
    try await clock.waitForSleepers(1)
    clock.advance(by: .seconds(1))
    #expect(try await third == entries)
  }

  @Test func `random histories with faults end in the state of the store`() async throws {
    let base = MemoryStore<SampleValue?>().faulty()
    let trial = ObservationTrial(
      "faults", base.observable(), clock: ImmediateClock(), mayFail: true, settle: { base.clearFaults() })
    let seed = SeededGenerator.seedOfProcess
    print("\(SeededGenerator.seedVariable)=\(seed) (observation with faults)")
    try await trial.run(rounds: 10 * ConformanceSuite.roundsOfProcess, seed: seed) {
      base.schedule(.yields(upTo: 3), probability: 1)
      for operation in [.apply, .update, .value, .entries] as [StoreOperation] {
        base.schedule(.error(.ioFailed, .after), on: operation, probability: 0.15)
        base.schedule(.error(.full), on: operation, probability: 0.1)
      }
    }
  }

  // MARK: Expiry

  /// Stores whose entries expire after ten seconds, with layers above, below and on both sides of the observation.
  private func expiringStores() -> [any ObservableStore<Int>] {
    let clock = clock
    let now = { @Sendable in clock.date }
    let ten = TimeToLive.after(.seconds(10))
    let memory = { MemoryStore<Expiring<Int>>() }
    return [
      memory().expiring(ten, now: now).observable(),
      memory().observable().expiring(ten, now: now),
      memory().batched().cached().expiring(ten, now: now).observable(),
      memory().observable().batched().expiring(ten, now: now).observable().batched(),
      MemoryStore<[UInt8]>().observable()
        .typed(Expiring<Int>.self, prefix: "m/", codec: .json(Int.self).expiring()).expiring(ten, now: now),
    ]
  }

  @Test(arguments: 0..<5) func `expiry is followed`(_ index: Int) async throws {
    let store = expiringStores()[index]
    try await store.setValue(1, forKey: "a")
    clock.advance(by: .seconds(5))
    try await store.setValue(2, forKey: "b")
    let value = Reader(store.updates(forKey: "a", clock: clock))
    let entries = Reader(store.entries(observing: .all, clock: clock))
    #expect(try await value.next() == .some(1))
    #expect(try await entries.next()?.map(\.key) == ["a", "b"])
    // A slow reader: the deadline does not move because it comes late.
    clock.advance(by: .seconds(4))
    async let nextValue = value.next()
    async let nextEntries = entries.next()
    try await clock.waitForSleepers(2)
    clock.advance(by: .seconds(1))
    #expect(try await nextValue == .some(nil))
    #expect(try await nextEntries?.map(\.key) == ["b"])
    async let noEntries = entries.next()
    try await clock.waitForSleepers(1)
    clock.advance(by: .seconds(5))
    #expect(try await noEntries == [])
  }

  @Test func `a sliding deadline is not moved by observers`() async throws {
    let clock = clock
    let store = MemoryStore<Expiring<Int>>().observable().expiring(.sliding(.seconds(100))) { clock.date }
    try await store.setValue(1, forKey: "a")
    let value = Reader(store.updates(forKey: "a", clock: clock))
    let entries = Reader(store.entries(observing: .all, clock: clock))
    #expect(try await value.next() == .some(1))
    #expect(try await entries.next()?.count == 1)
    async let nextValue = value.next()
    async let nextEntries = entries.next()
    // They look again after a minute, in case the clock of the deadline was set forward.
    try await clock.waitForSleepers(2)
    clock.advance(by: .seconds(60))
    try await clock.waitForSleepers(2)
    clock.advance(by: .seconds(40))
    #expect(try await nextValue == .some(nil))
    #expect(try await nextEntries == [])
  }

  @Test func `a read moves the deadline that an observer follows`() async throws {
    let clock = clock
    let store = MemoryStore<Expiring<Int>>().expiring(.sliding(.seconds(50))) { clock.date }.observable()
    try await store.setValue(1, forKey: "a")
    let value = Reader(store.updates(forKey: "a", clock: clock))
    #expect(try await value.next() == .some(1))
    async let next = value.next()
    try await clock.waitForSleepers(1)
    clock.advance(by: .seconds(30))
    #expect(try await store.value(forKey: "a") == 1)
    clock.advance(by: .seconds(20))
    // It looks again at the deadline that it knows, and finds the later one.
    try await clock.waitForSleepers(1)
    clock.advance(by: .seconds(50))
    #expect(try await next == .some(nil))
  }

  /// The base does not know an entry whose insertion is pending, so it seems to have expired.
  @Test func `a pending insertion is not taken for an expired entry`() async throws {
    let clock = clock
    let base = MemoryStore<Expiring<Int>>().observable().expiring(.after(.seconds(10))) { clock.date }
    let store = base.writeBehind(maximumAge: .seconds(3600), clock: ManualClock())
    try await store.setValue(1, forKey: "a")
    let entries = Reader(store.entries(observing: .all, clock: clock))
    #expect(try await entries.next()?.map(\.value) == [1])
    async let next = entries.next()
    try await clock.waitForSleepers(1)
    clock.advance(by: .seconds(10))
    #expect(try await next == [])
  }

  // MARK: Lives

  @Test func `no decorator is kept alive by its observers`() async throws {
    try await expectReleased { MemoryStore<Int>().observable() }
    try await expectReleased { MemoryStore<Int>().observable().batched() }
    try await expectReleased { MemoryStore<Int>().observable().cached() }
    try await expectReleased { MemoryStore<Int>().observable().writeBehind() }
    try await expectReleased { MemoryStore<Int>().observable().faulty() }
    try await expectReleased { MemoryStore<Int>().observable().observable() }
    try await expectReleased { MemoryStore<Expiring<Int>>().observable().expiring() }
    try await expectReleased { MemoryStore<Expiring<Int>>().expiring().observable() }
    try await expectReleased { MemoryStore<[UInt8]>().observable().typed(Int.self, prefix: "m/", codec: .json()) }
    try await expectReleased { MemoryStore<[UInt8]>().observable().cached().typed(Int.self, codec: .json()).batched() }
  }

  private func expectReleased(
    sourceLocation: SourceLocation = #_sourceLocation, _ open: () -> some ObservableStore<Int>
  ) async throws {
    func observers() async throws -> (
      Reader<Int?>, Reader<[StoreEntry<Int>]>, StoreChanges, () -> (any DataStore<Int>)?
    ) {
      let store = open()
      let (value, entries) = (Reader(store.updates(forKey: "a")), Reader(store.entries(observing: .all)))
      #expect(try await value.next() == .some(nil))
      try await store.setValue(1, forKey: "a")
      try await AnyDataStore(store).flushing?.flush()
      #expect(try await entries.next()?.count == 1)
      let reference = store.weakReference()
      #expect(reference() != nil, sourceLocation: sourceLocation)
      return (value, entries, store.changes(), { reference() })
    }
    let (value, entries, changes, reference) = try await observers()
    // A load or a flush that has answered may have the store until it ends.
    await yieldUntil { reference() == nil }
    // The change of the value may still be pending, but the store can no longer be read.
    #expect(try await value.next() == nil, sourceLocation: sourceLocation)
    #expect(try await entries.next() == nil, sourceLocation: sourceLocation)
    var iterator = changes.makeAsyncIterator()
    #expect(await iterator.next() == nil, sourceLocation: sourceLocation)
  }

  @Test func `an iterator stays at its end`() async throws {
    var values = store.updates(forKey: "a").makeAsyncIterator()
    #expect(try await values.next() == .some(nil))
    try await store.setValue(1, forKey: "a")
    try await store.close()
    for _ in 0..<3 { #expect(try await values.next() == nil) }
    var late = store.updates(forKey: "a").makeAsyncIterator()
    for _ in 0..<2 { #expect(try await late.next() == nil) }
  }

  @Test func `a cancelled reader ends without an error`() async throws {
    // While it waits for a change, and while it reads.
    for isReading in [false, true] {
      let (store, base) = (store, base)
      let reader = Reader(store.updates(forKey: "a"))
      #expect(try await reader.next() == .some(nil))
      if isReading { base.schedule(.suspension(), on: .value) }
      let next = Task { try await reader.next() }
      if isReading {
        try await store.setValue(1, forKey: "b")
        try await store.setValue(1, forKey: "a")
        try await base.waitForSuspended()
      }
      next.cancel()
      #expect(try await next.value == nil)
      #expect(try await reader.next() == nil)
      try await store.removeValue(forKey: "a")
    }
  }
}

/// An iterator that tasks use one after another.
private actor Reader<State: Sendable> {
  private var iterator: StoreStates<State>.Iterator?

  init(_ states: StoreStates<State>) {
    iterator = states.makeAsyncIterator()
  }

  func next() async throws -> State? {
    guard var iterator = iterator.take() else { return nil }
    defer { self.iterator = iterator }
    return try await iterator.next()
  }
}

/// A clock on which every wait ends after a few other tasks have run.
private struct ImmediateClock: Clock {
  typealias Instant = ContinuousClock.Instant

  var now: Instant { ContinuousClock.now }
  var minimumResolution: Duration { .zero }

  func sleep(until deadline: Instant, tolerance: Duration?) async throws {
    for _ in 0..<5 { await Task.yield() }
    try Task.checkCancellation()
  }
}
