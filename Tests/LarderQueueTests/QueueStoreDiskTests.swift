import Foundation
import Larder
import LarderCBOR
import LarderFiles
import LarderQueue
import LarderTesting
import TestSupport
import Testing

/// Power loss and failures at every operation of a store's random histories.
///
/// `make soak` runs many more.
@Suite struct QueueStoreDiskTests {
  /// The segments are so small that the queue constantly creates and removes them.
  static func trials(_ durability: Durability.File) -> DiskTrials<QueueStore<Int>> {
    DiskTrials(
      "QueueStore, \(durability)", cuts: 80, faults: 50, historyLength: 2, historyShare: TestDepth.isShort ? 0.01 : 0.02
    ) { disk in
      try await QueueStore(
        path: "/queue", codec: .cbor(), configuration: QueueConfiguration(segmentSize: 4096), durability: durability,
        fileSystem: disk)
    }
  }

  @Test(arguments: Durability.File.allCases) func `power loss at every operation`(_ durability: Durability.File)
    async throws
  {
    try await Self.trials(durability).losePower()
  }

  @Test(arguments: Durability.File.allCases) func `failure of every operation`(_ durability: Durability.File)
    async throws
  {
    try await Self.trials(durability).fail()
  }

  @Test(arguments: Durability.File.allCases) func `every short history with every fault`(_ durability: Durability.File)
    async throws
  {
    try await Self.trials(durability).runEveryShortHistory()
  }
}
