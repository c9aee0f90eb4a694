import Larder
import LarderExpiry
import LarderObservation
import LarderTesting
import Testing
import Watched

struct CheckedStoreTests {
  static let suite = ConformanceSuite(named: "CheckedStore", lacking: [.persistence, .encoding]) { _ in
    MemoryStore<Expiring<SampleValue?>>().observable().expiring().checked { _ in }
  }

  @Test(arguments: suite.cases) func conforms(_ conformanceCase: ConformanceCase) async throws {
    try await conformanceCase.run()
  }

  @Test func `every way in is checked`() async throws {
    struct Negative: Error {}
    let store = MemoryStore<Expiring<Int>>().expiring().checked { if $0 < 0 { throw Negative() } }
    try await store.apply([.set("a", 1)])
    func expectRefusal(_ write: () async throws -> Void) async {
      do {
        try await write()
        Issue.record("a value is not checked")
      } catch let error as StoreError {
        #expect(error.code == .invalidArgument && error.key == "a" && error.underlying is Negative)
      } catch {
        Issue.record(error)
      }
    }
    await expectRefusal { try await store.apply([.set("b", 1), .set("a", -1)]) }
    await expectRefusal { try await store.update("a") { $0 = -1 } }
    await expectRefusal { try await store.setValue(-1, forKey: "a", timeToLive: .after(.seconds(1))) }
    await expectRefusal { try await store.replaceValue(-1, forKey: "a", expecting: 1, timeToLive: nil) }
    #expect(try await store.entries(in: .all, limit: .max) == [StoreEntry(key: "a", value: 1)])
  }
}
