/// Where batches of events are sent.
protocol Endpoint: Sendable {
  /// Sends a batch, and returns when it has been taken.
  ///
  /// - Throws: Whatever stands in the way; the batch may have been taken all the same.
  func send(_ batch: EventBatch) async throws
}
