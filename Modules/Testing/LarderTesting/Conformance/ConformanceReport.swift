/// The result of running a whole suite.
public struct ConformanceReport: Sendable {
  /// The cases that the store passed.
  public internal(set) var passed: [ConformanceCase] = []

  /// The failures of the store.
  public internal(set) var failures: [ConformanceFailure] = []

  /// The skipped cases, with their reasons.
  public internal(set) var skipped: [SkippedCase] = []
}

extension ConformanceReport: CustomStringConvertible {
  /// The failures, and the numbers of cases that passed, failed and were skipped.
  public var description: String {
    (failures.map(\.description) + ["\(passed.count) passed, \(failures.count) failed, \(skipped.count) skipped"])
      .joined(separator: "\n")
  }
}

/// A case that a suite skips because the store lacks a capability that the case needs.
public struct SkippedCase: Sendable {
  /// The case.
  public let conformanceCase: ConformanceCase

  /// The capabilities that the store lacks.
  public let lacking: StoreCapabilities

  /// A readable description of the capabilities that the store lacks.
  public var reason: String {
    StoreCapabilities.explanations.filter { lacking.contains($0.capability) }.map(\.text).joined(separator: ", ")
  }
}

extension SkippedCase: CustomStringConvertible {
  /// The case and the reason.
  public var description: String { "\(conformanceCase) [skipped: the store \(reason)]" }
}
