/// What a caller's task carries, such as its trace, for work that another task does for it.
///
/// A store that traces hands out a way to capture it, ``StoreInformation/callerContext``. A decorator that does work for
/// several callers at once captures it in each caller's task, and does the work through ``run(for:_:)``.
package protocol CallerContext: Sendable {
  /// Runs work that serves several callers: in the context of the one caller, or in one that is linked to all of them.
  ///
  /// - Parameters:
  ///   - callers: The contexts of the callers that have one, this one included.
  ///   - count: The number of callers, also of those without a context.
  ///   - body: The work. It runs on the caller's actor.
  /// - Returns: The result of `body`.
  /// - Throws: The error of `body`.
  func run<Result>(
    for callers: [any CallerContext], among count: Int, _ body: () async throws -> Result
  ) async throws -> Result
}

/// Runs work that serves several callers in their contexts; see ``CallerContext``.
///
/// - Parameters:
///   - callers: The contexts of all callers, `nil` for one who has none. If nobody has one, the work runs in that of the
///     current task.
///   - body: The work. It runs on the caller's actor.
/// - Returns: The result of `body`.
/// - Throws: The error of `body`.
package func run<Result>(
  for callers: [(any CallerContext)?], _ body: () async throws -> Result
) async throws -> Result {
  let contexts = callers.compactMap(\.self)
  guard let first = contexts.first else { return try await body() }
  return try await first.run(for: contexts, among: callers.count, body)
}
