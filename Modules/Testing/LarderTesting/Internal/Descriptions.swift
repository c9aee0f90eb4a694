import Larder

/// Returns a readable text that distinguishes a missing value from a stored nil, with long lists and texts shortened.
func text<Subject>(of subject: Subject) -> String {
  switch subject {
  case let error as StoreError: "StoreError " + shortened(error.detailedDescription)
  case let error as any Error: "the error \(type(of: error)): \(shortened(String(describing: error), to: 4_000))"
  case is Void: "none"
  default: shortened(plain(subject))
  }
}

/// Returns readable texts of a list's elements, or `nil` if the subject is not a list.
func elements<Subject>(of subject: Subject) -> [String]? {
  switch subject {
  case let slots as [SampleValue??]: slots.map(plain(slot:))
  case let entries as [StoreEntry<SampleValue?>]: entries.map { "\($0.key): \(plain(slot: .some($0.value)))" }
  case let others as [Any]: others.map { String(describing: $0) }
  default: nil
  }
}

/// Returns a readable text with only the first and last elements of a long list.
func plain<Subject>(_ subject: Subject) -> String {
  // The cast alone would match a nil of any optional type.
  if Subject.self == SampleValue??.self, case let slot as SampleValue?? = subject {
    return plain(slot: slot)
  }
  guard let elements = elements(of: subject) else { return String(describing: subject) }
  guard elements.count > 12 else { return "[\(elements.joined(separator: ", "))]" }
  let ends = elements.prefix(4) + ["… (\(elements.count) elements) …"] + elements.suffix(2)
  return "[\(ends.joined(separator: ", "))]"
}

private func plain(slot: SampleValue??) -> String {
  switch slot {
  case nil: "missing"
  case .some(nil): "a stored nil"
  case .some(let value?): value.description
  }
}

/// Returns a text without its middle if it is too long.
///
/// - Parameters:
///   - text: The text.
///   - length: The maximum number of characters. Defaults to 600.
func shortened(_ text: String, to length: Int = 600) -> String {
  guard text.count > length else { return text }
  return "\(text.prefix(length * 2 / 3)) … (\(text.count) characters) … \(text.suffix(length / 4))"
}

/// Returns a readable text of the first difference between two subjects.
///
/// Lists are compared by element. Other subjects are compared by byte if their texts are too long to show in full.
///
/// - Returns: The difference, or an empty string if the texts of the two subjects already show it.
func difference<Subject>(expected: Subject, got: Subject) -> String {
  if let old = elements(of: expected), let new = elements(of: got) {
    return difference(expected: old, got: new)
  }
  if let old = expected as? SampleValue, let new = got as? SampleValue {
    return difference(in: "the text", Array(old.text.utf8), Array(new.text.utf8))
      + difference(in: "the bytes", Array(old.bytes), Array(new.bytes))
  }
  let (old, new) = (plain(expected), plain(got))
  guard old != shortened(old) || new != shortened(new) else { return "" }
  return difference(in: "the description", Array(old.utf8), Array(new.utf8))
}

/// The number of elements of each list that are shown from the first difference, and the number before it.
private let (linesShown, linesBefore) = (4, 2)

private func difference(expected: [String], got: [String]) -> String {
  guard expected != got, max(expected.count, got.count) > 1 else { return "" }
  let start = zip(expected, got).prefix { $0 == $1 }.count
  // If one list is a prefix of the other, the difference is the rest of the longer list.
  let end = zip(expected[start...].reversed(), got[start...].reversed()).prefix { $0 == $1 }.count
  var lines = ["\(expected.count) elements expected, \(got.count) got; the first difference is at index \(start):"]
  lines += expected[..<start].suffix(linesBefore).map { "  " + shortened($0, to: 200) }
  for (sign, list) in [("-", expected[start..<expected.count - end]), ("+", got[start..<got.count - end])] {
    lines += list.prefix(linesShown).map { "\(sign) " + shortened($0, to: 200) }
    if list.count > linesShown { lines.append("\(sign) … and \(list.count - linesShown) more") }
  }
  return lines.joined(separator: "\n    ")
}

/// Returns the first difference between two long byte sequences, or an empty string if they are short or equal.
private func difference(in what: String, _ expected: [UInt8], _ got: [UInt8]) -> String {
  guard expected != got, max(expected.count, got.count) > 40 else { return "" }
  let start = zip(expected, got).prefix { $0 == $1 }.count
  func excerpt(_ bytes: [UInt8]) -> String {
    String(decoding: bytes[start...].prefix(40), as: UTF8.self).debugDescription
  }
  return """
    \(what) of \(expected.count) bytes expected, of \(got.count) got; the first difference is at byte \(start):
        - \(excerpt(expected))
        + \(excerpt(got))
    """
}

extension String {
  /// The text with every ambiguous or invisible character escaped.
  ///
  /// Letters and marks outside ASCII are escaped as in `\u{E9}`, so a composed and a decomposed "é" differ. Invisible
  /// characters other than line feeds are escaped too. Symbols and punctuation are unchanged.
  var unambiguous: String {
    var result = String.UnicodeScalarView()
    for scalar in unicodeScalars {
      if scalar == "\n" || scalar.isUnmistakable {
        result.append(scalar)
      } else {
        result.append(contentsOf: "\\u{\(String(scalar.value, radix: 16, uppercase: true))}".unicodeScalars)
      }
    }
    return String(result)
  }
}

extension Unicode.Scalar {
  fileprivate var isUnmistakable: Bool {
    guard !isASCII else { return value >= 0x20 && value != 0x7F }
    switch properties.generalCategory {
    case .otherSymbol, .mathSymbol, .currencySymbol, .otherPunctuation, .dashPunctuation: return true
    default: return false
    }
  }
}
