#if Postgres
public import Larder

/// Acknowledging, releasing and extending deliveries.
extension PostgresQueue {
  /// Acknowledges deliveries and permanently removes their items, in one commit; see `DurableQueue`.
  public func acknowledge(_ receipts: [DeliveryReceipt]) async throws -> [DeliveryReceipt] {
    try information.checkWritable(for: .acknowledge)
    return try await handle.running(.acknowledge) { try await acknowledge(receipts, in: nil) }
  }

  fileprivate func acknowledge(
    _ receipts: [DeliveryReceipt], in transaction: PostgresTransaction?
  ) async throws -> [DeliveryReceipt] {
    let window = configuration.policy.duplicateWindow.wholeMicroseconds
    let held = try await change(
      receipts, membersLeave: receipts, .acknowledge, statements.acknowledge(receipts, window: window),
      in: transaction)
    guard let held else { return [] }
    return stale(receipts, held, countsRepeated: true)
  }

  /// Releases items for another delivery at their old positions, in one commit; see `DurableQueue`.
  ///
  /// If the deliveries count, an item that was delivered `QueuePolicy.maximumDeliveries` times becomes a
  /// dead letter.
  public func release(
    _ receipts: [DeliveryReceipt], after delay: Duration?, countsAsAttempt: Bool
  ) async throws -> [DeliveryReceipt] {
    try information.checkWritable(for: .release)
    if let delay { try information.check(delay: delay, for: .release) }
    return try await handle.running(.release) {
      try await release(receipts, after: delay, countsAsAttempt: countsAsAttempt, in: nil)
    }
  }

  func release(
    _ receipts: [DeliveryReceipt], after delay: Duration?, countsAsAttempt: Bool, in transaction: PostgresTransaction?
  ) async throws -> [DeliveryReceipt] {
    let limit = configuration.deliveryLimit
    let releases = receipts.map { receipt in
      QueueStatements.Release(
        receipt: receipt, delay: (delay ?? retrying.delay(afterAttempt: receipt.attempt)).wholeMicroseconds,
        counts: countsAsAttempt,
        deadLetterReason: countsAsAttempt && receipt.attempt >= limit ? .tooManyDeliveries : nil)
    }
    return try await release(releases, .release, in: transaction)
  }

  /// Releases items or makes them dead letters.
  ///
  /// - Returns: The receipts that are stale.
  func release(
    _ releases: [QueueStatements.Release], _ operation: StoreOperation, in transaction: PostgresTransaction?
  ) async throws -> [DeliveryReceipt] {
    // A statement changes each item once.
    var seen: Set<DeliveryReceipt> = []
    let distinct = releases.filter { seen.insert($0.receipt).inserted }
    let held = try await change(
      distinct.map(\.receipt), membersLeave: distinct.filter { $0.deadLetterReason != nil }.map(\.receipt), operation,
      statements.release(
        distinct, window: configuration.policy.duplicateWindow.wholeMicroseconds,
        retention: configuration.policy.deadLetterRetention?.wholeMicroseconds),
      in: transaction)
    guard let held else { return [] }
    report(held, in: transaction)
    if held.rowCount > 0 { noteChange(in: transaction) }
    return stale(releases.map(\.receipt), held, countsRepeated: true)
  }

  /// Resets leases so that they expire `lease` from now, in one commit; see `DurableQueue`.
  public func extend(_ receipts: [DeliveryReceipt], lease: Duration) async throws -> [DeliveryReceipt] {
    try information.check(lease: lease, for: .extend)
    return try await handle.running(.extend) { try await extend(receipts, lease, in: nil) }
  }

  fileprivate func extend(
    _ receipts: [DeliveryReceipt], _ lease: Duration, in transaction: PostgresTransaction?
  ) async throws -> [DeliveryReceipt] {
    let held = try await change(
      receipts, membersLeave: [], .extend, statements.extend(receipts, lease: lease.wholeMicroseconds), in: transaction)
    guard let held else { return [] }
    return stale(receipts, held, countsRepeated: false)
  }

  /// Changes leased items, whatever becomes of the task.
  ///
  /// - Parameters:
  ///   - receipts: The receipts of the items.
  ///   - leaving: The receipts whose items leave the queue, so the next items of their groups can come.
  ///   - operation: The operation, for errors.
  ///   - statement: The statement that changes the items and returns the valid receipts in its first columns.
  ///   - transaction: A transaction of the caller's, or `nil` for one of the call's own.
  /// - Returns: The result of the statement, or `nil` if there are no receipts.
  private func change(
    _ receipts: [DeliveryReceipt], membersLeave leaving: [DeliveryReceipt], _ operation: StoreOperation,
    _ statement: Statement, in transaction: PostgresTransaction?
  ) async throws -> QueryResult? {
    guard !receipts.isEmpty else { return nil }
    // The receipt of an item of a group has an odd number; see ``QueueStatements/lease(_:_:epoch:mayBeSuspect:skipping:)``.
    let members = leaving.filter { $0.epoch & 1 == 1 }.map { Int64(clamping: $0.sequence) }
    let call = Int64.random(in: .min ... .max)
    let list =
      members.isEmpty
      ? [statement] : [statements.lockGroups(.items(members), call), statement] + statements.advance(call)
    let index = members.isEmpty ? 0 : 1
    let result =
      if let transaction {
        try await write(list, in: transaction, for: operation)[index]
      } else {
        try await unlessCancelled(operation) { try await self.write(list, for: operation)[index] }
      }
    if !members.isEmpty { noteChange(in: transaction) }
    return result
  }

  /// Runs a closure, and again in a task of its own if the closure was cancelled before it changed anything.
  private func unlessCancelled(
    _ operation: StoreOperation, _ body: @escaping @Sendable () async throws -> QueryResult
  ) async throws -> QueryResult {
    do {
      return try await body()
    } catch is CancellationError {
      return try await Task { try await body() }.value
    }
  }

  /// Returns the receipts that are not in a result, in order.
  ///
  /// - Parameter countsRepeated: A Boolean value that indicates whether a receipt that occurs again is stale then.
  private func stale(
    _ receipts: [DeliveryReceipt], _ held: QueryResult, countsRepeated: Bool
  ) -> [DeliveryReceipt] {
    var valid = Set((0..<held.rowCount).map { DeliveryReceipt(held, $0) })
    return receipts.filter { receipt in
      countsRepeated ? valid.remove(receipt) == nil : !valid.contains(receipt)
    }
  }
}

extension PostgresTransaction {
  /// Acknowledges a delivery and removes its item with the commit of the transaction.
  ///
  /// Rows and entries that the transaction writes are there exactly if the item is gone, whatever crashes. From this call
  /// to the end of the transaction no other consumer can receive the item, even if its lease ends.
  ///
  /// ```swift
  /// try await database.write { transaction in
  ///   try await transaction.acknowledge(delivery.receipt, in: outbox)
  ///   try await transaction.execute("INSERT INTO mails(text) VALUES($1)", [delivery.value.text])
  /// }
  /// ```
  ///
  /// - Parameters:
  ///   - receipt: The receipt of the delivery.
  ///   - queue: A queue of this database.
  /// - Throws: `StoreError`: `staleReceipt` if another consumer may have processed the item. Let this error end the
  ///   closure, so nothing is written twice. `notPermitted`; `invalidArgument` if the queue belongs to another
  ///   database; `conflict`; `closed`; `full`; `timedOut`; `ioFailed`.
  public func acknowledge<Element>(_ receipt: DeliveryReceipt, in queue: PostgresQueue<Element>) async throws {
    try queue.information.check(stale: try await acknowledge([receipt], in: queue), for: .acknowledge)
  }

  /// Acknowledges deliveries and removes their items with the commit of the transaction.
  ///
  /// If a receipt is stale, another consumer may have processed its item. If the transaction writes anything for this
  /// item, throw an error from the closure, so it is not written twice.
  ///
  /// - Parameters:
  ///   - receipts: The receipts of the deliveries.
  ///   - queue: A queue of this database.
  /// - Returns: The receipts that are stale.
  /// - Throws: The same errors as ``acknowledge(_:in:)-(DeliveryReceipt,_)``, except `staleReceipt`.
  public func acknowledge<Element>(
    _ receipts: [DeliveryReceipt], in queue: PostgresQueue<Element>
  ) async throws -> [DeliveryReceipt] {
    try queue.information.checkWritable(for: .acknowledge)
    return try await queue.acknowledge(receipts, in: self)
  }

  /// Releases an item for another delivery with the commit of the transaction.
  ///
  /// - Parameters:
  ///   - receipt: The receipt of the delivery.
  ///   - delay: The delay until the item can be received again. Defaults to that of the queue's retry policy.
  ///   - countsAsAttempt: A Boolean value that indicates whether the delivery counts. Defaults to `true`.
  ///   - queue: A queue of this database.
  /// - Throws: `StoreError`: `invalidArgument` if the delay is negative; the errors of
  ///   ``acknowledge(_:in:)-(DeliveryReceipt,_)``.
  public func release<Element>(
    _ receipt: DeliveryReceipt, after delay: Duration? = nil, countsAsAttempt: Bool = true,
    in queue: PostgresQueue<Element>
  ) async throws {
    let stale = try await release([receipt], after: delay, countsAsAttempt: countsAsAttempt, in: queue)
    try queue.information.check(stale: stale, for: .release)
  }

  /// Releases items for another delivery with the commit of the transaction.
  ///
  /// If the deliveries count, an item that was delivered `QueuePolicy.maximumDeliveries` times becomes a
  /// dead letter. It is reported after the commit.
  ///
  /// - Parameters:
  ///   - receipts: The receipts of the deliveries.
  ///   - delay: The delay until the items can be received again. Defaults to that of the queue's retry policy.
  ///   - countsAsAttempt: A Boolean value that indicates whether the deliveries count. Defaults to `true`.
  ///   - queue: A queue of this database.
  /// - Returns: The receipts that are stale.
  /// - Throws: The same errors as ``release(_:after:countsAsAttempt:in:)-(DeliveryReceipt,_,_,_)``, except
  ///   `staleReceipt`.
  public func release<Element>(
    _ receipts: [DeliveryReceipt], after delay: Duration? = nil, countsAsAttempt: Bool = true,
    in queue: PostgresQueue<Element>
  ) async throws -> [DeliveryReceipt] {
    try queue.information.checkWritable(for: .release)
    if let delay { try queue.information.check(delay: delay, for: .release) }
    return try await queue.release(receipts, after: delay, countsAsAttempt: countsAsAttempt, in: self)
  }

  /// Resets a lease so that it expires `lease` from now, with the commit of the transaction.
  ///
  /// ```swift
  /// try await database.write { transaction in
  ///   try await transaction.extend(delivery.receipt, lease: .seconds(60), in: outbox)
  /// }
  /// ```
  ///
  /// - Parameters:
  ///   - receipt: The receipt of the delivery. It stays valid.
  ///   - lease: The new duration of the lease from now. It must be greater than zero.
  ///   - queue: A queue of this database.
  /// - Throws: `StoreError`: `invalidArgument` if the lease is not greater than zero; the errors of
  ///   ``acknowledge(_:in:)-(DeliveryReceipt,_)``.
  public func extend<Element>(
    _ receipt: DeliveryReceipt, lease: Duration, in queue: PostgresQueue<Element>
  ) async throws {
    try queue.information.check(stale: try await extend([receipt], lease: lease, in: queue), for: .extend)
  }

  /// Resets leases so that they expire `lease` from now, with the commit of the transaction.
  ///
  /// - Parameters:
  ///   - receipts: The receipts of the deliveries. They stay valid.
  ///   - lease: The new duration of the leases from now. It must be greater than zero.
  ///   - queue: A queue of this database.
  /// - Returns: The receipts that are stale.
  /// - Throws: The same errors as ``extend(_:lease:in:)-(DeliveryReceipt,_,_)``, except `staleReceipt`.
  public func extend<Element>(
    _ receipts: [DeliveryReceipt], lease: Duration, in queue: PostgresQueue<Element>
  ) async throws -> [DeliveryReceipt] {
    try queue.information.check(lease: lease, for: .extend)
    return try await queue.extend(receipts, lease, in: self)
  }
}

extension DeliveryReceipt {
  /// Reads the receipt in the first three columns of a row.
  init(_ rows: QueryResult, _ row: Int) {
    self.init(
      sequence: UInt128(clamping: rows.integer(row, 0) ?? 0), attempt: UInt32(clamping: rows.integer(row, 1) ?? 0),
      epoch: UInt64(bitPattern: rows.integer(row, 2) ?? 0))
  }
}
#endif
