import Larder
import LarderCache
import LarderExpiry
import LarderTesting
import Testing

/// Why expiry stands outside of a cache.
@Suite struct StackOrderTests {
  private let clock = ManualClock()

  @Test func aCacheAboveGivesWhatHasExpired() async throws {
    let clock = clock
    let wrong = MemoryStore<Expiring<String>>().expiring(.after(.seconds(1))) { clock.date }.cached()
    try await wrong.setValue("a", forKey: "k")
    #expect(try await wrong["k"] == "a")
    clock.advance(by: .seconds(1000))
    #expect(try await wrong["k"] == "a")
    #expect(try await wrong.base["k"] == nil)
  }

  @Test func aCacheBelowGivesNothingThatHasExpired() async throws {
    let clock = clock
    let right = MemoryStore<Expiring<String>>().cached().expiring(.after(.seconds(1))) { clock.date }
    try await right.setValue("a", forKey: "k")
    #expect(try await right["k"] == "a")
    clock.advance(by: .seconds(1))
    #expect(try await right["k"] == nil)
    #expect(right.base.statistics.hits == 2)
    #expect(right.base.statistics.misses == 0)
  }
}
