import Foundation
import Larder
import LarderFiles
import LarderJSON
import LarderTesting
import TestSupport
import Testing

/// Power cuts and failures at every operation of random histories and of every short one; `make soak` runs a million cuts.
@Suite struct JSONFileStoreDiskTests {
  static func trials(_ durability: Durability) -> DiskTrials<JSONFileStore<Int>> {
    DiskTrials(
      "JSONFileStore, \(durability)", cuts: 5_000, faults: 2_500, historyLength: 3, historyShare: 0.02
    ) { disk in
      try await JSONFileStore(path: "/store.json", codec: .json(), durability: durability, fileSystem: disk)
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

  @Test(arguments: KeptFailure.all) func whatFailedOnceDoesNotFailAgain(_ failure: KeptFailure) async throws {
    let trial = Self.trials(failure.durability).trial
    try await trial.repeatTrial(failure.history, seed: failure.seed, fault: (failure.fault, failure.operation))
    // A change to the store or the disk may give another operation that number, so the others are tried too.
    let operationCount = try await trial.repeatTrial(failure.history, seed: failure.seed, fault: nil)
    for operation in 1...operationCount {
      for seed in failure.seed..<failure.seed + 10 {
        try await trial.repeatTrial(failure.history, seed: seed, fault: (failure.fault, operation))
      }
    }
  }

  @Test(arguments: Durability.allCases) func everyHistoryOfThreeSteps(_ durability: Durability) async throws {
    let trial = HistoryTrial("JSONFileStore, \(durability)") { location in
      try await JSONFileStore<Int>(
        path: "/store.json", codec: .json(), durability: durability,
        fileSystem: location.object { SimulatedFileSystem(seed: 1) })
    }
    try await trial.runEveryHistory(upToLength: 3)
  }
}
