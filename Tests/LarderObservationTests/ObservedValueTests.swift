import Larder
import LarderTesting
import Observation
import TestSupport
import Testing

@testable import LarderObservation

/// The objects for user interfaces.
@MainActor @Suite(.timeLimit(.minutes(60))) struct ObservedValueTests {
  private let clock = ManualClock()
  private let base = MemoryStore<Int>().faulty()
  private let store: ObservingStore<FaultyStore<MemoryStore<Int>>>

  init() {
    store = base.observable()
  }

  /// Waits until a condition on observed properties is met.
  private func wait(until isMet: @escaping @MainActor () -> Bool) async {
    while !isMet() {
      await withCheckedContinuation { continuation in
        withObservationTracking {
          _ = isMet()
        } onChange: {
          continuation.resume()
        }
      }
    }
  }

  @Test func `a value is followed`() async throws {
    let observed = ObservedValue(store, forKey: "a")
    #expect(observed.value == nil && !observed.isLoaded)
    await wait { observed.isLoaded }
    #expect(observed.value == nil)
    for number in 1...3 {
      try await store.setValue(number, forKey: "a")
      await wait { observed.value == number }
    }
    try await store.removeAll()
    await wait { observed.value == nil }
    #expect(observed.isLoaded && observed.error == nil)
  }

  @Test func `a missing key has the default which is not written`() async throws {
    let observed = ObservedValue(store, forKey: "a", default: 7)
    #expect(observed.value == 7 && !observed.isLoaded)
    await wait { observed.isLoaded }
    #expect(try await store.value(forKey: "a") == nil)
    try await observed.update { $0 += 1 }
    await wait { observed.value == 8 }
    #expect(try await store.value(forKey: "a") == 8)
    try await observed.set(9)
    await wait { observed.value == 9 }
    try await store.removeValue(forKey: "a")
    await wait { observed.value == 7 }
  }

  @Test func `a state without a default is set and removed`() async throws {
    let observed = ObservedValue(store, forKey: "a")
    try await observed.set(1)
    await wait { observed.value == 1 }
    try await observed.set(nil)
    await wait { observed.value == nil }
    #expect(try await store.value(forKey: "a") == nil)
    base.schedule(.error(.ioFailed), on: .update)
    await expectStoreError(.ioFailed) { try await observed.set(2) }
  }

  @Test func `a released store is not written`() async throws {
    var store: ObservingStore<MemoryStore<Int>>? = MemoryStore<Int>().observable()
    let observed = ObservedValue(try #require(store), forKey: "a", default: 0)
    await wait { observed.isLoaded }
    weak let released = store
    store = nil
    while released != nil { await Task.yield() }
    await expectStoreError(.closed) { try await observed.set(1) }
  }

  @Test func `entries are followed`() async throws {
    let observed = ObservedEntries(store, in: .prefix("a"), limit: 2, order: .descending)
    await wait { observed.isLoaded }
    #expect(observed.entries == [])
    try await store.apply([.set("a1", 1), .set("a2", 2), .set("a3", 3), .set("b", 4)])
    await wait { observed.entries.map(\.key) == ["a3", "a2"] }
    try await store.removeValue(forKey: "a3")
    await wait { observed.entries.map(\.value) == [2, 1] }
  }

  @Test func `an error is shown and ends with the next success even if the value is the same`() async throws {
    try await store.setValue(1, forKey: "a")
    let observed = ObservedValue(store, forKey: "a", clock: clock)
    await wait { observed.value == 1 }
    base.schedule(.error(.ioFailed), on: .value)
    try await store.setValue(1, forKey: "a")
    await wait { observed.error != nil }
    #expect((observed.error as? StoreError)?.code == .ioFailed)
    #expect(observed.value == 1)
    try await clock.waitForSleepers(1)
    clock.advance(by: .seconds(1))
    await wait { observed.error == nil }
    #expect(observed.value == 1)
  }

  @Test func `neither keeps the other alive`() async throws {
    var store: ObservingStore<MemoryStore<Int>>? = MemoryStore<Int>().observable()
    var observed: ObservedValue<Int?>? = ObservedValue(try #require(store), forKey: "a")
    var entries: ObservedEntries<Int>? = ObservedEntries(try #require(store))
    await wait { [observed, entries] in observed?.isLoaded == true && entries?.isLoaded == true }
    weak let releasedValue = observed
    weak let releasedEntries = entries
    observed = nil
    entries = nil
    #expect(releasedValue == nil && releasedEntries == nil)
    let remaining = ObservedValue(try #require(store), forKey: "a")
    await wait { remaining.isLoaded }
    weak let released = store
    store = nil
    // A read that another task has begun may hold the store for a moment.
    while released != nil { await Task.yield() }
    #expect(remaining.value == nil)
  }
}
