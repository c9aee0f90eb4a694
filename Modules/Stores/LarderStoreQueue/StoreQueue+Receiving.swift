import Foundation
public import Larder

/// Receiving items.
extension StoreQueue {
  /// The most items that one commit leases.
  private static var leaseLimit: Int { 1000 }

  /// Leases and returns the first items that are due, without waiting for any; see `DurableQueue`.
  ///
  /// An item that may have crashed a process before is returned alone, even if other items wait.
  ///
  /// A call settles at most 256 delays and leases that have ended, the earliest first, and more only as long as it finds no
  /// item. It passes over those of items that wait for an earlier one of their group. So if more than that end at the same time, an item is delivered by its priority and its order of arrival among the
  /// items of the delays and leases that ended before its own, and of those that calls have settled since.
  ///
  /// If your program lacks something to decode an item, the method releases all items of the call as if they had not been
  /// delivered, and throws the error of the codec. The next calls return other items first, as long as the queue is open.
  /// If no item has been decoded since the queue was opened, items that cannot be decoded may have another type. They
  /// make no dead letters, and wait for the delay of the retry policy, at least one second.
  ///
  /// ```swift
  /// for delivery in try await outbox.receive(max: 100, lease: .seconds(30)) {
  ///   try await send(delivery.value)
  ///   try await outbox.acknowledge(delivery.receipt)
  /// }
  /// ```
  ///
  /// - Parameters:
  ///   - max: The maximum number of items, at least 1.
  ///   - lease: The duration of the leases. It must be greater than zero.
  /// - Returns: The items in the order of delivery, or an empty array if no item is due.
  /// - Throws: `StoreError` with `invalidArgument`; `notPermitted`; `closed`; `corrupted`, `undecodable` or another code
  ///   of the codec if no item can be decoded; the errors of the base if the leases could not be written.
  ///   `CancellationError` if the task was cancelled before an item was leased.
  public func receive(max: Int, lease: Duration) async throws -> [QueueDelivery<Element>] {
    try information.check(lease: lease, for: .receive)
    try information.check(maximumDeliveries: max)
    return try await running(.receive) { try await loop.receiveDue(max, lease) }
  }

  /// Waits until an item is due, and leases it; see `DurableQueue`.
  public func nextDelivery(lease: Duration) async throws -> Result<QueueDelivery<Element>, StoreError> {
    try information.check(lease: lease, for: .receive)
    return try await running(.receive) {
      while true {
        let number = waits.enter()
        let reading: Result<QueueDelivery<Element>, FailedDelivery>?
        var time: Duration?
        do {
          try Task.checkCancellation()
          reading = try await leaseFirst(1, lease, mayBeSuspect: true, isFirst: true).readings.first
          if reading == nil {
            if operations.isClosing { throw information.closedError(for: .receive) }
            time = try await waitingTime()
          }
        } catch {
          // Otherwise a later signal would be for this consumer.
          waits.leave(number)
          throw error
        }
        guard let reading else {
          try await waits.wait(number, atMost: time, clock: clock)
          continue
        }
        waits.leave(number)
        // There may be more items than signals.
        waits.signal()
        return try await loop.result(of: reading, lease)
      }
    }
  }

  /// Returns the time until a consumer must look again, or `nil` if it is woken in any case.
  private func waitingTime() async throws -> Duration? {
    var first: Int64?
    for timers in [layout.timers, layout.lateTimers] {
      let keys = try await callingBase(.receive) { try await base.keys(in: timers, limit: 1, order: .ascending) }
      if let time = keys.first.flatMap(layout.time(ofTimer:)) { first = min(first ?? time, time) }
    }
    // Whole milliseconds more, because dates are rounded.
    let due = first.map {
      Duration.microseconds(Swift.max(0, $0.addingSaturating(-microseconds))) + .milliseconds(1)
    }
    if hearsOfAllCommits {
      // A server may later be unreachable, or the right to read its reports be taken away.
      let limit = base.information.sharing == .betweenHosts ? Self.longestSleep : nil
      return [due.map { min($0, Self.longestSleep) }, limit].compactMap(\.self).min()
    }
    return min(due ?? configuration.pollInterval, configuration.pollInterval)
  }

  /// Leases and reads some items; see `ReceiveLoop`.
  private func leaseFirst(
    _ wanted: Int, _ lease: Duration, mayBeSuspect: Bool, isFirst: Bool
  ) async throws -> LeasedDeliveries<Element> {
    let (limit, length) = (min(wanted, Self.leaseLimit), lease.wholeMicroseconds)
    let deferred = decodingRecord.deferred
    while true {
      let hasMore = try await settleTimers(.receive).hasMore
      var leased = try await self.lease(limit, length, mayBeSuspect: mayBeSuspect, skipping: deferred)
      if leased.isEmpty, isFirst, !deferred.isEmpty, !hasMore {
        leased = try await self.lease(limit, length, mayBeSuspect: mayBeSuspect, skipping: [])
      }
      // An item that is due may be behind many others. A call that has leased some leaves it to the next one, because its
      // leases run.
      if leased.isEmpty, hasMore, isFirst {
        try Task.checkCancellation()
        continue
      }
      return LeasedDeliveries(
        readings: try await readLeased(leased),
        // Other processes may have leased the first items at the same time.
        hasMore: !leased.isEmpty)
    }
  }

  // MARK: Reading

  /// Reads and decodes leased items.
  ///
  /// - Throws: ``StoreError`` if no item can be read, for a reason that does not concern the items. The items are released.
  private func readLeased(_ leased: [LeasedItem]) async throws -> [Result<QueueDelivery<Element>, FailedDelivery>] {
    guard !leased.isEmpty else { return [] }
    let stored: [Result<[StoreKey: [UInt8]?], StoreError>]
    do {
      stored = try await storedItems(leased)
    } catch {
      _ = try await releaseLeases(leased.map(\.receipt), after: .zero, countsAsAttempt: false)
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
    } catch let error as StoreError where error.isValueUnreadable {
      var results: [Result<[StoreKey: [UInt8]?], StoreError>] = []
      for item in leased {
        do {
          results.append(.success(try await read(keys(item), .receive)))
        } catch let error as StoreError where error.isValueUnreadable {
          results.append(.failure(error))
        }
      }
      return results
    }
  }

  /// Returns the delivery of a leased item, or `nil` if the item was replaced or removed in the meantime.
  private func reading(
    of leased: LeasedItem, _ stored: Result<[StoreKey: [UInt8]?], StoreError>
  ) -> Result<QueueDelivery<Element>, FailedDelivery>? {
    let (item, receipt) = (leased.item, leased.receipt)
    func failure(_ reason: FailedDelivery.Reason, _ error: StoreError) -> Result<QueueDelivery<Element>, FailedDelivery>
    {
      .failure(FailedDelivery(receipt: receipt, reason: reason, error: error))
    }
    switch stored {
    case .failure(let error):
      // The base may decrypt its values, and lack a key for now.
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
        return .success(
          QueueDelivery(
            key: item.key, value: value, receipt: receipt, enqueueDate: Date(microsecondsSince1970: item.arrival),
            priority: Int(item.priority), group: item.group, isSuspect: item.mustBeReceivedAlone))
      } catch {
        return failure(error.isAboutProgram ? .deferred : .undecodable, error)
      }
    }
  }

  /// Ends the leases of items that cannot be delivered; see `ReceiveLoop`.
  private func endLeases(_ failures: [FailedDelivery]) async throws {
    let failure = Dictionary(failures.map { ($0.receipt, $0) }, uniquingKeysWith: { first, _ in first })
    _ = try await changeLeases(failures.map(\.receipt), .receive) { [self] receipt, item, plan in
      guard let failure = failure[receipt] else { return }
      if failure.reason == .damaged || failure.reason == .undecodable && rules.isUndecodable(item) {
        try await bury(receipt.sequence, item, .undecodable, &plan, .receive)
      } else {
        let new = item.released(
          after: failure.delay.wholeMicroseconds, counts: failure.reason != .refused, at: plan.now)
        plan.change(receipt.sequence, from: item, to: new)
      }
    }
  }

  private var loop: ReceiveLoop<Element> {
    ReceiveLoop(
      decodingRecord: decodingRecord, retrying: retrying, lease: leaseFirst, release: releaseLeases,
      endLeases: endLeases)
  }
}

/// Pausing the queue, for all programs that share its base.
extension StoreQueue: PausableQueue {
  /// Pauses the queue; see `PausableQueue`.
  ///
  /// No call of ``receive(max:lease:)`` leases an item after this method has returned, also if it has begun before.
  ///
  /// ```swift
  /// try await outbox.pause()  // for all processes
  /// try await migrate(database)
  /// try await outbox.resume()
  /// ```
  public func pause() async throws {
    try information.checkWritable(for: .pause)
    try await running(.pause) {
      try await callingBase(.pause) { try await base.setValue([], forKey: layout.pauseKey) }
    }
  }

  /// Resumes the queue; see `PausableQueue`.
  ///
  /// Consumers of other objects notice it as they notice an item that this object enqueues.
  public func resume() async throws {
    try information.checkWritable(for: .resume)
    try await running(.resume) {
      try await callingBase(.resume) { try await base.removeValue(forKey: layout.pauseKey) }
      waits.signal()
    }
  }

  /// Returns whether the queue is paused; see `PausableQueue`.
  public func isPaused() async throws -> Bool {
    try await running(.isPaused) {
      try await callingBase(.isPaused) { try await base.contains(layout.pauseKey) }
    }
  }
}
