/// Runs a closure in a task of its own, on the caller's actor, so that something other than the caller can cancel it.
///
/// A layer that grants a right for a time, such as a lease or a lock, runs the work of its user so, and cancels it when the
/// right is lost:
///
/// ```swift
/// try await withCancellableTask({ try await importUsers() }) { cancel in
///   leases.onLoss(cancel)
/// }
/// ```
///
/// The function returns when the closure has ended, also after a cancellation.
///
/// - Parameters:
///   - body: The closure.
///   - isolation: The actor that the closure runs on. Defaults to your actor.
///   - onCancel: A closure that is called if the caller is cancelled, beside the cancellation of `body`. Defaults to one
///     that does nothing.
///   - onStart: A closure that receives the closure that cancels `body`. It may be called any number of times.
/// - Returns: The result of `body`.
/// - Throws: The error of `body`.
public func withCancellableTask<Result>(
  _ body: () async throws -> Result, isolation: isolated (any Actor)? = #isolation,
  onCancel: @Sendable () -> Void = {}, onStart: (_ cancel: @escaping @Sendable () -> Void) -> Void
) async throws -> Result {
  try await withoutActuallyEscaping(body) { body in
    let work = Handover(body)
    let task = Task {
      _ = isolation
      return Handover(try await work.value())
    }
    onStart { task.cancel() }
    return try await withTaskCancellationHandler {
      try await task.value.value
    } onCancel: {
      task.cancel()
      onCancel()
    }
  }
}

/// A value that one task hands over to another one and does not use before that one has ended.
///
/// Proof for @unchecked: ``withCancellableTask(_:isolation:onCancel:onStart:)`` waits for the task, on the actor that the
/// closure runs on.
private struct Handover<Value>: @unchecked Sendable {
  let value: Value

  init(_ value: Value) {
    self.value = value
  }
}
