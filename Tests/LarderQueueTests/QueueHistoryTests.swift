import Foundation
import Larder
import LarderTesting
import Testing

@testable import LarderQueue

/// Random histories against a model, with power cuts; the environment variable `LARDER_CUTS` says how many cuts at least.
@Suite struct QueueHistoryTests {
  private static let cutCount = ProcessInfo.processInfo.environment["LARDER_CUTS"].flatMap { Int($0) } ?? 150

  @Test(arguments: Durability.allCases) func randomHistoriesWithPowerCuts(_ durability: Durability) async throws {
    let seed = SeededGenerator.seedOfProcess
    var generator = SeededGenerator(seed: seed, purpose: "histories, \(durability)")
    var cuts = 0
    while cuts < QueueHistoryTests.cutCount {
      var history = try await QueueHistory(seed: generator.next(), durability: durability)
      var steps: [QueueStep] = []
      do {
        for _ in 0..<60 {
          let step = QueueStep.random(using: &generator)
          steps.append(step)
          let isCut = Int.random(in: 0..<6, using: &generator) == 0
          let isCutTwice = Int.random(in: 0..<4, using: &generator) == 0
          try await history.run(
            step, cut: isCut ? Int.random(in: 1...6, using: &generator) : nil,
            recoveryCut: isCutTwice ? Int.random(in: 1...20, using: &generator) : nil)
        }
      } catch {
        Issue.record("LARDER_SEED=\(seed), \(durability), \(steps): \(error)")
        return
      }
      cuts += history.cutCount
    }
    print("\(cuts) cuts (\(durability))")
  }

  /// Every history of two steps from each of a few states, with the power cut at every operation of the last step.
  @Test(arguments: Durability.allCases) func everyShortHistoryWithEveryCut(_ durability: Durability) async throws {
    let beginnings: [[QueueStep]] = [
      [.enqueue(id: nil, delay: 0), .enqueue(id: 1, delay: 0), .receive(max: 1, lease: 10)],
      [.enqueue(id: 1, delay: 0), .receive(max: 1, lease: 5), .release(0, delay: 0), .receive(max: 1, lease: 5)],
    ]
    for beginning in beginnings {
      for last in QueueStep.few + [.reopen, .void, .purge(1)] {
        for cut in 1...8 {
          var history = try await QueueHistory(seed: UInt64(cut), durability: durability)
          for step in beginning { try await history.run(step, cut: nil, recoveryCut: nil) }
          do {
            try await history.run(last, cut: cut, recoveryCut: nil)
            // It must be able to go on.
            for step in [QueueStep.set(2), .receive(max: 4, lease: 5), .acknowledge(0), .reopen] {
              try await history.run(step, cut: nil, recoveryCut: nil)
            }
          } catch {
            Issue.record("\(durability), \(beginning), then \(last) with a cut at \(cut): \(error)")
            return
          }
        }
      }
    }
  }
}
