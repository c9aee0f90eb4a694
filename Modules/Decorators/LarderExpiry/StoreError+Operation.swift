import Larder

extension StoreError {
  /// Returns the same error, with the operation that the caller asked for in place of that of the base.
  func during(_ operation: StoreOperation) -> StoreError {
    StoreError(
      code, during: operation, store: store, key: key, message: message, underlying: underlying,
      isRetryable: isRetryable, outcome: outcome)
  }
}

extension StoreError {
  /// The keys that cannot be read because of damage, or `nil` if this is another error or does not name them.
  var lostKeys: KeyRange? {
    guard concernsStoredValue else { return nil }
    return (underlying as? any UnreadableKeysError)?.keys ?? key.map { .only($0) }
  }
}

extension KeyRange {
  /// Returns the part of the range before some keys, or `nil` if that would exclude nothing.
  func part(before lost: KeyRange) -> KeyRange? {
    let part = before(lost.lowerBound)
    return part == self ? nil : part
  }

  /// Returns the part of the range after some keys, or `nil` if that would exclude nothing.
  func part(after lost: KeyRange) -> KeyRange? {
    guard let start = lost.upperBound else { return KeyRange(from: lowerBound, upTo: lowerBound) }
    return start > lowerBound ? KeyRange(from: start, upTo: upperBound) : nil
  }
}

/// An error that the body of an update throws to write nothing.
struct NothingToChange: Error {}

/// Runs operations of the base, whose errors then name the operation that the caller asked for.
func reporting<Result>(_ operation: StoreOperation, _ body: () async throws -> Result) async throws -> Result {
  do {
    return try await body()
  } catch let error as StoreError {
    throw error.during(operation)
  }
}
