#if Postgres
import Foundation
public import Larder

/// Receiving items.
extension PostgresQueue {
  /// The items of one transaction, and the time until the first delay or lease ends, if it was asked for.
  private typealias Leased = (deliveries: LeasedDeliveries<Element>, nextEnd: Duration?)

  /// The most items that one transaction leases.
  private static var leaseLimit: Int { 1000 }

  /// Leases and returns the first items that are due, without waiting for any; see `DurableQueue`.
  ///
  /// An item that may have crashed its consumer before is returned alone, even if other items wait. Items that another
  /// consumer is just taking or changing are passed over. The call takes one round trip for each thousand items.
  ///
  /// If your program lacks something to decode an item, the method releases all items of the call as if they had not been
  /// delivered, and throws the error of the codec. The next calls return other items first, as long as the queue is open.
  /// If no item has been decoded since the queue was opened, items that cannot be decoded may have another type. They
  /// make no dead letters, and wait for the delay of the retry policy, at least one second.
  ///
  /// - Parameters:
  ///   - max: The maximum number of items, at least 1.
  ///   - lease: The duration of the leases. It must be greater than zero.
  /// - Returns: The items in the order of delivery, or an empty array if no item is due.
  /// - Throws: `StoreError` with `invalidArgument`; `notPermitted`; `closed`; `corrupted`, `undecodable` or another code
  ///   of the codec if no item can be decoded; `full`, `timedOut` or `ioFailed` if the leases could not be written.
  ///   `CancellationError` if the task was cancelled before an item was leased.
  public func receive(max: Int, lease: Duration) async throws -> [QueueDelivery<Element>] {
    try information.check(lease: lease, for: .receive)
    try information.check(maximumDeliveries: max)
    return try await handle.running(.receive) { try await loop().receiveDue(max, lease) }
  }

  /// Waits until an item is due, and leases it; see `DurableQueue`.
  public func nextDelivery(lease: Duration) async throws -> Result<QueueDelivery<Element>, StoreError> {
    try information.check(lease: lease, for: .receive)
    return try await handle.running(.receive) {
      // If set, this consumer looks for all that wait.
      var looks = false
      while true {
        let number = waits.enter()
        let reading: Result<QueueDelivery<Element>, FailedDelivery>?
        do {
          try Task.checkCancellation()
          reading = if looks, try await !isDue() { nil } else { try await firstReading(lease) }
          if reading == nil { try handle.checkOpen(for: .receive) }
        } catch {
          // Otherwise a later signal would be for this consumer.
          waits.leave(number)
          // Another one looks instead.
          if looks { waits.signal() }
          throw error
        }
        guard let reading else {
          looks = try await !waits.wait(number) { [looks = self.looks] in try await looks.waitForTurn() }
          continue
        }
        waits.leave(number)
        // There may be more items than signals.
        waits.signal()
        return try await loop().result(of: reading, lease)
      }
    }
  }

  /// Returns whether an item may be due or something is to be cleaned up, without changing anything, and plans the next
  /// look.
  private func isDue() async throws -> Bool {
    let rows = try await handle.read(statements.look, for: .receive)
    if noteTime(rows.integer(0, 2) ?? 0) { try await boundByDuration(during: .receive) }
    looks.plan(nextEnd: nextEnd(rows, 0, 1))
    return rows.integer(0, 0) == 1
  }

  /// Leases the first item that is due, or plans the next look if there isn't one.
  private func firstReading(_ lease: Duration) async throws -> Result<QueueDelivery<Element>, FailedDelivery>? {
    let leased = try await self.lease(1, lease, mayBeSuspect: true, isFirst: true, findsNextEnd: true, in: nil)
    guard let reading = leased.deliveries.readings.first else {
      looks.plan(nextEnd: leased.nextEnd)
      return nil
    }
    return reading
  }

  // MARK: Leasing

  /// Leases and decodes some items; see `ReceiveLoop`.
  private func leaseFirst(
    _ wanted: Int, _ lease: Duration, mayBeSuspect: Bool, isFirst: Bool, in transaction: PostgresTransaction?
  ) async throws -> LeasedDeliveries<Element> {
    try await self.lease(
      min(wanted, Self.leaseLimit), lease, mayBeSuspect: mayBeSuspect, isFirst: isFirst, findsNextEnd: false,
      in: transaction
    ).deliveries
  }

  private func lease(
    _ wanted: Int, _ lease: Duration, mayBeSuspect: Bool, isFirst: Bool, findsNextEnd: Bool,
    in transaction: PostgresTransaction?
  ) async throws -> Leased {
    let deferred = decodingRecord.deferred
    let leased = try await self.lease(
      wanted, lease, mayBeSuspect: mayBeSuspect, skipping: deferred, findsNextEnd: findsNextEnd, in: transaction)
    guard leased.deliveries.readings.isEmpty, isFirst, !deferred.isEmpty else { return leased }
    return try await self.lease(
      wanted, lease, mayBeSuspect: mayBeSuspect, skipping: [], findsNextEnd: findsNextEnd, in: transaction)
  }

  private func lease(
    _ wanted: Int, _ lease: Duration, mayBeSuspect: Bool, skipping skipped: Set<UInt128>, findsNextEnd: Bool,
    in transaction: PostgresTransaction?
  ) async throws -> Leased {
    while true {
      let epoch = Int64.random(in: .min ... .max) & ~1
      let takes = statements.lease(
        wanted, lease.wholeMicroseconds, epoch: epoch, mayBeSuspect: mayBeSuspect,
        skipping: skipped.map { Int64(clamping: $0) })
      let settles = statements.settle(maximumDeliveries: configuration.deliveryLimit)
      let results = try await write(
        [settles, takes] + (findsNextEnd ? [statements.nextEnd] : []), in: transaction, for: .receive)
      let (hasMore, hasExhausted) = (results[0].integer(0, 0) == 1, results[0].integer(0, 1) == 1)
      if noteTime(results[0].integer(0, 2) ?? 0) { try await boundByDuration(during: .receive, in: transaction) }
      let rows = results[1]
      var hasBuried = false
      if hasExhausted {
        do {
          hasBuried = try await buryExhausted(in: transaction)
        } catch  where rows.rowCount > 0 {
          // The items are leased. The next call buries what is left.
        }
      }
      // Items that are due may have been behind many others, or behind an item that is a dead letter now.
      if rows.rowCount == 0, hasMore || hasBuried { continue }
      var leased = try await readings(of: rows)
      leased.hasMore = hasMore || hasBuried || rows.rowCount >= wanted
      return (leased, findsNextEnd && results[2].rowCount == 1 ? nextEnd(results[2], 0, 0) : nil)
    }
  }

  private func nextEnd(_ rows: QueryResult, _ row: Int, _ column: Int) -> Duration? {
    rows.integer(row, column).map { .microseconds(max($0, 1000)) }
  }

  /// Turns items whose last lease has ended into dead letters.
  ///
  /// - Returns: A Boolean value that indicates whether there were any.
  private func buryExhausted(in transaction: PostgresTransaction?) async throws -> Bool {
    let call = Int64.random(in: .min ... .max)
    let limit = configuration.deliveryLimit
    let burial = statements.buryExhausted(
      call, maximumDeliveries: limit, window: configuration.policy.duplicateWindow.wholeMicroseconds,
      retention: configuration.policy.deadLetterRetention?.wholeMicroseconds)
    let lock = statements.lockGroupsOfExhausted(call, maximumDeliveries: limit)
    let rows = try await write([lock, burial] + statements.advance(call), in: transaction, for: .receive)[1]
    report(rows, in: transaction)
    if rows.rowCount > 0 { noteChange(in: transaction) }
    return rows.rowCount > 0
  }

  /// Reports the dead letters in the result of a release, after the commit.
  func report(_ rows: QueryResult, in transaction: PostgresTransaction?) {
    let found = (0..<rows.rowCount).compactMap { row -> DeadLetterEvent? in
      guard let reason = rows.integer(row, 4) else { return nil }
      return DeadLetterEvent(
        key: rows.key(row, 3), sequence: UInt128(clamping: rows.integer(row, 0) ?? 0),
        attempts: Int(rows.integer(row, 1) ?? 0), reason: DeadLetterReason(rawValue: UInt8(clamping: reason)))
    }
    guard let transaction else { return deadLetterObservers.report(found) }
    transaction.afterCommit { [deadLetterObservers] in deadLetterObservers.report(found) }
  }

  // MARK: Decoding

  /// Decodes leased items in the order of delivery.
  private func readings(of rows: QueryResult) async throws -> LeasedDeliveries<Element> {
    try await BulkWork.run(atMost: rows.rowCount) { [self] allowance in
      let order = (0..<rows.rowCount).map { row in
        (row: row, priority: rows.integer(row, 6) ?? 0, sequence: rows.integer(row, 0) ?? 0)
      }.sorted { ($1.priority, $0.sequence) < ($0.priority, $1.sequence) }
      var leased = LeasedDeliveries<Element>()
      for (row, _, _) in order {
        try allowance.take(rows.withBytes(row, 4) { $0?.count ?? 0 })
        leased.readings.append(reading(of: rows, row))
      }
      return leased
    }
  }

  private func reading(of rows: QueryResult, _ row: Int) -> Result<QueueDelivery<Element>, FailedDelivery> {
    let receipt = DeliveryReceipt(rows, row)
    let key = rows.key(row, 3)
    do throws(StoreError) {
      let value = try self.value(of: rows, row, 4, forKey: key, during: .receive)
      return .success(
        QueueDelivery(
          key: key, value: value, receipt: receipt, enqueueDate: Date(microsecondsSince1970: rows.integer(row, 5) ?? 0),
          priority: Int(rows.integer(row, 6) ?? 0), group: rows.isNull(row, 7) ? nil : rows.key(row, 7),
          isSuspect: rows.integer(row, 8) == 1))
    } catch {
      return .failure(
        FailedDelivery(receipt: receipt, reason: error.isAboutProgram ? .deferred : .undecodable, error: error))
    }
  }

  /// Returns the loop in a transaction of the caller's, or with each step in one of its own.
  fileprivate func loop(in transaction: PostgresTransaction? = nil) -> ReceiveLoop<Element> {
    ReceiveLoop(
      decodingRecord: decodingRecord, retrying: retrying,
      lease: { try await self.leaseFirst($0, $1, mayBeSuspect: $2, isFirst: $3, in: transaction) },
      release: { try await self.release($0, after: $1, countsAsAttempt: $2, in: transaction) },
      endLeases: { try await self.endLeases($0, in: transaction) })
  }

  /// Ends the leases of items that cannot be decoded; see `ReceiveLoop`.
  private func endLeases(_ failures: [FailedDelivery], in transaction: PostgresTransaction?) async throws {
    let releases = failures.map { failure in
      let isLast =
        failure.reason == .undecodable
        && failure.receipt.attempt >= configuration.policy.maximumDeliveries ?? FailedDelivery.decodingLimit
      return QueueStatements.Release(
        receipt: failure.receipt, delay: failure.delay.wholeMicroseconds, counts: failure.reason != .refused,
        deadLetterReason: isLast ? .undecodable : nil)
    }
    _ = try await release(releases, .receive, in: transaction)
  }
}

extension PostgresTransaction {
  /// Leases and returns the first items of a queue that are due, without waiting for any.
  ///
  /// The leases begin with this call and are committed with the transaction. Until then, other consumers pass over these
  /// items and over up to a thousand others whose delays or leases have just ended. If the transaction is not committed,
  /// the items are as if they had not been received, and no delivery counts, even if an item crashes the process. So
  /// receive items that may do so with ``PostgresQueue/receive(max:lease:)``, and only acknowledge them in the transaction.
  ///
  /// At the isolation levels repeatable read and serializable, a transaction does not see that the queue was paused after
  /// the transaction began, so it may still lease items.
  ///
  /// ```swift
  /// try await database.write { transaction in
  ///   for delivery in try await transaction.receive(max: 10, lease: .seconds(30), from: outbox) {
  ///     try await transaction.execute("INSERT INTO mails(text) VALUES($1)", [delivery.value.text])
  ///     try await transaction.acknowledge(delivery.receipt, in: outbox)
  ///   }
  /// }
  /// ```
  ///
  /// - Parameters:
  ///   - max: The maximum number of items, at least 1.
  ///   - lease: The duration of the leases. It must be greater than zero, and long enough for the transaction to
  ///     acknowledge or release the items.
  ///   - queue: A queue of this database.
  /// - Returns: The items in the order of delivery, or an empty array if no item is due.
  /// - Throws: `StoreError`: `invalidArgument` if an argument is invalid or if the queue belongs to another database; the
  ///   errors of ``PostgresQueue/receive(max:lease:)``.
  public func receive<Element>(
    max: Int, lease: Duration, from queue: PostgresQueue<Element>
  ) async throws -> [QueueDelivery<Element>] {
    try queue.information.check(lease: lease, for: .receive)
    try queue.information.check(maximumDeliveries: max)
    return try await queue.loop(in: self).receiveDue(max, lease)
  }

  /// Leases and returns the first item of a queue that is due; see ``receive(max:lease:from:)``.
  ///
  /// - Parameters:
  ///   - lease: The duration of the lease. It must be greater than zero.
  ///   - queue: A queue of this database.
  /// - Returns: The item, or `nil` if no item is due.
  /// - Throws: The same errors as ``receive(max:lease:from:)``.
  public func receive<Element>(
    lease: Duration, from queue: PostgresQueue<Element>
  ) async throws -> QueueDelivery<Element>? {
    try await receive(max: 1, lease: lease, from: queue).first
  }
}
#endif
