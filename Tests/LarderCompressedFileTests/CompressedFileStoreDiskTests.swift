#if Compression
import Foundation
import Larder
import LarderCompressedFile
import LarderFiles
import LarderTesting
import TestSupport
import Testing

/// Power loss and failures at every operation of random histories and of every short history.
///
/// `make soak` runs a million power cuts.
@Suite struct CompressedFileStoreDiskTests {
  static func trials(_ durability: Durability.File) -> DiskTrials<CompressedFileStore<Int>> {
    DiskTrials(
      "CompressedFileStore, \(durability)", cuts: 80, faults: 40, historyLength: 2,
      historyShare: TestDepth.isShort ? 0.02 : 0.05
    ) { disk in
      try await CompressedFileStore(path: "/store.gz", codec: .json(), durability: durability, fileSystem: disk)
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
#endif
