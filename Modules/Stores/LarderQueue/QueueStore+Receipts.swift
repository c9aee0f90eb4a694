public import Larder

/// Acknowledging, releasing and extending deliveries.
extension QueueStore {
  /// Acknowledges deliveries and permanently removes their items, in one commit.
  ///
  /// Acknowledging ignores cancellation.
  ///
  /// ```swift
  /// let deliveries = try await outbox.receive(max: 100, lease: .seconds(60))
  /// try await sendAll(deliveries.map(\.value))
  /// let stale = try await outbox.acknowledge(deliveries.map(\.receipt))
  /// print("will be delivered again:", stale.count)
  /// ```
  ///
  /// - Parameter receipts: The receipts of the deliveries.
  /// - Returns: The receipts that are stale. The items of all other receipts are removed.
  /// - Throws: `StoreError` with `closed`, `full` or `ioFailed`.
  public func acknowledge(_ receipts: [DeliveryReceipt]) async throws -> [DeliveryReceipt] {
    try await perform(.acknowledge, .writes, ignoresCancellation: true) { core in
      core.staleReceipts(of: receipts) { receipt, core throws(QueueRefusal) in
        try core.ledger.acknowledge(receipt, into: &core.frames)
      }
    }
  }

  /// Releases items for another delivery, at their old positions in the order of arrival, in one commit.
  ///
  /// If the deliveries count, an item that was delivered `QueuePolicy.maximumDeliveries` times becomes a dead
  /// letter. If they don't, the numbers of attempts are as they were before. Releasing ignores cancellation.
  ///
  /// ```swift
  /// let failed = try await sendEach(deliveries)
  /// try await queue.release(failed.map(\.receipt), after: .seconds(60), countsAsAttempt: true)
  /// ```
  ///
  /// - Parameters:
  ///   - receipts: The receipts of the deliveries.
  ///   - delay: The delay until the items can be received again, or `nil` for the delay of
  ///     `QueuePolicy.retryPolicy` for each.
  ///   - countsAsAttempt: A Boolean value that indicates whether the deliveries count.
  /// - Returns: The receipts that are stale. The items of all other receipts are released.
  /// - Throws: `StoreError` with `invalidArgument` if the delay is negative; `closed`; `full`; `ioFailed`.
  public func release(
    _ receipts: [DeliveryReceipt], after delay: Duration?, countsAsAttempt: Bool
  ) async throws -> [DeliveryReceipt] {
    if let delay { try information.check(delay: delay, for: .release) }
    return try await running(.release) {
      try await releaseLeases(receipts, after: delay, countsAsAttempt: countsAsAttempt)
    }
  }

  /// Releases items, also for an operation that is running while the queue closes.
  func releaseLeases(
    _ receipts: [DeliveryReceipt], after delay: Duration?, countsAsAttempt: Bool
  ) async throws -> [DeliveryReceipt] {
    let retrying = retrying
    return try await engine.perform(.release, .writes, ignoresCancellation: true) { core in
      core.staleReceipts(of: receipts) { receipt, core throws(QueueRefusal) in
        let wait = delay ?? retrying.delay(afterAttempt: receipt.attempt)
        try core.ledger.release(receipt, delay: wait.wholeMicroseconds, counts: countsAsAttempt, into: &core.frames)
      }
    }
  }

  /// Resets leases so that they expire `lease` from now, in one commit.
  ///
  /// Extending ignores cancellation.
  ///
  /// ```swift
  /// let lost = try await queue.extend(deliveries.map(\.receipt), lease: .seconds(60))
  /// ```
  ///
  /// - Parameters:
  ///   - receipts: The receipts of the deliveries.
  ///   - lease: The new duration of the leases from now. It must be greater than zero.
  /// - Returns: The receipts that are stale. The leases of all other receipts are extended.
  /// - Throws: `StoreError` with `invalidArgument`, `closed`, `full` or `ioFailed`.
  public func extend(_ receipts: [DeliveryReceipt], lease: Duration) async throws -> [DeliveryReceipt] {
    try information.check(lease: lease, for: .extend)
    let length = lease.wholeMicroseconds
    return try await perform(.extend, .writes, ignoresCancellation: true) { core in
      core.staleReceipts(of: receipts) { receipt, core throws(QueueRefusal) in
        try core.ledger.extend(receipt, length: length, from: core.present, into: &core.frames)
      }
    }
  }
}
