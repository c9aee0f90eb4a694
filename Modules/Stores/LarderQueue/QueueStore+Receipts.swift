import Larder

/// Acknowledging, releasing and extending deliveries.
extension QueueStore {
  /// Acknowledges a delivery and permanently removes its item.
  ///
  /// Acknowledging ignores cancellation.
  ///
  /// - Parameter receipt: The receipt of the delivery.
  /// - Throws: `StoreError` with `staleReceipt`, `closed`, `full` or `ioFailed`.
  public func acknowledge(_ receipt: DeliveryReceipt) async throws {
    try await change(.acknowledge) { core in
      try core.ledger.acknowledge(receipt, into: &core.frames)
    }
  }

  /// Acknowledges deliveries and permanently removes their items, in one commit.
  ///
  /// Acknowledging ignores cancellation.
  ///
  /// - Parameter receipts: The receipts of the deliveries.
  /// - Returns: The receipts that are stale. The items of all other receipts are removed.
  /// - Throws: `StoreError` with `closed`, `full` or `ioFailed`.
  public func acknowledge(_ receipts: [DeliveryReceipt]) async throws -> [DeliveryReceipt] {
    try await change(.acknowledge) { core in
      core.staleReceipts(of: receipts) { receipt, core throws(QueueRefusal) in
        try core.ledger.acknowledge(receipt, into: &core.frames)
      }
    }
  }

  /// Releases an item for another delivery, at its old position in the order of arrival.
  ///
  /// If the delivery counts, an item that was delivered ``QueueConfiguration/maximumDeliveries`` times becomes a dead
  /// letter. Releasing ignores cancellation.
  ///
  /// - Parameters:
  ///   - receipt: The receipt of the delivery.
  ///   - delay: The delay until the item can be received again; defaults to the delay of
  ///     ``QueueConfiguration/retryPolicy``.
  ///   - countsAsAttempt: Whether the delivery counts; defaults to `true`. If it does not, the number of attempts is as
  ///     it was before.
  /// - Throws: `StoreError` with `staleReceipt`; `invalidArgument` if the delay is negative; `closed`; `full`;
  ///   `ioFailed`.
  public func release(
    _ receipt: DeliveryReceipt, after delay: Duration? = nil, countsAsAttempt: Bool = true
  ) async throws {
    let length = try delay.map { try microseconds(ofDelay: $0, for: .release) }
    let wait = length ?? retrying.delay(afterAttempt: receipt.attempt)
    try await change(.release) { core in
      try core.ledger.release(receipt, delay: wait, counts: countsAsAttempt, into: &core.frames)
    }
  }

  /// Releases items for another delivery, in one commit; see
  /// ``release(_:after:countsAsAttempt:)-(DeliveryReceipt,_,_)``.
  ///
  /// - Parameters:
  ///   - receipts: The receipts of the deliveries.
  ///   - delay: The delay until the items can be received again; defaults to the delay of
  ///     ``QueueConfiguration/retryPolicy`` for each.
  ///   - countsAsAttempt: Whether the deliveries count; defaults to `true`.
  /// - Returns: The receipts that are stale. The items of all other receipts are released.
  /// - Throws: `StoreError` with `invalidArgument` if the delay is negative; `closed`; `full`; `ioFailed`.
  public func release(
    _ receipts: [DeliveryReceipt], after delay: Duration? = nil, countsAsAttempt: Bool = true
  ) async throws -> [DeliveryReceipt] {
    let length = try delay.map { try microseconds(ofDelay: $0, for: .release) }
    let retrying = retrying
    return try await change(.release) { core in
      core.staleReceipts(of: receipts) { receipt, core throws(QueueRefusal) in
        let wait = length ?? retrying.delay(afterAttempt: receipt.attempt)
        try core.ledger.release(receipt, delay: wait, counts: countsAsAttempt, into: &core.frames)
      }
    }
  }

  /// Resets a lease so that it expires `lease` from now.
  ///
  /// Extending ignores cancellation.
  ///
  /// - Parameters:
  ///   - receipt: The receipt of the delivery, which stays valid.
  ///   - lease: The new duration of the lease from now, which must be greater than zero.
  /// - Throws: `StoreError` with `staleReceipt`, `invalidArgument`, `closed`, `full` or `ioFailed`.
  public func extend(_ receipt: DeliveryReceipt, lease: Duration) async throws {
    let length = try microseconds(ofLease: lease, for: .extend)
    try await change(.extend) { core in
      try core.ledger.extend(receipt, length: length, from: core.present, into: &core.frames)
    }
  }

  /// Resets leases so that they expire `lease` from now, in one commit; see ``extend(_:lease:)-(DeliveryReceipt,_)``.
  ///
  /// - Parameters:
  ///   - receipts: The receipts of the deliveries.
  ///   - lease: The new duration of the leases from now, which must be greater than zero.
  /// - Returns: The receipts that are stale. The leases of all other receipts are extended.
  /// - Throws: `StoreError` with `invalidArgument`, `closed`, `full` or `ioFailed`.
  public func extend(_ receipts: [DeliveryReceipt], lease: Duration) async throws -> [DeliveryReceipt] {
    let length = try microseconds(ofLease: lease, for: .extend)
    return try await change(.extend) { core in
      core.staleReceipts(of: receipts) { receipt, core throws(QueueRefusal) in
        try core.ledger.extend(receipt, length: length, from: core.present, into: &core.frames)
      }
    }
  }

  func change<Result: Sendable>(
    _ operation: StoreOperation, _ body: @escaping @Sendable (inout QueueCore) throws -> Result
  ) async throws -> Result {
    try await running(operation) {
      try await engine.perform(operation, .writes, ignoresCancellation: true) { try body(&$0) }
    }
  }
}
