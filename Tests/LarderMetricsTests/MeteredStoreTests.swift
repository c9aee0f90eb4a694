#if Metrics
import Larder
import LarderMetrics
import LarderTesting
import Testing

@Suite struct MeteredStoreTests {
  @Test func `its name defaults to that of its base`() {
    let store = MemoryStore<Int>().metered(logger: nil)
    #expect(store.report().store == store.information.name)
    #expect(MemoryStore<Int>().metered(as: "outside").report().store == "outside")
    #expect("\(store)" == "MeteredStore[\(store.base)]")
  }

  @Test func `two meters show the savings of the layers between`() async throws {
    let inner = MemoryStore<Int>().metered(as: "inside")
    let store = inner.faulty().metered(as: "outside")
    store.base.schedule(.error(.full), on: .apply)
    await #expect(throws: StoreError.self) { try await store.setValue(1, forKey: "k") }
    try await store.setValue(1, forKey: "k")
    #expect(store.report()["apply"]?.count == 2)
    #expect(inner.report()["apply"]?.count == 1)
  }
}
#endif
