// snippet.overview
import Larder
import LarderTesting
import Testing
import WholeFile

struct WholeFileStoreTests {
  // The type is stated, since the compiler does not infer it from functions beside a test. The functions are called in
  // closures, since the compiler of Swift 6.3 crashes if they are passed by name.
  static let suite: ConformanceSuite = ConformanceSuite(
    named: "WholeFileStore", codec: .json(), lacking: .observation, child: { try await child($0) },
    open: { try await open($0, $1) })

  @Sendable static func open(
    _ location: ConformanceLocation, _ codec: some Codec<SampleValue?>
  ) async throws -> WholeFileStore<SampleValue?> {
    try await WholeFileStore(path: location.path("store.json"), codec: codec, access: location.access)
  }

  @Sendable static func child(_ order: String) async throws {
    await #expect(processExitsWith: .failure) { [order] in
      await ConformanceChild.run(order) { try await WholeFileStoreTests.open($0, .json()) }
    }
  }

  @Test(.timeLimit(.minutes(15)), arguments: suite.cases)
  func conforms(_ conformanceCase: ConformanceCase) async throws {
    try await conformanceCase.run()
  }
}
// snippet.end

// snippet.testing-it
extension WholeFileStoreTests {
  @Test func `power loss at every operation`() async throws {
    let trial = DiskTrial("WholeFileStore") { disk in
      try await WholeFileStore<Int>(path: "/store.json", codec: .json(), fileSystem: disk)
    }
    try await trial.runEveryHistory(upToLength: 2, faults: [.powerLoss], seed: SeededGenerator.seedOfProcess)
    try await trial.losePower(cuts: 500, seed: SeededGenerator.seedOfProcess)
  }
}
// snippet.end
