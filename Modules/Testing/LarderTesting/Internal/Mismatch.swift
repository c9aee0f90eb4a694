/// What a case found to be other than promised; the suite adds which case it was.
struct Mismatch: Error {
  let subject: String
  let expected: String
  let got: String
  /// Where the two differ, if that is not to be seen at once.
  var difference = ""
  let place: String
}
