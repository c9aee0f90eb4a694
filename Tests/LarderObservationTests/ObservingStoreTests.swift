import Larder
import LarderExpiry
import LarderTesting
import Testing

@testable import LarderObservation

@Suite(.timeLimit(.minutes(60))) struct ObservingStoreTests {
  private let store = MemoryStore<Int>().observable()

  @Test func `changes are reported in order after the commit`() async throws {
    var changes = store.changes().makeAsyncIterator()
    try await store.setValue(1, forKey: "a")
    try await store.apply([.set("b", 2), .remove("c"), .removeAll("d"..<"e")])
    // The key that is not assigned is not reported.
    try await store.update(["a", "x"]) { $0[0] = 2 }
    try await store.removeValue(forKey: "z")
    let expected: [StoreChange] = [
      .key("a"), .key("b"), .key("c"), .range("d"..<"e"), .key("a"), .key("z"),
    ]
    for change in expected { #expect(await changes.next() == change) }
  }

  @Test func `a slow reader gets one change of the range`() async throws {
    var changes = store.changes(in: .prefix("k")).makeAsyncIterator()
    for number in 0..<10_000 { try await store.setValue(number, forKey: StoreKey("k\(number)")) }
    #expect(await changes.next() == .range(.prefix("k")))
    try await store.setValue(0, forKey: "k0")
    #expect(await changes.next() == .key("k0"))
  }

  @Test func `states begin with the current one and end with the last`() async throws {
    try await store.setValue(1, forKey: "a")
    var values = store.updates(forKey: "a").makeAsyncIterator()
    #expect(try await values.next() == .some(1))
    for number in 2...100 { try await store.setValue(number, forKey: "a") }
    #expect(try await values.next() == .some(100))
    try await store.removeValue(forKey: "a")
    #expect(try await values.next() == .some(nil))
    try await store.close()
    #expect(try await values.next() == nil)
  }

  @Test func `every write that returns is reported before the end`() async throws {
    for _ in 0..<100 {
      let store = MemoryStore<Int>().observable()
      let reportCount = Locked(0)
      let observation = store.observe(.all) { event in
        if case .changed = event { reportCount.withLock { $0 += 1 } }
      }
      let writer = Task.detached {
        for number in 0... {
          do {
            try await store.setValue(number, forKey: "k")
            // A store in memory never suspends, and this loop must not keep a thread from other tests.
            await Task.yield()
          } catch {
            return number
          }
        }
        return 0
      }
      for _ in 0..<Int.random(in: 0..<20) { await Task.yield() }
      try await store.close()
      #expect(await writer.value == reportCount.withLock { $0 })
      withExtendedLifetime(observation) {}
    }
  }

  @Test func `an observer does not keep the store open`() async throws {
    var store: ObservingStore<MemoryStore<Int>>? = MemoryStore<Int>().observable()
    weak let released = store
    var values = try #require(store).updates(forKey: "a").makeAsyncIterator()
    var changes = try #require(store).changes().makeAsyncIterator()
    #expect(try await values.next() == .some(nil))
    store = nil
    #expect(released == nil)
    #expect(try await values.next() == nil)
    #expect(await changes.next() == nil)
  }
}
