import Larder

/// Acknowledging, releasing and extending deliveries by their receipts.
extension QueueStore {
  /// Acknowledges a delivery and permanently removes its item.
  ///
  /// It ignores cancellation.
  ///
  /// - Parameter receipt: That of its delivery.
  /// - Throws: ``StoreError``: `staleReceipt`; `closed`; `full`; `ioFailed`.
  public func acknowledge(_ receipt: DeliveryReceipt) async throws {
    _ = try await change(.acknowledge) { core in
      try core.change { ledger, records throws(QueueRefusal) in try ledger.acknowledge(receipt, into: &records) }
      return true
    }
  }

  /// Acknowledges deliveries and permanently removes their items, in one commit.
  ///
  /// It ignores cancellation.
  ///
  /// - Parameter receipts: Those of their deliveries.
  /// - Returns: The receipts that are stale; the items of all others have gone.
  /// - Throws: ``StoreError``: `closed`; `full`; `ioFailed`.
  public func acknowledge(_ receipts: [DeliveryReceipt]) async throws -> [DeliveryReceipt] {
    try await change(.acknowledge) { core in
      core.staleReceipts(of: receipts) { receipt, ledger, records throws(QueueRefusal) in
        try ledger.acknowledge(receipt, into: &records)
      }
    }
  }

  /// Releases an item to be delivered again, at its old place in the order of arrival.
  ///
  /// An item that was delivered ``QueueConfiguration/maximumDeliveries`` times becomes a dead letter, unless the delivery
  /// does not count. It ignores cancellation.
  ///
  /// - Parameters:
  ///   - receipt: That of its delivery.
  ///   - delay: How long it is kept back; defaults to the delay of ``QueueConfiguration/retryPolicy``.
  ///   - countsAsAttempt: Whether the delivery counts; defaults to `true`. Where not, it is as if it had not been.
  /// - Throws: ``StoreError``: `staleReceipt`; `invalidArgument` if the delay is negative; `closed`; `full`; `ioFailed`.
  public func release(
    _ receipt: DeliveryReceipt, after delay: Duration? = nil, countsAsAttempt: Bool = true
  ) async throws {
    let length = try delay.map { try microseconds(ofDelay: $0, for: .release) }
    let wait = length ?? retrying.delay(afterAttempt: receipt.attempt)
    _ = try await change(.release) { core in
      try core.change { ledger, records throws(QueueRefusal) in
        try ledger.release(receipt, delay: wait, counts: countsAsAttempt, into: &records)
      }
      return true
    }
  }

  /// Releases items to be delivered again, in one commit; see ``release(_:after:countsAsAttempt:)-(DeliveryReceipt,_,_)``.
  ///
  /// - Parameters:
  ///   - receipts: Those of their deliveries.
  ///   - delay: How long they are kept back; defaults to the delay of ``QueueConfiguration/retryPolicy`` for each.
  ///   - countsAsAttempt: Whether the deliveries count; defaults to `true`.
  /// - Returns: The receipts that are stale; the items of all others are released.
  /// - Throws: ``StoreError``: `invalidArgument` if the delay is negative; `closed`; `full`; `ioFailed`.
  public func release(
    _ receipts: [DeliveryReceipt], after delay: Duration? = nil, countsAsAttempt: Bool = true
  ) async throws -> [DeliveryReceipt] {
    let length = try delay.map { try microseconds(ofDelay: $0, for: .release) }
    let retrying = retrying
    return try await change(.release) { core in
      core.staleReceipts(of: receipts) { receipt, ledger, records throws(QueueRefusal) in
        let wait = length ?? retrying.delay(afterAttempt: receipt.attempt)
        try ledger.release(receipt, delay: wait, counts: countsAsAttempt, into: &records)
      }
    }
  }

  /// Resets a lease so that it expires `lease` from now.
  ///
  /// It ignores cancellation.
  ///
  /// - Parameters:
  ///   - receipt: That of the delivery; it stays good.
  ///   - lease: How long from now on; more than nothing.
  /// - Throws: ``StoreError``: `staleReceipt`; `invalidArgument`; `closed`; `full`; `ioFailed`.
  public func extend(_ receipt: DeliveryReceipt, lease: Duration) async throws {
    let length = try microseconds(ofLease: lease, for: .extend)
    _ = try await change(.extend) { core in
      let present = core.present
      try core.change { ledger, records throws(QueueRefusal) in
        try ledger.extend(receipt, length: length, from: present, into: &records)
      }
      return true
    }
  }

  /// Resets leases so that they expire `lease` from now, in one commit; see ``extend(_:lease:)-(DeliveryReceipt,_)``.
  ///
  /// - Parameters:
  ///   - receipts: Those of the deliveries.
  ///   - lease: How long from now on; more than nothing.
  /// - Returns: The receipts that are stale; the leases of all others are extended.
  /// - Throws: ``StoreError``: `invalidArgument`; `closed`; `full`; `ioFailed`.
  public func extend(_ receipts: [DeliveryReceipt], lease: Duration) async throws -> [DeliveryReceipt] {
    let length = try microseconds(ofLease: lease, for: .extend)
    return try await change(.extend) { core in
      let present = core.present
      return core.staleReceipts(of: receipts) { receipt, ledger, records throws(QueueRefusal) in
        try ledger.extend(receipt, length: length, from: present, into: &records)
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
