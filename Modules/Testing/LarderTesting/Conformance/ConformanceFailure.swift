/// The error of a conformance case.
///
/// It says which promise a store broke, and how.
public struct ConformanceFailure: Error {
  /// The name of the suite: the name of the store.
  public let suite: String

  /// The case that failed.
  public let conformanceCase: ConformanceCase

  /// The subject of the check.
  private let subject: String

  /// The expected result.
  public let expected: String

  /// The actual result.
  public let got: String

  /// The first difference between the expected and the actual result, in elements of lists or bytes of long values.
  ///
  /// It is empty if the two texts already show the difference.
  public let difference: String

  private let seed: UInt64

  init(_ mismatch: Mismatch, in conformanceCase: ConformanceCase, of suite: String, seed: UInt64) {
    self.suite = suite
    self.conformanceCase = conformanceCase
    subject = mismatch.subject.unambiguous
    expected = mismatch.expected.unambiguous
    got = mismatch.got.unambiguous
    difference = mismatch.difference.unambiguous
    self.seed = seed
  }
}

extension ConformanceFailure: CustomStringConvertible {
  /// A readable description of the failure: the case and its promise, the expected and the actual result, the case's
  /// place in the source code, and the seed of the suite.
  ///
  /// Set `LARDER_SEED` to the seed in the environment to repeat the suite's random numbers. Letters and marks outside
  /// ASCII are escaped as in `\u{E9}`, so a composed and a decomposed "é" differ.
  public var description: String {
    var text = """
      \(suite) fails case \(conformanceCase).
        Promise:   \(conformanceCase.promise.rawValue)
        Checked:   \(subject)
        Expected:  \(expected)
        Got:       \(got)
      """
    if !difference.isEmpty { text += "\n  Difference: \(difference)" }
    return text + """

        Case at:   \(conformanceCase.place)
        Seed:      \(SeededGenerator.seedVariable)=\(seed)
      """
  }
}
