/// Starts work that belongs to no caller: on this thread at once, where the system can, until it first waits.
///
/// - Parameter work: The work; it is never cancelled.
func startImmediately(_ work: @escaping @Sendable () async -> Void) {
  if #available(macOS 26, iOS 26, tvOS 26, watchOS 26, visionOS 26, *) {
    Task.immediateDetached(priority: Task.currentPriority) { await work() }
  } else {
    Task.detached(priority: Task.currentPriority) { await work() }
  }
}
