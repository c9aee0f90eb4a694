#if Compression
import Foundation
import Larder
import LarderCompression
import LarderFiles
import LarderTesting
import Testing

/// Power cuts and failures at every operation of random histories and of every short one; `make soak` runs a million
/// cuts.
@Suite struct CompressedFileStoreDiskTests {
  /// How many cuts there are for each durability: as many as the environment variable `LARDER_CUTS` says, or 500.
  private static let cutCount = ProcessInfo.processInfo.environment["LARDER_CUTS"].flatMap { Int($0) } ?? 500

  static func trial(_ durability: Durability) -> DiskTrial<CompressedFileStore<Int>> {
    DiskTrial("CompressedFileStore, \(durability)") { disk in
      try await CompressedFileStore(path: "/store.gz", codec: .json(), durability: durability, fileSystem: disk)
    }
  }

  private static func seed(for purpose: String, _ durability: Durability) -> UInt64 {
    print("\(SeededGenerator.seedVariable)=\(SeededGenerator.seedOfProcess) (\(purpose), \(durability))")
    var generator = SeededGenerator(seed: SeededGenerator.seedOfProcess, purpose: "\(purpose), \(durability)")
    return generator.next()
  }

  @Test(arguments: Durability.allCases) func powerLossAtEveryOperation(_ durability: Durability) async throws {
    let seed = Self.seed(for: "power cuts", durability)
    let start = ContinuousClock.now
    let count = try await Self.trial(durability).losePower(cuts: Self.cutCount, seed: seed)
    #expect(count >= Self.cutCount)
    print("\(count) power cuts (\(durability)) in \(ContinuousClock.now - start)")
  }

  @Test(arguments: Durability.allCases) func failureOfEveryOperation(_ durability: Durability) async throws {
    let faults = Self.cutCount / 2
    let seed = Self.seed(for: "failures", durability)
    let start = ContinuousClock.now
    let count = try await Self.trial(durability).fail(
      faults: faults, seed: seed, errorNumbers: [EIO, ENOSPC, EINTR, EMFILE])
    #expect(count >= faults)
    print("\(count) failures (\(durability)) in \(ContinuousClock.now - start)")
  }

  /// All up to as many steps as the environment variable `LARDER_STEPS` says, and any fault; unless that is set, all of
  /// one step and some of two.
  @Test(arguments: Durability.allCases) func everyShortHistoryWithEveryFault(_ durability: Durability) async throws {
    let steps = ProcessInfo.processInfo.environment["LARDER_STEPS"].flatMap { Int($0) }
    var faults: [SimulatedFault] = [.powerLoss, .error(EIO), .shortTransfer]
    if steps != nil { faults += [.error(ENOSPC), .error(EINTR), .error(EMFILE), .errorAfterwards(EIO)] }
    let seed = Self.seed(for: "short histories", durability)
    let start = ContinuousClock.now
    let count = try await Self.trial(durability).runEveryHistory(
      upToLength: steps ?? 2, share: steps == nil ? 0.25 : 1, faults: faults, seed: seed)
    print("\(count) faults in short histories (\(durability)) in \(ContinuousClock.now - start)")
  }
}
#endif
