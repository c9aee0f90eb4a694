/// The error of a conformance case, which says which promise a store broke, and how.
public struct ConformanceFailure: Error {
  /// The name of the suite, which is the name of the store.
  public let suite: String

  /// The case that failed.
  public let conformanceCase: ConformanceCase

  /// The subject of the check.
  public let subject: String

  /// The expected result.
  public let expected: String

  /// The actual result.
  public let got: String

  /// The first difference between the expected and the actual result, in elements of lists or bytes of long values.
  ///
  /// It is empty if the two texts already show the difference.
  public let difference: String

  /// The underlying error, if an unexpected error ended the case.
  public let underlying: (any Error)?

  /// The source location of the failed check, such as `LarderTesting/PointCases.swift:20`.
  ///
  /// It is empty if an error ended the case.
  public let place: String

  /// The seed of the suite's random numbers.
  ///
  /// Set `LARDER_SEED` to this number in the environment to repeat them.
  public let seed: UInt64

  init(
    _ mismatch: Mismatch, in conformanceCase: ConformanceCase, of suite: String, seed: UInt64,
    underlying: (any Error)? = nil
  ) {
    self.suite = suite
    self.conformanceCase = conformanceCase
    subject = mismatch.subject.unambiguous
    expected = mismatch.expected.unambiguous
    got = mismatch.got.unambiguous
    difference = mismatch.difference.unambiguous
    self.underlying = underlying
    place = mismatch.place
    self.seed = seed
  }
}

extension ConformanceFailure: CustomStringConvertible {
  /// A readable description of the failure.
  ///
  /// Letters and marks outside ASCII are escaped as in `\u{E9}`, so that a composed and a decomposed "é" differ.
  public var description: String {
    var text = """
      \(suite) fails case \(conformanceCase).
        Promise \(conformanceCase.promise)
        Checked:   \(subject)
        Expected:  \(expected)
        Got:       \(got)
      """
    if !difference.isEmpty { text += "\n  Difference: \(difference)" }
    if !place.isEmpty { text += "\n  Found at:  \(place)" }
    text += "\n  Seed:      \(SeededGenerator.seedVariable)=\(seed)"
    return text
  }
}
