import Foundation
import Larder
import LarderCBOR
import LarderFiles
import LarderQueue
import LarderTesting
import Testing

/// Power cuts and failures at every operation of random histories of a store; `make soak` runs many more.
@Suite struct QueueStoreDiskTests {
  /// How many cuts there are for each durability: as many as the environment variable `LARDER_CUTS` says, or 800.
  private static let cutCount = ProcessInfo.processInfo.environment["LARDER_CUTS"].flatMap { Int($0) } ?? 800

  /// With segments so small that they are begun and removed all the time.
  private static func trial(_ durability: Durability) -> DiskTrial<QueueStore<Int>> {
    DiskTrial("QueueStore, \(durability)") { disk in
      try await QueueStore(
        path: "/queue", codec: .cbor(), configuration: QueueConfiguration(segmentSize: 4096), durability: durability,
        fileSystem: disk)
    }
  }

  private static func seed(for purpose: String, _ durability: Durability) -> UInt64 {
    print("\(SeededGenerator.seedVariable)=\(SeededGenerator.seedOfProcess) (\(purpose), \(durability))")
    var generator = SeededGenerator(seed: SeededGenerator.seedOfProcess, purpose: "\(purpose), \(durability)")
    return generator.next()
  }

  @Test(arguments: Durability.allCases) func powerLossAtEveryOperation(_ durability: Durability) async throws {
    let seed = QueueStoreDiskTests.seed(for: "power cuts", durability)
    let count = try await Self.trial(durability).losePower(cuts: Self.cutCount, seed: seed)
    #expect(count >= Self.cutCount)
  }

  @Test(arguments: Durability.allCases) func failureOfEveryOperation(_ durability: Durability) async throws {
    let seed = QueueStoreDiskTests.seed(for: "failures", durability)
    let count = try await Self.trial(durability).fail(
      faults: Self.cutCount, seed: seed, errorNumbers: [EIO, ENOSPC, EINTR, EMFILE])
    #expect(count >= Self.cutCount)
  }

  @Test(arguments: Durability.allCases) func everyShortHistoryWithEveryFault(_ durability: Durability) async throws {
    let steps = ProcessInfo.processInfo.environment["LARDER_STEPS"].flatMap { Int($0) }
    let seed = QueueStoreDiskTests.seed(for: "short histories", durability)
    _ = try await Self.trial(durability).runEveryHistory(
      upToLength: steps ?? 2, share: steps == nil ? 0.1 : 1, faults: [.powerLoss, .error(EIO), .shortTransfer],
      seed: seed)
  }
}
