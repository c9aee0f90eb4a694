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

  /// Where the two differ: of lists the first elements that differ, of long values the first bytes; empty if that is to be
  /// seen at once.
  public let difference: String

  /// The error that led to this one, where it was not foreseen.
  public let underlying: (any Error)?

  /// The place in the suite where the failure was found, like `LarderTesting/PointCases.swift:20`; empty where an
  /// error ended the case.
  public let place: String

  /// The seed of the suite's random numbers; `LARDER_SEED` in the environment repeats them.
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
  /// The failure for people to read.
  ///
  /// Letters and marks outside ASCII are written like `\u{E9}`, so that a composed and a decomposed "é" differ.
  public var description: String {
    var text = """
      \(suite) fails case \(conformanceCase).
        Promise \(conformanceCase.promise)
        Looked at: \(subject)
        Expected:  \(expected)
        Got:       \(got)
      """
    if !difference.isEmpty { text += "\n  Difference: \(difference)" }
    if !place.isEmpty { text += "\n  Found at:  \(place)" }
    text += "\n  Seed:      \(SeededGenerator.seedVariable)=\(seed)"
    return text
  }
}
