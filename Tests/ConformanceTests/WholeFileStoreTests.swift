import Foundation
import Larder
import LarderTesting
import TestSupport
import Testing

/// The store of the guide `Modules/Testing/LarderTesting/LarderTesting.docc/WritingAStore.md`.
///
/// It keeps every promise and must appear in the guide unchanged.
@Suite(.limitedParallelism) struct WholeFileStoreTests {
  // The type is stated, because the compiler does not infer it from functions next to a test.
  static let suite: ConformanceSuite = ConformanceSuite(
    named: "WholeFileStore", codec: .json(), lacking: .observation, child: child, open: { try await open($0, $1) })

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

  @Test(.timeLimit(.minutes(15)), arguments: suite.cases) func conforms(_ conformanceCase: ConformanceCase) async throws
  {
    try await conformanceCase.run()
  }

  /// The store that the guide had before breaks rules that only these cases check.
  @Test func theSuiteFindsTheFaultsOfTheFormerGuide() async throws {
    let suite = ConformanceSuite(named: "FormerGuideStore", codec: .json(), lacking: .observation) { location, codec in
      try await FormerGuideStore(path: location.path("store.json"), codec: codec, access: location.access)
    }
    var failed: [String] = []
    for conformanceCase in suite.cases where conformanceCase.needs.contains(.codecs) {
      do {
        try await conformanceCase.run()
      } catch let failure as ConformanceFailure {
        failed.append(failure.conformanceCase.id)
      }
    }
    // It gave every error of the codec the code `corrupted`, and nothing else can open it at the same time.
    let passed = ["283a", "283c", "286b"]
    #expect(failed == suite.cases.filter { $0.needs.contains(.codecs) && !passed.contains($0.id) }.map(\.id))
    #expect(failed.count == 10)
  }

  /// The number of power cuts and of failures.
  private static let faultCount = TestDepth.isShort ? 150 : 500

  static let trial = DiskTrial("WholeFileStore") { disk in
    try await WholeFileStore<Int>(path: "/store.json", codec: .json(), fileSystem: disk)
  }

  @Test func powerLossAtEveryOperation() async throws {
    try await Self.trial.losePower(cuts: Self.faultCount, seed: SeededGenerator.seedOfProcess)
  }

  @Test func failureOfEveryOperation() async throws {
    try await Self.trial.fail(
      faults: Self.faultCount, seed: SeededGenerator.seedOfProcess, errorNumbers: [EIO, ENOSPC, EINTR])
  }

  @Test func everyShortHistoryWithEveryFault() async throws {
    let faults: [SimulatedFault] = [.powerLoss, .error(EIO), .shortTransfer]
    try await Self.trial.runEveryHistory(
      upToLength: 2, share: TestDepth.isShort ? 0.3 : 1, faults: faults, seed: SeededGenerator.seedOfProcess)
  }

  @Test func opensByURL() async throws {
    let path = FileManager.default.temporaryDirectory.path + "/WholeFileStore-\(UUID().uuidString).json"
    let registry = StoreRegistry(providers: [WholeFileStoreProvider()])
    await #expect(throws: StoreError.self) {
      try await registry.open("whole:\(path)", codec: .raw, options: StoreOptions(createsIfMissing: false))
    }
    let store = try await registry.open("whole:\(path)", codec: .raw)
    try await store.setValue([1], forKey: "a")
    try await store.close()
    try FileManager.default.removeItem(atPath: path)
    try FileManager.default.removeItem(atPath: path + ".lock")
  }

  @Test func theGuideShowsThisCode() throws {
    let tests = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
    let guide = tests.appendingPathComponent("../../Modules/Testing/LarderTesting/LarderTesting.docc/WritingAStore.md")
    let text = try String(contentsOf: guide, encoding: .utf8)
    for file in ["WholeFileStore.swift", "WholeFileStoreProvider.swift"] {
      let code = try String(contentsOf: tests.appendingPathComponent(file), encoding: .utf8)
      #expect(text.contains("```swift\n\(code)```"), "WritingAStore.md does not show \(file) as it is")
    }
  }
}
