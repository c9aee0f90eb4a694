// snippet.testing-it
import Larder
import LarderExpiry
import LarderObservation
import LarderTesting
import Testing
import Watched

struct WatchedStoreTests {
  static let suite = ConformanceSuite(named: "WatchedStore", lacking: [.persistence, .encoding]) { _ in
    MemoryStore<Expiring<SampleValue?>>().observable().expiring().watched(threshold: .seconds(1)) { _, _, _ in }
  }

  @Test(arguments: suite.cases) func conforms(_ conformanceCase: ConformanceCase) async throws {
    try await conformanceCase.run()
  }

  @Test func `slow and failed operations are reported`() async throws {
    let clock = ManualClock()
    let reports = Locked<[String]>([])
    let faulty = MemoryStore<Int>().faulty()
    let store = faulty.watched(threshold: .seconds(1), clock: clock) { operation, duration, error in
      reports.withLock { $0.append("\(operation) \(duration) \(error is StoreError)") }
    }
    try await store.setValue(1, forKey: "a")
    try await store.update("a") { value in
      clock.advance(by: .seconds(2))
      value = 2
    }
    await #expect(throws: StoreError.self) { try await store.value(forKey: "") }
    #expect(reports.withLock { $0 } == ["update 2.0 seconds false", "value 0.0 seconds true"])
  }
}
// snippet.end
