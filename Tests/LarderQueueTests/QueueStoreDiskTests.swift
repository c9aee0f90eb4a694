import Foundation
import Larder
import LarderCBOR
import LarderFiles
import LarderQueue
import LarderTesting
import TestSupport
import Testing

/// Power cuts and failures at every operation of random histories of a store; `make soak` runs many more.
@Suite struct QueueStoreDiskTests {
  /// With segments so small that they are begun and removed all the time.
  static func trials(_ durability: Durability) -> DiskTrials<QueueStore<Int>> {
    DiskTrials(
      "QueueStore, \(durability)", cuts: 800, faults: 800, historyLength: 2, historyShare: 0.1
    ) { disk in
      try await QueueStore(
        path: "/queue", codec: .cbor(), configuration: QueueConfiguration(segmentSize: 4096), durability: durability,
        fileSystem: disk)
    }
  }

  @Test(arguments: Durability.allCases) func powerLossAtEveryOperation(_ durability: Durability) async throws {
    try await Self.trials(durability).losePower()
  }

  @Test(arguments: Durability.allCases) func failureOfEveryOperation(_ durability: Durability) async throws {
    try await Self.trials(durability).fail()
  }

  @Test(arguments: Durability.allCases) func everyShortHistoryWithEveryFault(_ durability: Durability) async throws {
    try await Self.trials(durability).runEveryShortHistory()
  }
}
