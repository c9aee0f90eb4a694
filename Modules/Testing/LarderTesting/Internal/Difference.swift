import Larder

/// Where two subjects first differ, for people to read: lists by element, anything else by character where its text is too
/// long to be shown whole.
///
/// - Returns: The difference, or nothing where the texts of the two already show it.
func difference<Subject>(expected: Subject, got: Subject) -> String {
  if let old = elements(of: expected), let new = elements(of: got) {
    return difference(expected: old, got: new)
  }
  if let old = sample(in: expected), let new = sample(in: got) {
    return difference(in: "the text", Array(old.text.utf8), Array(new.text.utf8))
      + difference(in: "the bytes", Array(old.bytes), Array(new.bytes))
  }
  let (old, new) = (plain(expected), plain(got))
  guard old != shortened(old) || new != shortened(new) else { return "" }
  return difference(in: "the description", Array(old.utf8), Array(new.utf8))
}

private func sample<Subject>(in subject: Subject) -> SampleValue? {
  subject as? SampleValue
}

/// How many elements of each list are shown from the first difference on, and how many before it.
private let (linesShown, linesBefore) = (4, 2)

private func difference(expected: [String], got: [String]) -> String {
  guard expected != got, max(expected.count, got.count) > 1 else { return "" }
  let start = zip(expected, got).prefix { $0 == $1 }.count
  // Where all are equal that both have, the tail of the longer list is the difference; what follows it is none.
  let end = zip(expected[start...].reversed(), got[start...].reversed()).prefix { $0 == $1 }.count
  var lines = ["\(expected.count) elements expected, \(got.count) got; the first difference is at index \(start):"]
  lines += expected[..<start].suffix(linesBefore).map { "  " + shortened($0, to: 200) }
  for (sign, list) in [("-", expected[start..<expected.count - end]), ("+", got[start..<got.count - end])] {
    lines += list.prefix(linesShown).map { "\(sign) " + shortened($0, to: 200) }
    if list.count > linesShown { lines.append("\(sign) … and \(list.count - linesShown) more") }
  }
  return lines.joined(separator: "\n    ")
}

/// Where two long texts, or other bytes, first differ; nothing where they are short or equal.
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
