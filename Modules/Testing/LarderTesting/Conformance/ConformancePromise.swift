/// A promise that every store and decorator keeps; ``DataStore`` lists them.
public enum ConformancePromise: Int, Sendable, Hashable, CaseIterable {
  /// Keys are byte strings.
  case keys = 1
  /// Values round-trip.
  case values
  /// Missing is no error, and no error is missing.
  case missing
  /// Batches are atomic and in sequence.
  case batches
  /// Updates are atomic.
  case updates
  /// Scans are ordered and consistent.
  case scans
  /// What was acknowledged is kept.
  case durability
  /// Damage stays where it is.
  case isolation
  /// Closing waits, and is final.
  case lifecycle
  /// A cancelled write does not start.
  case cancellation
  /// Errors say what happened.
  case errors
  /// Bad input is refused.
  case badInput

  /// The promise in words.
  public var statement: String {
    switch self {
    case .keys:
      "Keys are byte strings of 1 to 511 bytes, told apart and ordered byte by byte; any other key is refused by every "
        + "operation that takes one, before anything is touched."
    case .values:
      "Values round-trip exactly; a stored nil is not a missing key; changing what was passed in or handed out never "
        + "changes the store."
    case .missing:
      "Missing is nil, never an error; removing what is missing is fine; an error is never reported as missing."
    case .batches:
      "A batch is atomic for readers, crashes and errors, and its changes take effect in sequence."
    case .updates:
      "An update is atomic over its keys against every other writer; if its body throws, nothing changes and the error "
        + "passes through unchanged."
    case .scans:
      "Scans come in key order or reversed, each one consistent snapshot; an entry that is there throughout a walk over "
        + "pages appears exactly once."
    case .durability:
      "When a write returns, its effect outlives the store, as far as the store's acknowledgement says."
    case .isolation:
      "One entry that cannot be decoded throws an error naming its key, leaves every other entry readable, and is never "
        + "deleted for it."
    case .lifecycle:
      "Closing waits for running operations and may be repeated; every later operation throws `closed`."
    case .cancellation:
      "Cancellation before a write starts throws CancellationError and changes nothing; closing and synchronizing ignore "
        + "it."
    case .errors:
      "Errors are StoreError, CancellationError, or what the body of an update threw, and tell what was asked, of which "
        + "store, and whether anything changed; their description shows no key."
    case .badInput:
      "Bad input is refused with a clear error, and nothing is lost."
    }
  }
}

extension ConformancePromise: CustomStringConvertible {
  /// The number and the words.
  public var description: String { "\(rawValue). \(statement)" }
}
