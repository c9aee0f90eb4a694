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
}
