public import Larder

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Receiving items.
extension StoreQueue {
  /// The most items that one commit leases, and the most that cannot be delivered in one call.
  private static var leaseLimit: Int { 1000 }

  /// A leased item that cannot be delivered.
  private struct FailedDelivery: Error {
    enum Reason {
      /// The item is damaged.
      case damaged
      /// The item could not be read, but may be readable later.
      case unreadable
      /// The item cannot be decoded.
      case undecodable
      /// The item cannot be decoded, but none could be, so that the program may be wrong.
      case refused
      /// The program lacks something to decode the item.
      case deferred
    }

    let receipt: DeliveryReceipt
    var reason: Reason
    let error: StoreError
  }

  /// Leases and returns the first items that are due, without waiting for any; see `DurableQueue`.
  ///
  /// An item that may have crashed a process before is returned alone, even if other items wait.
  ///
  /// If the program lacks something to decode an item, the method releases all items of the call as if they had not been
  /// delivered, and throws the error of the codec. The next calls return other items first, as long as the queue is open.
  /// If no item has been decoded since the queue was opened, items that cannot be decoded may have another type. They
  /// make no dead letters, and wait for the delay of the retry policy, at least one second.
  ///
  /// - Parameters:
  ///   - max: The maximum number of items, at least 1.
  ///   - lease: The duration of the leases, which must be greater than zero.
  /// - Returns: The items in the order of delivery, or none if no item is due.
  /// - Throws: `StoreError` with `invalidArgument`; `notPermitted`; `closed`; `corrupted`, `undecodable` or another code
  ///   of the codec if no item can be decoded; the errors of the base if the leases could not be written.
  ///   `CancellationError` if the task was cancelled before an item was leased.
  public func receive(max: Int, lease: Duration) async throws -> [Delivery<Element>] {
    try information.checkWritable(for: .receive)
    try information.check(lease: lease, for: .receive)
    try information.check(maximumDeliveries: max)
    return try await running(.receive) {
      var deliveries: [Delivery<Element>] = []
      var failures: [FailedDelivery] = []
      while deliveries.count < max, failures.count < Self.leaseLimit {
        let wanted = min(max - deliveries.count, Self.leaseLimit)
        let (readings, isAlone): ([Result<Delivery<Element>, FailedDelivery>], Bool)
        do {
          (readings, isAlone) = try await receive(
            wanted, lease, mayBeSuspect: deliveries.isEmpty, mayBeDeferred: deliveries.isEmpty && failures.isEmpty)
        } catch  where !deliveries.isEmpty {
          // The next call reports the error.
          break
        } catch {
          try await withdraw(failures, lease: lease)
          throw error
        }
        if readings.isEmpty, !isAlone { break }
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
        let refusedCount = failures.count { $0.reason == .undecodable && !hasDecoded }
        if refusedCount >= DecodingRecord<UInt128>.failureLimit || isAlone && !deliveries.isEmpty { break }
      }
      let refusals = try await withdraw(failures, lease: lease)
      if let first = refusals.first, deliveries.isEmpty { throw first.error }
      return deliveries
    }
  }

  /// Waits until an item is due, and leases it; see `DurableQueue`.
  public func nextDelivery(lease: Duration) async throws -> Result<Delivery<Element>, StoreError> {
    try information.checkWritable(for: .receive)
    try information.check(lease: lease, for: .receive)
    return try await running(.receive) {
      while true {
        let number = waits.enter()
        let reading: Result<Delivery<Element>, FailedDelivery>?
        do {
          try Task.checkCancellation()
          reading = try await receive(1, lease, mayBeSuspect: true, mayBeDeferred: true).readings.first
        } catch {
          waits.leave(number)
          throw error
        }
        if running.isClosing, reading == nil {
          waits.leave(number)
          throw information.closedError(for: .receive)
        }
        guard let reading else {
          let time: Duration?
          do {
            time = try await waitingTime()
          } catch {
            // Otherwise a later signal would be for this consumer.
            waits.leave(number)
            throw error
          }
          try await waits.wait(number, atMost: time, clock: clock)
          continue
        }
        waits.leave(number)
        // There may be more items than signals.
        waits.signal()
        switch reading {
        case .success(let delivery): return .success(delivery)
        case .failure(let failure) where failure.reason == .deferred:
          _ = try await release([failure.receipt], after: .zero, countsAsAttempt: false)
          throw failure.error
        case .failure(let failure):
          let mustStop = failure.reason == .undecodable && decodingRecord.noteFailure()
          try await withdraw([failure], lease: lease)
          if mustStop { throw failure.error }
          return .failure(failure.error)
        }
      }
    }
  }

  /// Returns the time until a consumer must look again, or `nil` if it is woken in any case.
  private func waitingTime() async throws -> Duration? {
    let first = try await callingBase(.receive) { try await base.keys(in: layout.timers, limit: 1, order: .ascending) }
    // Whole milliseconds more, because dates are rounded.
    let due = first.first.flatMap { layout.timer(of: $0) }.map {
      Duration.microseconds(Swift.max(0, $0.time.addingSaturating(-microseconds))) + .milliseconds(1)
    }
    guard !isObserved else { return due.map { min($0, Self.longestSleep) } }
    return min(due ?? options.pollInterval, options.pollInterval)
  }

  /// Leases and reads some items.
  ///
  /// - Returns: The items, and whether there is only one because it may have crashed a process.
  private func receive(
    _ wanted: Int, _ lease: Duration, mayBeSuspect: Bool, mayBeDeferred: Bool
  ) async throws -> (readings: [Result<Delivery<Element>, FailedDelivery>], isAlone: Bool) {
    try await settleTimers(.receive)
    var leased = try await self.lease(
      wanted, lease.microseconds, mayBeSuspect: mayBeSuspect, skipping: decodingRecord.deferred)
    if leased.isEmpty, mayBeDeferred, !decodingRecord.deferred.isEmpty {
      leased = try await self.lease(wanted, lease.microseconds, mayBeSuspect: mayBeSuspect, skipping: [])
    }
    return (try await readLeased(leased), leased.first?.item.mustBeReceivedAlone ?? false)
  }

  // MARK: Reading

  /// Reads and decodes leased items.
  ///
  /// - Throws: ``StoreError`` if no item can be read, for a reason that concerns none of them. The items are released.
  private func readLeased(_ leased: [LeasedItem]) async throws -> [Result<Delivery<Element>, FailedDelivery>] {
    guard !leased.isEmpty else { return [] }
    let stored: [Result<[StoreKey: [UInt8]?], StoreError>]
    do {
      stored = try await storedItems(leased)
    } catch {
      _ = try await release(leased.map(\.receipt), after: .zero, countsAsAttempt: false)
      throw error
    }
    return try await BulkWork.run(atMost: leased.count) { [self] allowance in
      try zip(leased, stored).compactMap { leased, stored in
        if case .success(let stored) = stored {
          try allowance.take((stored[layout.itemKey(leased.item.key)] ?? nil)?.count ?? 0)
        }
        return reading(of: leased, stored)
      }
    }
  }

  /// Reads the values and the states of items, each on its own if one of them cannot be read.
  private func storedItems(_ leased: [LeasedItem]) async throws -> [Result<[StoreKey: [UInt8]?], StoreError>] {
    func keys(_ leased: LeasedItem) -> [StoreKey] {
      [layout.itemKey(leased.item.key), layout.stateKey(leased.receipt.sequence)]
    }
    do {
      let stored = try await read(leased.flatMap(keys), .receive)
      return leased.map { _ in .success(stored) }
    } catch let error as StoreError where error.concernsStoredValue {
      var results: [Result<[StoreKey: [UInt8]?], StoreError>] = []
      for item in leased {
        do {
          results.append(.success(try await read(keys(item), .receive)))
        } catch let error as StoreError where error.concernsStoredValue {
          results.append(.failure(error))
        }
      }
      return results
    }
  }

  /// Returns the delivery of a leased item, or `nil` if the item was replaced or removed in the meantime.
  private func reading(
    of leased: LeasedItem, _ stored: Result<[StoreKey: [UInt8]?], StoreError>
  ) -> Result<Delivery<Element>, FailedDelivery>? {
    let (item, receipt) = (leased.item, leased.receipt)
    func failure(_ reason: FailedDelivery.Reason, _ error: StoreError) -> Result<Delivery<Element>, FailedDelivery> {
      .failure(FailedDelivery(receipt: receipt, reason: reason, error: error))
    }
    switch stored {
    case .failure(let error):
      // The base may decrypt its values, and lack a key for now.
      if error.isAboutProgram { decodingRecord.noteDeferral(of: receipt.sequence) }
      return failure(error.isAboutProgram ? .deferred : .unreadable, error)
    case .success(let stored):
      let state = (stored[layout.stateKey(receipt.sequence)] ?? nil).flatMap { ItemRecord($0) }
      guard state?.epoch == receipt.epoch else { return nil }
      let found = (stored[layout.itemKey(item.key)] ?? nil).flatMap { StoredItem($0) }
      guard let found, found.sequence == receipt.sequence else {
        return failure(.damaged, damagedItem(item.key, .receive))
      }
      do throws(StoreError) {
        let value = try decode(found.payload, item.key, during: .receive)
        decodingRecord.noteSuccess(of: receipt.sequence)
        return .success(
          Delivery(
            key: item.key, value: value, receipt: receipt, enqueueDate: Date(microseconds: item.arrival),
            priority: Int(item.priority), group: item.group, isSuspect: item.mustBeReceivedAlone))
      } catch {
        if error.isAboutProgram { decodingRecord.noteDeferral(of: receipt.sequence) }
        return failure(error.isAboutProgram ? .deferred : .undecodable, error)
      }
    }
  }

  /// Ends the leases of items that cannot be delivered, and ignores stale receipts.
  ///
  /// - Returns: The failures that concern the program or the base, not the items.
  @discardableResult
  private func withdraw(_ failures: [FailedDelivery], lease: Duration) async throws -> [FailedDelivery] {
    guard !failures.isEmpty else { return [] }
    var (failures, delays) = (failures, [DeliveryReceipt: Int64]())
    let hasDecoded = decodingRecord.hasDecoded
    for index in failures.indices {
      var delay = lease.microseconds
      if failures[index].reason == .undecodable {
        delay = retrying.delay(afterAttempt: failures[index].receipt.attempt)
        if !hasDecoded {
          failures[index].reason = .refused
          // Even if the retry policy has no delay, or the item would block other items.
          delay = max(delay, min(lease.microseconds, 1_000_000))
        }
      }
      delays[failures[index].receipt] = delay
    }
    let (rules, finalDelays) = (rules, delays)
    let reasons = Dictionary(failures.map { ($0.receipt, $0.reason) }, uniquingKeysWith: { first, _ in first })
    @Sendable func buries(_ item: ItemRecord, _ receipt: DeliveryReceipt) -> Bool {
      reasons[receipt] == .damaged || reasons[receipt] == .undecodable && rules.isUndecodable(item)
    }
    _ = try await changeLeases(failures.map(\.receipt), .receive) { [self] receipt, item, plan in
      if buries(item, receipt) {
        try await bury(receipt.sequence, item, .undecodable, &plan, .receive)
      } else {
        let counts = reasons[receipt] != .refused
        let new = item.released(after: finalDelays[receipt] ?? 0, counts: counts, at: plan.now)
        plan.change(receipt.sequence, from: item, to: new)
      }
    }
    return failures.filter { $0.reason == .refused || $0.reason == .unreadable }
  }
}
