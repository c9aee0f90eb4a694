/// What a case found to be other than promised; the suite adds which case it was.
struct Mismatch: Error {
  let subject: String
  let expected: String
  let got: String
  let place: String
}
