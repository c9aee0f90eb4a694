import Larder

extension DiskTrial {
  /// Runs every history of a few steps, each with every single operation going wrong in turn.
  ///
  /// Most of what file systems and stores do wrong at crashes shows in histories of three steps at most; see "Finding
  /// Crash-Consistency Bugs with Bounded Black-Box Crash Testing" (Mohan and others, OSDI 2018).
  ///
  /// - Parameters:
  ///   - length: How many steps the longest have. There are nine kinds of steps, so a length of 2 makes 90 histories, 3
  ///     makes 819 and 4 makes 7,380.
  ///   - share: Which share of the longest histories is run, between 0 and 1; all of them unless said. The seed chooses.
  ///   - faults: What goes wrong at each operation, one after another.
  ///   - seed: Decides what the disk keeps. Another seed tries other remains of the same histories.
  /// - Returns: How many operations went wrong.
  /// - Throws: ``DiskTrialFailure`` for one of the shortest histories that fail, with all that is needed to repeat it;
  ///   `CancellationError` where the task is cancelled.
  @discardableResult
  public func runEveryHistory(
    upToLength length: Int, share: Double = 1, faults: [SimulatedFault], seed: UInt64
  ) async throws -> Int {
    var generator = SeededGenerator(seed: seed)
    var choice = SeededGenerator(seed: seed, purpose: "choosing histories")
    var count = 0
    var histories: [[HistoryStep]] = [[]]
    for currentLength in stride(from: 1, through: length, by: 1) {
      histories = histories.flatMap { history in HistoryStep.fewWritingSteps.map { history + [$0] } }
      for history in histories {
        guard currentLength < length || Double.random(in: 0..<1, using: &choice) < share else { continue }
        let operationCount = try await repeatTrial(history, seed: generator.next(), fault: nil)
        for operation in 1...max(1, operationCount) {
          for fault in faults {
            _ = try await repeatTrial(history, seed: generator.next(), fault: (fault: fault, operation: operation))
            count += 1
          }
        }
      }
    }
    return count
  }
}
