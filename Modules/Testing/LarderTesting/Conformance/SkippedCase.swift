/// A case that a suite leaves out, since the store was stated to lack what the case needs.
public struct SkippedCase: Sendable {
  /// The case.
  public let conformanceCase: ConformanceCase

  /// What the store lacks.
  public let lacking: StoreAbilities

  /// What the store lacks, for people to read.
  public var reason: String {
    StoreAbilities.explanations.filter { lacking.contains($0.ability) }.map(\.text).joined(separator: ", ")
  }
}

extension SkippedCase: CustomStringConvertible {
  /// The case and the reason.
  public var description: String { "\(conformanceCase) [skipped: the store \(reason)]" }
}
