/// A step of a path in an error: the name of a field, or the number of an element.
struct CBORPathKey: CodingKey {
  let stringValue: String
  let intValue: Int?

  init(stringValue: String) {
    self.stringValue = stringValue
    intValue = nil
  }

  /// Takes the text of a key, which may be that of a number.
  init(text: String) {
    stringValue = text
    intValue = Int(text)
  }

  init(intValue: Int) {
    stringValue = "Index \(intValue)"
    self.intValue = intValue
  }
}
