#if Compression && Crypto && LMDB && Metrics && SQLite
import Foundation
import Larder
import LarderCompression
import LarderCrypto
import LarderFiles
import LarderTesting
import TestSupport
import Testing
import Watched
import WholeFile

/// The store and the decorator of the guides, with codecs that transform values, with faults, and by URL.
///
/// They are packages of their own, `Examples/Plugins`, whose tests run the suite. Those run with the tests of this package
/// in a debug build, and as a guest builds them, for release, in `Scripts/prove-isolation`.
@Suite(.limitedParallelism) struct PluginTests {
  // MARK: Codecs

  private static func store(
    _ location: ConformanceLocation, _ codec: some Codec<SampleValue?>
  ) async throws -> WatchedStore<WholeFileStore<SampleValue?>> {
    try await WholeFileStore(path: location.path("store.json"), codec: codec, access: location.access)
      .watched(threshold: .seconds(60)) { _, _, _ in }
  }

  static let checked = ConformanceSuite(named: "WholeFileStore, checksums and versions", lacking: .observation) {
    location in
    try await store(location, try .json(SampleValue?.self).versioned(1).checksummed())
  }

  static let compressed = ConformanceSuite(named: "WholeFileStore, compressed", lacking: .observation) { location in
    try await store(location, .json(SampleValue?.self).compressed())
  }

  static let encrypted = ConformanceSuite(named: "WholeFileStore, encrypted", lacking: .observation) { location in
    try await store(location, EncryptedCodecConformance.encrypted(.json(SampleValue?.self).compressed()))
  }

  @Test(arguments: [checked, compressed, encrypted].flatMap(\.casesOfCombinations))
  func conforms(_ conformanceCase: ConformanceCase) async throws {
    try await conformanceCase.run()
  }

  // MARK: Faults

  /// The number of power cuts and of failures.
  private static let faultCount = TestDepth.isShort ? 150 : 500

  private static let trial = DiskTrial("WholeFileStore") { disk in
    try await WholeFileStore<Int>(path: "/store.json", codec: .json(), fileSystem: disk)
  }

  @Test func `failure of every operation`() async throws {
    try await Self.trial.fail(
      faults: Self.faultCount, seed: SeededGenerator.seedOfProcess, errorNumbers: [EIO, ENOSPC, EINTR])
  }

  @Test func `every short history with every fault`() async throws {
    let faults: [SimulatedFault] = [.error(EIO), .shortTransfer]
    try await Self.trial.runEveryHistory(
      upToLength: 2, share: TestDepth.isShort ? 0.3 : 1, faults: faults, seed: SeededGenerator.seedOfProcess)
  }

  @Test func `a replaced file is not overwritten`() async throws {
    let folder = try TemporaryFolder()
    let (path, backup) = (folder.path("store.json"), folder.path("backup.json"))
    let store = try await WholeFileStore<Int>(path: path, codec: .json())
    try await store.setValue(1, forKey: "a")
    try FileManager.default.copyItem(atPath: path, toPath: backup)
    try await store.setValue(2, forKey: "a")
    try FileManager.default.removeItem(atPath: path)
    try FileManager.default.moveItem(atPath: backup, toPath: path)
    await expectStoreError(.conflict) { try await store.setValue(3, forKey: "a") }
    #expect(try await store.value(forKey: "a") == 2)
    try await store.close()
    #expect(try await WholeFileStore<Int>(path: path, codec: .json()).value(forKey: "a") == 1)
  }

  // MARK: The registry and the guides

  @Test func `opens by URL`() async throws {
    let folder = try TemporaryFolder()
    let url = "whole:" + folder.path("store.json")
    let registry = StoreRegistry(providers: [WholeFileStoreProvider()])
    await expectStoreError(.notFound) {
      try await registry.open(url, codec: .raw, options: StoreOptions(createsIfMissing: false))
    }
    let store = try await registry.open(url, codec: .raw)
    try await store.setValue([1], forKey: "a")
    try await store.close()
    await expectStoreError(.versionMismatch) { try await registry.open(url, codec: .json(Int.self)) }
  }

  /// `Scripts/guide-code` compares the other code of the guides.
  @Test(arguments: [("WritingAStore", "WholeFile"), ("WritingADecorator", "Watched")])
  func `the guides show the manifests of the packages`(_ page: String, _ package: String) throws {
    let repository = URL(fileURLWithPath: #filePath).appendingPathComponent("../../..").standardized
    func text(_ path: String) throws -> String {
      try String(contentsOf: repository.appendingPathComponent(path), encoding: .utf8)
    }
    // A guest has Larder at another place.
    let manifest = try text("Examples/Plugins/\(package)/Package.swift").replacing("../../..", with: "../larder")
    let guide = try text("Modules/Testing/LarderTesting/LarderTesting.docc/\(page).md")
    #expect(guide.contains("```swift\n\(manifest)```"), "\(page).md does not show the manifest")
  }
}
#endif
