import Synchronization

/// The context of a caller's task, such as its trace, for work that another task does for the caller.
///
/// A module with tracing registers how a context is captured, with ``CallerContexts/register(_:)``. A decorator that does
/// work for several callers at the same time captures ``CallerContexts/current`` in each caller's task, and does the work
/// through ``CallerContexts/run(for:_:)``.
public protocol CallerContext: Sendable {
  /// Runs work for one or more callers, in the context of the only caller or in a context with links to all of them.
  ///
  /// - Parameters:
  ///   - callers: The contexts of the callers that have one of the same type, including this context.
  ///   - count: The number of callers, including those without a context.
  ///   - body: The work. It runs on the caller's actor.
  /// - Returns: The result of `body`.
  /// - Throws: The error of `body`.
  func run<Result>(
    for callers: [any CallerContext], among count: Int, _ body: () async throws -> Result
  ) async throws -> Result
}

/// The ways to capture a ``CallerContext``, for the whole process.
///
/// They belong to the process and not to a store, as the backends of tracing do: the decorator that does the work of
/// several callers does not know the one that traces it.
public enum CallerContexts {
  private static let sources = Locked<[@Sendable () -> (any CallerContext)?]>([])

  /// A Boolean value that indicates whether there are sources, so a program without tracing takes no lock.
  private static let areRegistered = Atomic(false)

  /// Adds a way to capture a context, for the rest of the process.
  ///
  /// Register it once, before the first operation that it concerns. If several are registered, each call has the context of
  /// the first that returns one.
  ///
  /// - Parameter source: A closure that returns the context of the current task, or `nil` if the task doesn't have one.
  public static func register(_ source: @escaping @Sendable () -> (any CallerContext)?) {
    sources.withLock { $0.append(source) }
    areRegistered.store(true, ordering: .releasing)
  }

  /// The context of the current task, or `nil` if it doesn't have one.
  ///
  /// ```swift
  /// let context = CallerContexts.current
  /// pending.append {
  ///   try await CallerContexts.run(for: [context]) { try await commit(batch) }
  /// }
  /// ```
  public static var current: (any CallerContext)? {
    guard areRegistered.load(ordering: .acquiring) else { return nil }
    return sources.withLock { $0 }.lazy.compactMap { $0() }.first
  }

  /// Runs work for one or more callers in their contexts; see ``CallerContext``.
  ///
  /// - Parameters:
  ///   - callers: The contexts of all callers, with `nil` for a caller without a context. If there is no context, the
  ///     work runs in that of the current task.
  ///   - body: The work. It runs on the caller's actor.
  /// - Returns: The result of `body`.
  /// - Throws: The error of `body`.
  public static func run<Result>(
    for callers: [(any CallerContext)?], _ body: () async throws -> Result
  ) async throws -> Result {
    let contexts = callers.compactMap(\.self)
    guard let first = contexts.first else { return try await body() }
    let ofSameType = contexts.filter { type(of: $0) == type(of: first) }
    return try await first.run(for: ofSameType, among: callers.count, body)
  }
}
