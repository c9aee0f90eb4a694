/// A promise that every store and decorator keeps, as listed by `DataStore`.
public enum ConformancePromise: Int, Sendable, Hashable, CaseIterable {
  /// Keys are byte strings.
  case keys = 1
  /// Values round-trip.
  case values
  /// A missing key reads as `nil`, and an error is never reported as missing.
  case missing
  /// Batches are atomic and in sequence.
  case batches
  /// Updates are atomic.
  case updates
  /// Scans are ordered and consistent.
  case scans
  /// Acknowledged writes are kept.
  case durability
  /// Damage to one entry does not affect other entries.
  case isolation
  /// Closing waits for running operations and is final.
  case lifecycle
  /// A cancelled write does not start.
  case cancellation
  /// Errors describe the failure.
  case errors
  /// Bad input is refused.
  case badInput

  /// The full text of the promise.
  public var statement: String {
    switch self {
    case .keys:
      "Keys are byte strings of 1 to 511 bytes, compared and ordered byte by byte. Every operation that takes a key "
        + "refuses any other key before it changes anything."
    case .values:
      "Values round-trip exactly. A stored nil is not a missing key. Mutating a value that was passed in or returned "
        + "never changes the store."
    case .missing:
      "A missing key reads as nil, never as an error. Removing a missing key succeeds. An error is never reported as "
        + "missing."
    case .batches:
      "A batch is atomic for readers, crashes and errors. Its changes take effect in sequence."
    case .updates:
      "An update is atomic over its keys against every other writer. If its body throws, nothing changes and the error "
        + "passes through unchanged."
    case .scans:
      "Scans are in key order or reversed, and each is one consistent snapshot. In a walk over pages, an entry that "
        + "exists throughout appears exactly once."
    case .durability:
      "When a write returns, its effect outlives the store, to the extent that the store's durability states."
    case .isolation:
      "An entry that cannot be decoded throws an error that names its key. Every other entry stays readable, and the "
        + "damaged entry is never deleted because of the damage."
    case .lifecycle:
      "Closing waits for running operations and may be repeated. Every later operation throws `closed`."
    case .cancellation:
      "Cancellation before a write starts throws CancellationError and changes nothing. Closing and synchronizing "
        + "ignore cancellation."
    case .errors:
      "Errors are StoreError, CancellationError, or the error of an update's body. A StoreError states the operation, "
        + "the store, and whether anything changed. Its description shows no key."
    case .badInput:
      "Bad input is refused with a clear error, and nothing is lost."
    }
  }
}

extension ConformancePromise: CustomStringConvertible {
  /// The number and the text of the promise.
  public var description: String { "\(rawValue). \(statement)" }
}
