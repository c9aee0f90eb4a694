import Larder

/// Whatever it is, for people to read: missing and stored nil told apart, long texts cut.
func text<Subject>(of subject: Subject) -> String {
  switch subject {
  case let error as StoreError: "StoreError " + shortened(error.detailedDescription)
  case let error as any Error: "the error \(type(of: error)): \(shortened(String(describing: error)))"
  case is Void: "nothing returned"
  default: shortened(plain(subject))
  }
}

private func plain<Subject>(_ subject: Subject) -> String {
  // A cast alone would take the nil of any optional type for that of a slot.
  if Subject.self == SampleValue??.self, case let slot as SampleValue?? = subject {
    return plain(slot: slot)
  }
  return switch subject {
  case let slots as [SampleValue??]: "[\(slots.map(plain(slot:)).joined(separator: ", "))]"
  case let entries as [StoreEntry<SampleValue?>]:
    "[\(entries.map { "\($0.key): \(plain(slot: .some($0.value)))" }.joined(separator: ", "))]"
  default: String(describing: subject)
  }
}

private func plain(slot: SampleValue??) -> String {
  switch slot {
  case nil: "missing"
  case .some(nil): "a stored nil"
  case .some(let value?): value.description
  }
}

/// A text without its middle where it is long.
func shortened(_ text: String) -> String {
  text.count <= 600 ? text : "\(text.prefix(400)) … (\(text.count) characters) … \(text.suffix(150))"
}
