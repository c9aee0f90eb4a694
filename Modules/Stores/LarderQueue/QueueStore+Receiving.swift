public import Larder
import LarderFiles

/// Receiving items.
extension QueueStore {
  /// The most items that cannot be delivered in one call.
  private static var failureLimit: Int { 1000 }

  /// Leases and returns the first waiting items.
  ///
  /// This method does not wait for items; `deliveries(lease:)` and `withNext(lease:extending:_:)` do. The lease is
  /// written before an item is decoded, so an item that crashes the process counts as delivered. An item that cannot be
  /// decoded is released with the delay of ``QueueConfiguration/retryPolicy`` and becomes a dead letter after its last
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
  /// - Parameters:
  ///   - max: The maximum number of items, at least 1.
  ///   - lease: The duration of the leases, which must be greater than zero.
  /// - Returns: The items in order of arrival. The array is empty if no item is due, or if the disk is so full that the
  ///   remaining space is reserved for items that are already leased.
  /// - Throws: `StoreError` with `invalidArgument`; `closed`; `corrupted` or `undecodable` if no item can be decoded;
  ///   `keyUnavailable`, or another code of the codec, if the program lacks something to decode an item; `full` or
  ///   `ioFailed` if the leases could not be written, or if no item could be read. `CancellationError` if the task was
  ///   cancelled before the call began.
  public func receive(max: Int, lease: Duration) async throws -> [Delivery<Element>] {
    try information.check(lease: lease, for: .receive)
    try information.check(maximumDeliveries: max)
    let length = lease.microseconds
    return try await running(.receive) {
      var deliveries: [Delivery<Element>] = []
      var failures: [FailedDelivery] = []
      while deliveries.count < max, failures.count < QueueStore.failureLimit {
        let wanted = max - deliveries.count
        let mayBeSuspect = deliveries.isEmpty
        let hasAny = !deliveries.isEmpty || !failures.isEmpty
        let leased: [LeasedItem]
        let readings: [Result<Delivery<Element>, FailedDelivery>]
        do {
          // If the task is cancelled now, the items that are already leased are still returned.
          let part = try await engine.perform(.receive, .writes, ignoresCancellation: hasAny) {
            [deferred = decodingRecord.deferred] core in
            try core.lease(
              wanted, length: length, mayBeSuspect: mayBeSuspect, deferring: deferred, mayBeDeferred: !hasAny)
          }
          if part.items.isEmpty, part.hasMore { continue }
          guard !part.items.isEmpty else { break }
          leased = part.items
          readings = try await read(leased)
        } catch  where !deliveries.isEmpty {
          // The next call reports the error.
          break
        }
        for reading in readings {
          switch reading {
          case .success(let delivery): deliveries.append(delivery)
          case .failure(let failure): failures.append(failure)
          }
        }
        if let failure = failures.first(where: { $0.reason == .deferred }) {
          _ = try await release(
            deliveries.map(\.receipt) + failures.map(\.receipt), after: .zero, countsAsAttempt: false)
          throw failure.error
        }
        let hasDecoded = decodingRecord.hasDecoded
        let refusedCount = failures.count { $0.reason == .refused || $0.reason == .undecodable && !hasDecoded }
        if refusedCount >= DecodingRecord<UInt64>.failureLimit { break }
        // After a failure, fewer items than wanted are no reason to stop.
        if leased.count < wanted, failures.isEmpty { break }
      }
      let refusals = try await withdraw(failures, lease: length)
      if let first = refusals.first, deliveries.isEmpty { throw first.error }
      return deliveries
    }
  }

  /// Reads and decodes leased items.
  ///
  /// - Throws: ``StoreError`` if no item can be read, for a reason that concerns none of them. The items are released.
  @concurrent
  private func read(_ leased: [LeasedItem]) async throws -> [Result<Delivery<Element>, FailedDelivery>] {
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
        let reading = coder.reading(of: one, payload)
        switch reading {
        case .success: decodingRecord.noteSuccess(of: one.item.sequence)
        case .failure(let failure) where failure.reason == .deferred:
          decodingRecord.noteDeferral(of: one.item.sequence)
        case .failure: break
        }
        return reading
      }
    } catch {
      _ = try await release(leased.map(\.receipt), after: .zero, countsAsAttempt: false)
      throw error
    }
  }

  /// Ends the leases of items that cannot be delivered, and ignores stale receipts.
  ///
  /// - Returns: The failures that concern the program or the disk, not the items.
  @discardableResult
  private func withdraw(_ failures: [FailedDelivery], lease: Int64) async throws -> [FailedDelivery] {
    guard !failures.isEmpty else { return [] }
    let (retrying, hasDecoded) = (retrying, decodingRecord.hasDecoded)
    let failures = failures.map { failure in
      var (failure, delay) = (failure, lease)
      if failure.reason == .undecodable {
        delay = retrying.delay(afterAttempt: failure.receipt.attempt)
        if !hasDecoded {
          failure.reason = .refused
          // Even if the retry policy has no delay, or the item would block other items.
          delay = max(delay, min(lease, 1_000_000))
        }
      }
      return (failure, delay)
    }
    try await change(.receive) { core in
      for (failure, delay) in failures {
        _ = core.staleReceipts(of: [failure.receipt]) { receipt, core throws(QueueRefusal) in
          try core.ledger.reject(receipt, failure.reason, delay: delay, into: &core.frames)
        }
      }
    }
    return failures.map(\.0).filter { $0.reason == .refused || $0.reason == .unreadable }
  }

  /// Waits for an item and leases it; see `DurableQueue`.
  ///
  /// It waits without polling.
  ///
  /// - Parameter lease: The duration of the lease, which must be greater than zero.
  /// - Returns: The item, or the error of an item that cannot be read or decoded.
  /// - Throws: `StoreError` with `invalidArgument`; `corrupted` or `undecodable` if three items could not be decoded and
  ///   none has been decoded since the queue was opened; `keyUnavailable`, or another code of the codec, if the program
  ///   lacks something to decode an item; `full` or `ioFailed` if the lease could not be written; `closed`.
  ///   `CancellationError` if the task is cancelled while it waits.
  public func nextDelivery(lease: Duration) async throws -> Result<Delivery<Element>, StoreError> {
    try information.check(lease: lease, for: .receive)
    let length = lease.microseconds
    return try await running(.receive) {
      while true {
        let leased = try await engine.perform(.receive, .writes) { [deferred = decodingRecord.deferred] core in
          let part = try core.lease(1, length: length, deferring: deferred)
          if part.items.isEmpty, !part.hasMore { throw QueueRefusal.noItems }
          return part.items
        }
        guard let reading = try await read(leased).first else { continue }
        switch reading {
        case .success(let delivery): return .success(delivery)
        case .failure(let failure) where failure.reason == .deferred:
          _ = try await release([failure.receipt], after: .zero, countsAsAttempt: false)
          throw failure.error
        case .failure(let failure):
          let mustStop = failure.reason == .undecodable && decodingRecord.noteFailure()
          try await withdraw([failure], lease: length)
          if mustStop { throw failure.error }
          return .failure(failure.error)
        }
      }
    }
  }
}
