import Larder
import LarderExpiry
import LarderTesting
import Testing

/// Why expiry stands outside of a cache.
@Suite struct StackOrderTests {
  private let clock = ManualClock()

  @Test func aCacheAboveGivesWhatHasExpired() async throws {
    let clock = clock
    let wrong = RememberingStore(MemoryStore<Expiring<String>>().expiring(.after(.seconds(1))) { clock.date })
    try await wrong.setValue("a", forKey: "k")
    #expect(try await wrong["k"] == "a")
    clock.advance(by: .seconds(1000))
    #expect(try await wrong["k"] == "a")
    #expect(try await wrong.base["k"] == nil)
  }

  @Test func aCacheBelowGivesNothingThatHasExpired() async throws {
    let clock = clock
    let right = RememberingStore(MemoryStore<Expiring<String>>()).expiring(.after(.seconds(1))) { clock.date }
    try await right.setValue("a", forKey: "k")
    #expect(try await right["k"] == "a")
    clock.advance(by: .seconds(1))
    #expect(try await right["k"] == nil)
    #expect(right.base.readCount == 1)
  }
}
