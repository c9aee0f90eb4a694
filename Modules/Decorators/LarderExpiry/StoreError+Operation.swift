import Larder

extension StoreError {
  /// Returns the same error, with the operation that the caller asked for in place of that of the base.
  func during(_ operation: StoreOperation) -> StoreError {
    StoreError(
      code, during: operation, store: store, key: key, message: message, underlying: underlying,
      isRetryable: isRetryable, outcome: outcome)
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
