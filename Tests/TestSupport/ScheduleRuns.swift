import Foundation
import Larder
package import LarderTesting

/// The error of a run whose results are wrong.
package struct Wrong: Error, CustomStringConvertible {
  package var description: String

  package init(_ description: String) {
    self.description = description
  }
}

/// Throws an error if a condition does not hold.
package func check(_ holds: Bool, _ description: @autoclosure () -> String) throws {
  if !holds { throw Wrong(description()) }
}

private let usualCount = 15

/// The number of schedules of each trial, which `LARDER_SCHEDULES` sets.
package let scheduleCount = ProcessInfo.processInfo.environment["LARDER_SCHEDULES"].flatMap { Int($0) } ?? usualCount

/// The seed of the first schedule of each trial, which `LARDER_SEED` sets.
///
/// The slice that runs with all tests is the same each time. `make schedules` looks for new failures.
private let firstSeed =
  ProcessInfo.processInfo.environment[SeededGenerator.seedVariable] == nil
  ? 1 : SeededGenerator.seedOfProcess

/// The text in the names of the trials that run, which `LARDER_TRIAL` sets; `nil` for all.
private let trialFilter = ProcessInfo.processInfo.environment["LARDER_TRIAL"]

/// The schedule to replay in place of many others, which `LARDER_SCHEDULE` sets; `nil` for none.
private let replayedSchedule = ProcessInfo.processInfo.environment["LARDER_SCHEDULE"]

/// Runs a closure with many schedules, and prints the time.
///
/// - Parameters:
///   - name: The name of what is tested.
///   - share: The share of ``scheduleCount``, for long runs. Defaults to 1.
///   - switchesAtLocks: A Boolean value that indicates whether other work also runs around locks. Defaults to `true`.
///   - regressions: The texts of schedules that failed once, which run first. Defaults to an empty list.
///   - body: The closure.
/// - Returns: A Boolean value that indicates whether at least the usual number of schedules has run, so that a trial can ask for
///   what happens in some of them only.
@discardableResult
package func runSchedules(
  _ name: String, share: Double = 1, switchesAtLocks: Bool = true, regressions: [String] = [],
  _ body: @escaping @Sendable (ScheduledContext) async throws -> Void
) async throws -> Bool {
  if let trialFilter, !name.contains(trialFilter) { return false }
  let trial = ScheduledTrial(name, switchesAtLocks: switchesAtLocks, body: body)
  for text in replayedSchedule.map({ [$0] }) ?? regressions {
    guard let schedule = Schedule(text) else { throw Wrong("\(text) is no schedule") }
    try await trial.replay(schedule)
  }
  if replayedSchedule != nil { return false }
  let count = max(1, Int(Double(scheduleCount) * share))
  let start = ContinuousClock.now
  try await trial.run(schedules: count, seed: firstSeed)
  print("Schedules of \(name): \(count) in \(ContinuousClock.now - start)")
  return scheduleCount >= usualCount
}
