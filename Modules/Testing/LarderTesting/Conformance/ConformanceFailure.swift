/// What a case of the conformance suite throws: which promise a store broke, and how.
public struct ConformanceFailure: Error {
  /// The name of the suite, which is that of the store.
  public let suite: String

  /// The case that failed.
  public let conformanceCase: ConformanceCase

  /// What was looked at.
  public let subject: String

  /// What it should have been.
  public let expected: String

  /// What it was.
  public let got: String

  /// The error that led to this one, where it was not foreseen.
  public let underlying: (any Error)?

  /// The place in the suite where the failure was found, like `LarderTesting/PointCases.swift:20`; empty where an
  /// error ended the case.
  public let place: String

  /// The seed of the suite's random numbers; `LARDER_SEED` in the environment repeats them.
  public let seed: UInt64
}

extension ConformanceFailure: CustomStringConvertible {
  /// The failure for people to read.
  public var description: String {
    var text = """
      \(suite) fails case \(conformanceCase).
        Promise \(conformanceCase.promise)
        Looked at: \(subject)
        Expected:  \(expected)
        Got:       \(got)
      """
    if !place.isEmpty { text += "\n  Found at:  \(place)" }
    text += "\n  Seed:      \(SeededGenerator.seedVariable)=\(seed)"
    return text
  }
}
