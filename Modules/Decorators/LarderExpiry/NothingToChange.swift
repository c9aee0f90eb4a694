import Larder

/// An error that the body of an update throws to write nothing.
struct NothingToChange: Error {}

/// Runs operations of the base, whose errors then name the operation that the caller asked for.
func reporting<Result>(_ operation: StoreOperation, _ body: () async throws -> Result) async throws -> Result {
  do {
    return try await body()
  } catch var error as StoreError {
    error.operation = operation
    throw error
  }
}
