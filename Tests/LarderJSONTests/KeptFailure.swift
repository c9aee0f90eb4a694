import Foundation
import Larder
import LarderTesting
import Testing

/// A broken promise that a trial of `JSONFileStore` has found once.
struct KeptFailure: Sendable, CustomTestStringConvertible {
  /// What was wrong.
  var description: String
  var durability: Durability
  var history: [HistoryStep]
  var seed: UInt64
  /// What went wrong, and at which operation.
  var fault: SimulatedFault = .powerLoss
  var operation: Int

  var testDescription: String { description }

  /// All of them, each as the ``DiskTrialFailure`` printed it; none is ever removed.
  static let all = [
    // The document was written in place when it was created.
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
    // After a crash the document was replaced while its journal was only in the caches of the system, so that a beginning
    // of the journal, applied again, set keys back.
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
    // The journal was cut behind a write that had failed, but not made durable so: power loss brought the record back.
    KeptFailure(
      description: "a change that was reported as not made was there after power loss",
      durability: .synced,
      history: [.apply([.set("c", 5)])],
      seed: 6_600_516_195_099_052_291, fault: .errorAfterwards(EIO), operation: 26),
    // Closing had folded the journal, but the new name of the document was not durable; the next owner's synchronization
    // had nothing to do, and power loss brought the old document back.
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
  ]
}
