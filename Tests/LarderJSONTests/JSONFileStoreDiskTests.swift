import Foundation
import Larder
import LarderFiles
import LarderJSON
import LarderTesting
import Testing

/// Power cuts and failures at every operation of random histories and of every short one; `make soak` runs a million cuts.
@Suite struct JSONFileStoreDiskTests {
  /// How many cuts there are for each durability: as many as the environment variable `LARDER_CUTS` says, or 5,000.
  private static let cutCount = ProcessInfo.processInfo.environment["LARDER_CUTS"].flatMap { Int($0) } ?? 5_000

  static func trial(_ durability: Durability) -> DiskTrial<JSONFileStore<Int>> {
    DiskTrial("JSONFileStore, \(durability)") { disk in
      try await JSONFileStore(path: "/store.json", codec: .json(), durability: durability, fileSystem: disk)
    }
  }

  private static func seed(for purpose: String, _ durability: Durability) -> UInt64 {
    print("\(SeededGenerator.seedVariable)=\(SeededGenerator.seedOfProcess) (\(purpose), \(durability))")
    var generator = SeededGenerator(seed: SeededGenerator.seedOfProcess, purpose: "\(purpose), \(durability)")
    return generator.next()
  }

  @Test(arguments: Durability.allCases) func powerLossAtEveryOperation(_ durability: Durability) async throws {
    let seed = JSONFileStoreDiskTests.seed(for: "power cuts", durability)
    let start = ContinuousClock.now
    let count = try await Self.trial(durability).losePower(cuts: Self.cutCount, seed: seed)
    #expect(count >= Self.cutCount)
    print("\(count) power cuts (\(durability)) in \(ContinuousClock.now - start)")
  }

  @Test(arguments: Durability.allCases) func failureOfEveryOperation(_ durability: Durability) async throws {
    let faults = Self.cutCount / 2
    let seed = JSONFileStoreDiskTests.seed(for: "failures", durability)
    let start = ContinuousClock.now
    let count = try await Self.trial(durability).fail(
      faults: faults, seed: seed, errorNumbers: [EIO, ENOSPC, EINTR, EMFILE])
    #expect(count >= faults)
    print("\(count) failures (\(durability)) in \(ContinuousClock.now - start)")
  }

  /// All up to as many steps as the environment variable `LARDER_STEPS` says, and any fault; unless that is set, all up to
  /// two steps and some of three.
  @Test(arguments: Durability.allCases) func everyShortHistoryWithEveryFault(_ durability: Durability) async throws {
    let steps = ProcessInfo.processInfo.environment["LARDER_STEPS"].flatMap { Int($0) }
    var faults: [SimulatedFault] = [.powerLoss, .error(EIO), .shortTransfer]
    if steps != nil { faults += [.error(ENOSPC), .error(EINTR), .error(EMFILE), .errorAfterwards(EIO)] }
    let seed = JSONFileStoreDiskTests.seed(for: "short histories", durability)
    let start = ContinuousClock.now
    let count = try await Self.trial(durability).runEveryHistory(
      upToLength: steps ?? 3, share: steps == nil ? 0.02 : 1, faults: faults, seed: seed)
    print("\(count) faults in short histories (\(durability)) in \(ContinuousClock.now - start)")
  }

  @Test(arguments: KeptFailure.all) func whatFailedOnceDoesNotFailAgain(_ failure: KeptFailure) async throws {
    let trial = JSONFileStoreDiskTests.trial(failure.durability)
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
