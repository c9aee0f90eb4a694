/// What came of running a whole suite.
public struct ConformanceReport: Sendable {
  /// The cases that the store passed.
  public internal(set) var passed: [ConformanceCase] = []

  /// What the store failed.
  public internal(set) var failures: [ConformanceFailure] = []

  /// What was left out, and why.
  public internal(set) var skipped: [SkippedCase] = []
}

extension ConformanceReport: CustomStringConvertible {
  /// The failures, and how many cases passed and were skipped.
  public var description: String {
    (failures.map(\.description) + ["\(passed.count) passed, \(failures.count) failed, \(skipped.count) skipped"])
      .joined(separator: "\n")
  }
}
