/// Runs an operation in a task that is cancelled already.
func inCancelledTask<Result: Sendable>(
  _ operation: @escaping @Sendable () async throws -> Result
) async throws -> Result {
  try await Task {
    withUnsafeCurrentTask { $0?.cancel() }
    return try await operation()
  }.value
}
