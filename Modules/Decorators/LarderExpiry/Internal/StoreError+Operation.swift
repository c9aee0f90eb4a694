import Larder

extension StoreError {
  /// The same error as one of what the caller has asked for, where the base was asked for something else.
  func during(_ operation: StoreOperation) -> StoreError {
    StoreError(
      code, during: operation, store: store, key: key, message: message, underlying: underlying,
      isRetryable: isRetryable, outcome: outcome)
  }
}

extension StoreError {
  /// The keys that cannot be read because of damage; `nil` if the error is another one or does not say.
  var lostKeys: KeyRange? {
    guard code == .corrupted else { return nil }
    return (underlying as? any UnreadableKeysError)?.keys ?? key.map { .only($0) }
  }
}

extension KeyRange {
  /// The part of the range before some keys that lie in it or begin before it; `nil` if nothing is known to be left out.
  func part(before lost: KeyRange) -> KeyRange? {
    let part = before(lost.lowerBound)
    return part == self ? nil : part
  }

  /// The part of the range behind some keys; `nil` if nothing is known to be left out.
  func part(after lost: KeyRange) -> KeyRange? {
    guard let start = lost.upperBound else { return KeyRange(from: lowerBound, upTo: lowerBound) }
    return start > lowerBound ? KeyRange(from: start, upTo: upperBound) : nil
  }
}

/// What the body of an update throws once it has seen that there is nothing to write, so that nothing is written.
struct NothingToChange: Error {}

/// Runs operations of the base, and lets their errors name what the caller has asked for.
func reporting<Result>(_ operation: StoreOperation, _ body: () async throws -> Result) async throws -> Result {
  do {
    return try await body()
  } catch let error as StoreError {
    throw error.during(operation)
  }
}
