public import Larder

/// Receiving items.
extension QueueStore {
  /// Leases and returns the first waiting items.
  ///
  /// This method does not wait for items; `deliveries(lease:)` and `withNext(lease:renewsLease:_:)` do. The lease is
  /// written before an item is decoded, so an item that crashes the process counts as delivered. An item that cannot be
  /// decoded is released with the delay of `QueuePolicy.retryPolicy` and becomes a dead letter after its last
  /// delivery. An item that may have crashed the process before is returned alone, even if other items wait.
  ///
  /// A program that lacks something to decode an item, such as a key or a compression dictionary, makes no dead
  /// letters. The method throws the error of the codec, for example `keyUnavailable`. It releases all items of the call
  /// immediately, as if they had not been delivered. The next calls return other items first, as long as the queue is
  /// open, and try such an item again when no other is due. If all items need a missing key, each call throws, so wait
  /// between two attempts.
  ///
  /// If no item has been decoded since the queue was opened, items that cannot be decoded may have another type. They make
  /// no dead letters either, and wait for the delay of the retry policy, at least one second. The error is thrown if no
  /// other item is due, or if three such items come first.
  ///
  /// ```swift
  /// for delivery in try await queue.receive(max: 100, lease: .seconds(30)) {
  ///   try await send(delivery.value)
  ///   try await queue.acknowledge(delivery.receipt)
  /// }
  /// ```
  ///
  /// - Parameters:
  ///   - max: The maximum number of items, at least 1.
  ///   - lease: The duration of the leases. It must be greater than zero.
  /// - Returns: The items in order of arrival. The array is empty if no item is due, or if the disk is so full that the
  ///   remaining space is reserved for items that are already leased.
  /// - Throws: `StoreError` with `invalidArgument`; `closed`; `corrupted` or `undecodable` if no item can be decoded;
  ///   `keyUnavailable`, or another code of the codec, if your program lacks something to decode an item; `full` or
  ///   `ioFailed` if the leases could not be written, or if no item could be read. `CancellationError` if the task was
  ///   cancelled before the call began.
  public func receive(max: Int, lease: Duration) async throws -> [QueueDelivery<Element>] {
    try information.check(lease: lease, for: .receive)
    try information.check(maximumDeliveries: max)
    return try await running(.receive) { try await loop.receiveDue(max, lease) }
  }

  /// Leases and reads some items; see `ReceiveLoop`.
  private func leaseFirst(
    _ wanted: Int, _ lease: Duration, mayBeSuspect: Bool, isFirst: Bool
  ) async throws -> LeasedDeliveries<Element> {
    let length = lease.wholeMicroseconds
    // If the task is cancelled after the first lease, the items that are already leased are still returned.
    let part = try await engine.perform(.receive, .writes, ignoresCancellation: !isFirst) {
      [deferred = deferredSequences] core in
      try core.lease(wanted, length: length, mayBeSuspect: mayBeSuspect, deferring: deferred, mayBeDeferred: isFirst)
    }
    return LeasedDeliveries(
      readings: part.items.isEmpty ? [] : try await read(part.items),
      hasMore: part.hasMore || part.items.count == wanted)
  }

  private var deferredSequences: Set<UInt64> { Set(decodingRecord.deferred.map { UInt64(truncatingIfNeeded: $0) }) }

  /// Reads and decodes leased items.
  ///
  /// - Throws: ``StoreError`` if no item can be read, for a reason that does not concern the items. The items are released. If
  ///   that fails too, the outcome of the error is unknown, because the leases may hide the items until they end.
  @concurrent
  private func read(_ leased: [LeasedItem]) async throws -> [Result<QueueDelivery<Element>, FailedDelivery>] {
    do {
      return try await engine.payloads(
        .receive, of: leased, \.item,
        finding: { core in
          // Items that were replaced or removed in the meantime are not delivered.
          leased.compactMap { leased in
            (try? core.ledger.leasedItem(of: leased.receipt)).map {
              LeasedItem(item: $0, receipt: leased.receipt, isSuspect: leased.isSuspect)
            }
          }
        }
      ).map { one, payload in
        coder.reading(of: one, payload)
      }
    } catch {
      let failure = error
      do {
        _ = try await releaseLeases(leased.map(\.receipt), after: .zero, countsAsAttempt: false)
      } catch {
        guard var failure = failure as? StoreError else { throw failure }
        failure.outcome = .unknown
        throw failure
      }
      throw failure
    }
  }

  /// Ends the leases of items that cannot be delivered; see `ReceiveLoop`.
  private func endLeases(_ failures: [FailedDelivery]) async throws {
    try await engine.perform(.receive, .writes, ignoresCancellation: true) { core in
      for failure in failures {
        _ = core.staleReceipts(of: [failure.receipt]) { receipt, core throws(QueueRefusal) in
          try core.ledger.reject(receipt, failure.reason, delay: failure.delay.wholeMicroseconds, into: &core.frames)
        }
      }
    }
  }

  /// Waits for an item and leases it; see `DurableQueue`.
  ///
  /// It waits without polling.
  ///
  /// - Parameter lease: The duration of the lease. It must be greater than zero.
  /// - Returns: The item, or the error of an item that cannot be read or decoded.
  /// - Throws: `StoreError` with `invalidArgument`; `corrupted` or `undecodable` if three items could not be decoded and
  ///   none has been decoded since the queue was opened; `keyUnavailable`, or another code of the codec, if the program
  ///   lacks something to decode an item; `full` or `ioFailed` if the lease could not be written; `closed`.
  ///   `CancellationError` if the task is cancelled while it waits.
  public func nextDelivery(lease: Duration) async throws -> Result<QueueDelivery<Element>, StoreError> {
    try information.check(lease: lease, for: .receive)
    let length = lease.wholeMicroseconds
    return try await running(.receive) {
      while true {
        let leased = try await engine.perform(.receive, .writes) { [deferred = deferredSequences] core in
          let part = try core.lease(1, length: length, deferring: deferred)
          if part.items.isEmpty, !part.hasMore { throw QueueRefusal.noItems }
          return part.items
        }
        if let reading = try await read(leased).first {
          return try await loop.result(of: reading, lease)
        }
      }
    }
  }

  private var loop: ReceiveLoop<Element> {
    ReceiveLoop(
      decodingRecord: decodingRecord, retrying: retrying, lease: leaseFirst, release: releaseLeases,
      endLeases: endLeases)
  }
}
