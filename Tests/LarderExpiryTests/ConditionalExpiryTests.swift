import Larder
import LarderExpiry
import LarderTesting
import Testing

/// Writes that depend on the value of their key, for which what has expired is absent.
@Suite struct ConditionalExpiryTests {
  @Test func `an expired value is replaced by an insertion`() async throws {
    let bench = TestBench(.after(.seconds(60)))
    let store = bench.store
    #expect(try await store.insertValue("a", forKey: "k", timeToLive: .after(.seconds(10))))
    bench.clock.advance(by: .seconds(9))
    #expect(try await !store.insertValue("b", forKey: "k", timeToLive: .after(.seconds(10))))
    #expect(try await store.remainingTime(forKey: "k") == .after(.seconds(1)))
    bench.clock.advance(by: .seconds(1))
    #expect(try await store.insertValue("c", forKey: "k", timeToLive: nil))
    #expect(try await store.remainingTime(forKey: "k") == .after(.seconds(60)))
    // Without a time to live, the default applies.
    #expect(try await store.insertValue("d", forKey: "other"))
    #expect(try await store.remainingTime(forKey: "other") == .after(.seconds(60)))
  }

  @Test func `an expired value is not the expected one`() async throws {
    let bench = TestBench()
    let store = bench.store
    try await store.setValue("a", forKey: "k", timeToLive: .after(.seconds(10)))
    #expect(try await store.replaceValue("b", forKey: "k", expecting: "a", timeToLive: .after(.seconds(20))))
    bench.clock.advance(by: .seconds(20))
    #expect(try await !store.replaceValue("c", forKey: "k", expecting: "b", timeToLive: nil))
    #expect(try await store.replaceValue("c", forKey: "k", expecting: nil, timeToLive: .after(.seconds(5))))
    #expect(try await store.remainingTime(forKey: "k") == .after(.seconds(5)))
    bench.clock.advance(by: .seconds(5))
    #expect(try await store.takeValue(forKey: "k") == nil)
  }

  @Test func `a live value keeps its deadline`() async throws {
    let bench = TestBench()
    let store = bench.store
    #expect(try await store.value(forKey: "k", orInsert: "a", timeToLive: .after(.seconds(10))) == "a")
    bench.clock.advance(by: .seconds(4))
    #expect(try await store.value(forKey: "k", orInsert: "b", timeToLive: .after(.seconds(10))) == "a")
    #expect(try await store.remainingTime(forKey: "k") == .after(.seconds(6)))
    bench.clock.advance(by: .seconds(6))
    #expect(try await store.value(forKey: "k", orInsert: "c", timeToLive: .never) == "c")
    #expect(try await store.remainingTime(forKey: "k") == .never)
    // Also a sliding one.
    try await store.setValue("a", forKey: "k", timeToLive: .sliding(.seconds(10)))
    bench.clock.advance(by: .seconds(6))
    #expect(try await store.value(forKey: "k", orInsert: "b", timeToLive: .never) == "a")
    bench.clock.advance(by: .seconds(6))
    #expect(try await store.value(forKey: "k", orInsert: "c", timeToLive: .never) == "c")
  }

  @Test func `an invalid time to live is refused`() async throws {
    let store = TestBench().store
    let error = await #expect(throws: StoreError.self) {
      try await store.insertValue("a", forKey: "k", timeToLive: .after(.zero))
    }
    #expect(error?.code == .invalidArgument)
    #expect(try await store.value(forKey: "k") == nil)
  }
}
