import Larder
import LarderBatching
import LarderExpiry
import LarderTesting
import TestSupport
import Testing

@testable import LarderObservation

/// The reports of an observing store and of its decorators.
@Suite(.timeLimit(.minutes(60))) struct ReportTests {
  private let base = MemoryStore<Int>().faulty()
  private let store: ObservingStore<FaultyStore<MemoryStore<Int>>>
  private let events = StoreEvents()

  init() {
    store = base.observable()
  }

  @Test func `a write that changed nothing is not reported`() async throws {
    let observation = events.observe(store)
    base.schedule(.error(.full), on: .apply)
    await expectStoreError(.full) { try await store.setValue(1, forKey: "a") }
    await #expect(throws: Refusal.self) { try await store.update("a") { _ in throw Refusal() } }
    await expectStoreError(.invalidKey) { try await store.setValue(1, forKey: "") }
    let cancelled = Task {
      withUnsafeCurrentTask { $0?.cancel() }
      try await store.setValue(1, forKey: "a")
    }
    await #expect(throws: CancellationError.self) { try await cancelled.value }
    #expect(events.take() == [])
    withExtendedLifetime(observation) {}
  }

  @Test func `a write with an unknown outcome is reported`() async throws {
    let observation = events.observe(store)
    base.schedule(.error(.ioFailed, .after), on: .apply)
    await expectStoreError(.ioFailed) { try await store.apply([.set("a", 1), .removeAll("b"..<"c")]) }
    #expect(events.take() == [.changed([.key("a"), .range("b"..<"c")])])
    base.schedule(.error(.ioFailed, outcome: .unknown), on: .update)
    await expectStoreError(.ioFailed) { try await store.update(["a", "b"]) { _ in } }
    #expect(events.take() == [.changed([.key("a"), .key("b")])])
    withExtendedLifetime(observation) {}
  }

  @Test func `an observer gets the part of a change in its range`() async throws {
    let observation = events.observe(store, "b"..<"d")
    try await store.apply([.set("a", 1), .set("c", 1), .removeAll("a"..<"c"), .removeAll("d"..<"e"), .removeAll(.all)])
    #expect(events.take() == [.changed([.key("c"), .range("b"..<"c"), .range("b"..<"d")])])
    try await store.setValue(1, forKey: "d")
    #expect(events.take() == [])
    observation.cancel()
    try await store.setValue(1, forKey: "c")
    #expect(events.take() == [])
  }

  /// The observer that closes the list stands for another thread that closes the store during a report.
  @Test func `no change follows the end`() {
    let list = StoreObservers()
    let closing = list.add(.all) { event in if case .changed = event { list.close() } }
    let observation = list.add(.all) { events.add($0) }
    list.report([.key("a")])
    list.report([.key("b")])
    #expect(events.take() == [.changed([.key("a")]), .closed])
    let late = list.add(.all) { events.add($0) }
    #expect(events.take() == [.closed])
    withExtendedLifetime((closing, observation, late)) {}
  }

  @Test func `purges and touches are reported on either side of the expiry`() async throws {
    let clock = ManualClock()
    let below = MemoryStore<Expiring<Int>>().observable().expiring(.after(.seconds(10))) { clock.date }
    let above = MemoryStore<Expiring<Int>>().expiring(.after(.seconds(10))) { clock.date }.observable()
    func expectReports(_ store: some ObservableStore<Int> & ExpirableStore) async throws {
      let observation = events.observe(store)
      try await store.setValue(1, forKey: "a", timeToLive: .after(.seconds(5)))
      #expect(events.take() == [.changed([.key("a")])])
      try await store.touch("a", timeToLive: .after(.seconds(1)))
      #expect(events.take() == [.changed([.key("a")])])
      clock.advance(by: .seconds(1))
      #expect(events.take() == [])
      #expect(try await store.purgeExpired() == 1)
      #expect(events.take().contains { if case .changed = $0 { true } else { false } })
      withExtendedLifetime(observation) {}
    }
    try await expectReports(below)
    try await expectReports(above)
  }

  @Test func `a write behind store reports accepted writes commits and discards`() async throws {
    let clock = ManualClock()
    let later = store.writeBehind(maximumAge: .seconds(10), clock: clock)
    try await later.setValue(1, forKey: "a")
    let observation = events.observe(later)
    #expect(try await later.value(forKey: "a") == 1)
    #expect(events.take() == [])
    try await later.flush()
    #expect(events.take() == [.changed([.key("a")])])
    try await later.setValue(2, forKey: "a")
    #expect(events.take() == [.changed([.key("a")])])
    base.schedule(.error(.encodingFailed), on: .apply)
    await expectStoreError(.encodingFailed) { try await later.flush() }
    #expect(events.take() == [.changed([.key("a")])])
    #expect(try await later.value(forKey: "a") == 1)
    _ = later.takeFailures()
    try await later.close()
    #expect(events.take() == [.closed])
    withExtendedLifetime(observation) {}
  }

  @Test func `an observed base reports for a decorator above it`() async throws {
    let outer = AnyDataStore(store).observable()
    let observation = events.observe(outer)
    try await store.setValue(1, forKey: "a")
    try await outer.setValue(2, forKey: "b")
    #expect(events.take() == [.changed([.key("a")]), .changed([.key("b")])])
    try await outer.close()
    #expect(events.take() == [.closed])
    withExtendedLifetime(observation) {}
  }

  @Test(arguments: ["m/", "", StoreKey(bytes: [0xFF, 0xFF])])
  func `a view reports its own keys`(_ prefix: StoreKey) async throws {
    let bytes = MemoryStore<[UInt8]>().observable()
    let view = bytes.typed(Int.self, prefix: prefix, codec: .json())
    let observation = events.observe(view)
    try await view.apply([.set("a", 1), .remove("b"), .removeAll("c"..<"d")])
    #expect(events.take() == [.changed([.key("a"), .key("b"), .range("c"..<"d")])])
    try await bytes.removeAll()
    #expect(events.take() == [.changed([.range(.all)])])
    if !prefix.isEmpty {
      try await bytes.apply([.set("a", []), .set(prefix, []), .removeAll("a"..<"b")])
      #expect(events.take() == [])
    }
    withExtendedLifetime(observation) {}
  }

  @Test func `an erased store keeps its observation`() async throws {
    #expect(AnyDataStore(MemoryStore<Int>()).observation == nil)
    let erased = AnyDataStore(AnyDataStore(store.batched()))
    let observed = try #require(erased.observation)
    var changes = observed.changes(in: .prefix("a")).makeAsyncIterator()
    var values = observed.updates(forKey: "a").makeAsyncIterator()
    #expect(try await values.next() == .some(nil))
    try await erased.setValue(1, forKey: "a")
    #expect(await changes.next() == .key("a"))
    #expect(try await values.next() == .some(1))
    // Equal states are not repeated, also if the type is known only at run time.
    try await erased.setValue(1, forKey: "a")
    try await erased.close()
    #expect(try await values.next() == nil)
    #expect(await changes.next() == .key("a"))
    #expect(await changes.next() == nil)
  }
}

/// The error of a body.
private struct Refusal: Error {}
