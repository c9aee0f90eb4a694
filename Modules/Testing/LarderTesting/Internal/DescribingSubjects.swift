import Larder

/// Whatever it is, for people to read: missing and stored nil told apart, long lists and texts cut.
func text<Subject>(of subject: Subject) -> String {
  switch subject {
  case let error as StoreError: "StoreError " + shortened(error.detailedDescription)
  case let error as any Error: "the error \(type(of: error)): \(shortened(String(describing: error), to: 4_000))"
  case is Void: "nothing returned"
  default: shortened(plain(subject))
  }
}

/// The elements of a list in words, or `nil` of what is no list.
func elements<Subject>(of subject: Subject) -> [String]? {
  switch subject {
  case let slots as [SampleValue??]: slots.map(plain(slot:))
  case let entries as [StoreEntry<SampleValue?>]: entries.map { "\($0.key): \(plain(slot: .some($0.value)))" }
  case let others as [Any]: others.map { String(describing: $0) }
  default: nil
  }
}

/// Whatever it is, in words; of a long list the first and the last elements.
func plain<Subject>(_ subject: Subject) -> String {
  // A cast alone would take the nil of any optional type for that of a slot.
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

/// A text without its middle where it is long.
///
/// - Parameters:
///   - text: The text.
///   - length: How many characters may be shown; defaults to 600.
func shortened(_ text: String, to length: Int = 600) -> String {
  guard text.count > length else { return text }
  return "\(text.prefix(length * 2 / 3)) … (\(text.count) characters) … \(text.suffix(length / 4))"
}
