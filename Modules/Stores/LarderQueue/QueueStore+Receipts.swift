import Larder

/// What the receipt of a delivery is good for.
extension QueueStore {
  /// Lets an item go for good.
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

  /// Lets items go for good, in one commit.
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

  /// Lets an item be delivered again, at its old place in the order of arrival.
  ///
  /// An item that was delivered ``QueueConfiguration/maximumDeliveries`` times becomes a dead letter, unless the delivery
  /// does not count. It ignores cancellation.
  ///
  /// - Parameters:
  ///   - receipt: That of its delivery.
  ///   - delay: How long it is kept back; as ``QueueConfiguration/retryPolicy`` says unless given, and not at all for zero.
  ///   - countsAsAttempt: Whether the delivery counts; `true` unless said. Where not, it is as if it had not been.
  /// - Throws: ``StoreError``: `staleReceipt`; `invalidArgument` where the delay is negative; `closed`; `full`; `ioFailed`.
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

  /// Lets items be delivered again, in one commit; see ``release(_:after:countsAsAttempt:)-(DeliveryReceipt,_,_)``.
  ///
  /// - Parameters:
  ///   - receipts: Those of their deliveries.
  ///   - delay: How long they are kept back; each as ``QueueConfiguration/retryPolicy`` says unless given.
  ///   - countsAsAttempt: Whether the deliveries count; `true` unless said.
  /// - Returns: The receipts that are stale; the items of all others are released.
  /// - Throws: ``StoreError``: `invalidArgument` where the delay is negative; `closed`; `full`; `ioFailed`.
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

  /// Lets a lease end so much after now, whenever it would have ended.
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

  /// Lets leases end so much after now, in one commit; see ``extend(_:lease:)-(DeliveryReceipt,_)``.
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
