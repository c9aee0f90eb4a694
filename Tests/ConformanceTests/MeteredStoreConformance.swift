#if Compression && Crypto && LMDB && Metrics && SQLite
import Larder
import LarderMetrics
import LarderObservation
import LarderTesting
import TestSupport
import Testing

@Suite(.limitedParallelism) struct MeteredStoreConformance {
  static let memory = ConformanceSuite(named: "MeteredStore of MemoryStore", lacking: MemoryStoreConformance.lacking) {
    _ in
    MemoryStore<SampleValue?>().observable().metered(size: { _ in 1 }, logger: nil)
  }

  @Test(arguments: memory.cases) func conforms(_ conformanceCase: ConformanceCase) async throws {
    try await conformanceCase.run()
  }
}
#endif
