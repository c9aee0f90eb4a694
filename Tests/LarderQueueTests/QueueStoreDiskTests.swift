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

  /// Power is lost at each operation of a receive, whose error says that nothing changed only if no item stays leased.
  @Test func `a lease that survives a power loss is not denied`() async throws {
    var survivors = 0
    for seed in 1...8 as ClosedRange<UInt64> {
      for operation in 1... {
        let bench = QueueBench(seed: seed)
        let queue = try await bench.open()
        try await queue.enqueue(7)
        bench.disk.schedule(.powerLoss, atOperation: bench.disk.operationCount + operation)
        let outcome: StoreError.Outcome
        do {
          _ = try await queue.receive(max: 1, lease: .seconds(60))
          break
        } catch let error as StoreError {
          outcome = error.outcome
        }
        // The disk has no power.
        _ = try? await queue.close()
        bench.disk.restart()
        let reopened = try await bench.open()
        let isLeased = try await reopened.receive(max: 1, lease: .seconds(60)).isEmpty
        if isLeased { survivors += 1 }
        #expect(!isLeased || outcome == .unknown, "seed \(seed), operation \(operation)")
        try await reopened.close()
      }
    }
    #expect(survivors > 0)
  }
}
