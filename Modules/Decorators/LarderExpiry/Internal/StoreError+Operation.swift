import Larder

extension StoreError {
  /// The same error as one of what the caller has asked for, where the base was asked for something else.
  func during(_ operation: StoreOperation) -> StoreError {
    StoreError(
      code, during: operation, store: store, key: key, message: message, underlying: underlying,
      isRetryable: isRetryable, outcome: outcome)
  }
}

/// Runs operations of the base, and lets their errors name what the caller has asked for.
func reporting<Result>(_ operation: StoreOperation, _ body: () async throws -> Result) async throws -> Result {
  do {
    return try await body()
  } catch let error as StoreError {
    throw error.during(operation)
  }
}
