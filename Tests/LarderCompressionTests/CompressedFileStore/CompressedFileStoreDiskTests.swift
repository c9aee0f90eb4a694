#if Compression
import Foundation
import Larder
import LarderCompression
import LarderFiles
import LarderTesting
import TestSupport
import Testing

/// Power cuts and failures at every operation of random histories and of every short one; `make soak` runs a million
/// cuts.
@Suite struct CompressedFileStoreDiskTests {
  static func trials(_ durability: Durability) -> DiskTrials<CompressedFileStore<Int>> {
    DiskTrials(
      "CompressedFileStore, \(durability)", cuts: 500, faults: 250, historyLength: 2, historyShare: 0.25
    ) { disk in
      try await CompressedFileStore(path: "/store.gz", codec: .json(), durability: durability, fileSystem: disk)
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
#endif
