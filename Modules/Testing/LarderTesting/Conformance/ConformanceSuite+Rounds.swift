#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

extension ConformanceSuite {
  /// The environment variable from which ``roundsOfProcess`` comes.
  public static let roundsVariable = "LARDER_ROUNDS"

  /// How many random histories a case of this process runs: as many as the environment variable `LARDER_ROUNDS` says, none
  /// where that is negative, or 20.
  public static let roundsOfProcess: Int =
    max(0, ProcessInfo.processInfo.environment[roundsVariable].flatMap { Int($0) } ?? 20)

  /// How long a case of this process may take: ten minutes, and more in proportion if ``roundsOfProcess`` is above 20.
  public static let timeLimitOfProcess: Duration = .seconds(600) * max(1, roundsOfProcess / 20)

  /// The environment variable from which ``killsOfProcess`` comes.
  public static let killsVariable = "LARDER_KILL_ROUNDS"

  /// How many processes are killed by each case of this process that kills some: as many as the environment variable
  /// `LARDER_KILL_ROUNDS` says, at least one, or 2.
  public static let killsOfProcess: Int =
    max(1, ProcessInfo.processInfo.environment[killsVariable].flatMap { Int($0) } ?? 2)
}
