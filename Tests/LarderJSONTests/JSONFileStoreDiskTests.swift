import Foundation
import Larder
import LarderFiles
import LarderJSON
import LarderTesting
import Testing
import TestSupport

/// Power loss and failures at every operation of random and of all short histories.
///
/// `make soak` runs a million power cuts.
@Suite struct JSONFileStoreDiskTests {
  static func trials(_ durability: Durability.File) -> DiskTrials<JSONFileStore<Int>> {
    DiskTrials(
      "JSONFileStore, \(durability)", cuts: 150, faults: 80, historyLength: 2,
      historyShare: TestDepth.isShort ? 0.04 : 0.08
    ) { disk in
      try await JSONFileStore(path: "/store.json", codec: .json(), durability: durability, fileSystem: disk)
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

  @Test(arguments: KeptFailure.all) func `past failures stay fixed`(_ failure: KeptFailure) async throws {
    let trial = Self.trials(failure.durability).trial
    try await trial.repeatTrial(failure.history, seed: failure.seed, fault: (failure.fault, failure.operation))
    // A change to the store or the disk may give that number to another operation, so the trial covers all operations.
    let operationCount = try await trial.repeatTrial(failure.history, seed: failure.seed, fault: nil)
    let seedCount: UInt64 = TestDepth.isShort ? 1 : 10
    for operation in 1...operationCount {
      for seed in failure.seed..<failure.seed + seedCount {
        try await trial.repeatTrial(failure.history, seed: seed, fault: (failure.fault, operation))
      }
    }
  }

  /// A short run takes one of twenty histories.
  @Test(arguments: Durability.File.allCases) func `every history of three steps`(_ durability: Durability.File)
    async throws
  {
    let trial = HistoryTrial("JSONFileStore, \(durability)") { location in
      try await JSONFileStore<Int>(
        path: "/store.json", codec: .json(), durability: durability,
        fileSystem: location.object { SimulatedFileSystem(seed: 1) })
    }
    try await trial.runEveryHistory(upToLength: 3, share: TestDepth.isShort ? 0.05 : 1)
  }
}

/// A violation that a trial of `JSONFileStore` once found.
struct KeptFailure: Sendable, CustomTestStringConvertible {
  /// A description of the violation.
  var description: String
  var durability: Durability.File
  var history: [HistoryStep]
  var seed: UInt64
  /// The fault that occurred.
  var fault: SimulatedFault = .powerLoss
  var operation: Int

  var testDescription: String { description }

  /// All violations, as a ``TrialFailure`` described them.
  ///
  /// None is ever removed.
  static let all = [
    // The document was created by writing it in place.
    KeptFailure(
      description: "creating a document in place left a damaged one",
      durability: .buffered,
      history: [
        .apply([.remove("ba")]),
        .apply([.set("b", -5)]),
        .apply([.set("ba", -8)]),
        .compact,
        .compact,
        .synchronize,
        .add(-2, to: [StoreKey(bytes: [0x80, 0xC0]), "b"]),
        .synchronize,
      ],
      seed: 3_104_046_140_936_790_910, operation: 10),
    // After a crash, the document was replaced while its journal was only in the system's caches. A prefix of the
    // journal was
    // then applied again and reverted keys.
    KeptFailure(
      description: "folding a journal that was not durable set a key back",
      durability: .buffered,
      history: [
        .apply([.set("ba", -3)]),
        .apply([.set("a", -9)]),
        .apply([.removeAll(StoreKey(bytes: [0x80, 0xC0])..<StoreKey(bytes: [0x80, 0xC0]))]),
        .add(-2, to: ["ba", "b"]),
        .die,
        .apply([.remove("b")]),
        .apply([.remove("a")]),
        .compact,
      ],
      seed: 3_988_453_608_676_093_814, operation: 58),
    // The journal was truncated after a failed write, but not synchronized. Power loss brought the record back.
    KeptFailure(
      description: "a change that was reported as not made was there after power loss",
      durability: .synced,
      history: [.apply([.set("c", 5)])],
      seed: 6_600_516_195_099_052_291, fault: .errorAfterwards(EIO), operation: 26),
    // Closing had folded the journal, but the document's new name was not durable. The next owner's synchronization was
    // a
    // no-op, and power loss brought the old document back.
    KeptFailure(
      description: "a synchronization left a document whose name was not durable",
      durability: .buffered,
      history: [
        .apply([.set(StoreKey(bytes: [128, 192]), 3)]),
        .apply([.set("a", -6)]),
        .reopen,
        .synchronize,
      ],
      seed: 1_089_495_475_616_808_116, fault: .error(EINTR), operation: 58),
    // A journal, or the new name of a document, was not durable when the process died. The next one synchronized the
    // folder again, which the system reported as done, and showed what power loss then took away.
    KeptFailure(
      description: "a store that was opened after a failed synchronization showed what was not durable",
      durability: .synced,
      history: [
        .apply([.removeAll(.all), .set(StoreKey(String(repeating: "x", count: 400)), 2), .set("b", 2), .set("a", 3)]),
        .die,
      ],
      seed: 10_954_110_109_698_816_230, fault: .error(EIO), operation: 38),
  ]
}
