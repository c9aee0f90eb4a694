/// A destination for batches of events.
protocol Endpoint: Sendable {
  /// Sends a batch and returns when it has been accepted.
  ///
  /// - Throws: Any error. The batch may have been accepted all the same.
  func send(_ batch: EventBatch) async throws
}
