#if Postgres
public import Larder

/// Acknowledging, releasing and extending deliveries.
extension PostgresQueue {
  /// Acknowledges deliveries and permanently removes their items, in one commit; see `DurableQueue`.
  public func acknowledge(_ receipts: [DeliveryReceipt]) async throws -> [DeliveryReceipt] {
    try information.checkWritable(for: .acknowledge)
    return try await handle.run(.acknowledge) {
      let window = configuration.duplicateWindow.microseconds
      let held = try await change(
        receipts, membersLeave: receipts, .acknowledge, statements.acknowledge(receipts, window: window))
      guard let held else { return [] }
      return stale(receipts, held, countsRepeated: true)
    }
  }

  /// Releases items for another delivery at their old positions, in one commit; see `DurableQueue`.
  ///
  /// If the deliveries count, an item that was delivered ``PostgresQueueConfiguration/maximumDeliveries`` times becomes a
  /// dead letter.
  public func release(
    _ receipts: [DeliveryReceipt], after delay: Duration?, countsAsAttempt: Bool
  ) async throws -> [DeliveryReceipt] {
    try information.checkWritable(for: .release)
    if let delay { try information.check(delay: delay, for: .release) }
    let limit = configuration.deliveryLimit
    let releases = receipts.map { receipt in
      QueueStatements.Release(
        receipt: receipt, delay: delay?.microseconds ?? retrying.delay(afterAttempt: receipt.attempt),
        counts: countsAsAttempt,
        death: countsAsAttempt && receipt.attempt >= limit ? .tooManyDeliveries : nil)
    }
    return try await handle.run(.release) { try await release(releases, .release) }
  }

  /// Releases items or makes them dead letters.
  ///
  /// - Returns: The receipts that are stale.
  func release(_ releases: [QueueStatements.Release], _ operation: StoreOperation) async throws -> [DeliveryReceipt] {
    // A statement changes each item once.
    var seen: Set<DeliveryReceipt> = []
    let distinct = releases.filter { seen.insert($0.receipt).inserted }
    let held = try await change(
      distinct.map(\.receipt), membersLeave: distinct.filter { $0.death != nil }.map(\.receipt), operation,
      statements.release(
        distinct, window: configuration.duplicateWindow.microseconds,
        retention: configuration.deadLetterRetention?.microseconds))
    guard let held else { return [] }
    report(held)
    if held.rowCount > 0 { noteChange() }
    return stale(releases.map(\.receipt), held, countsRepeated: true)
  }

  /// Resets leases so that they expire `lease` from now, in one commit; see `DurableQueue`.
  public func extend(_ receipts: [DeliveryReceipt], lease: Duration) async throws -> [DeliveryReceipt] {
    try information.checkWritable(for: .extend)
    try information.check(lease: lease, for: .extend)
    return try await handle.run(.extend) {
      let held = try await change(
        receipts, membersLeave: [], .extend, statements.extend(receipts, lease: lease.microseconds))
      guard let held else { return [] }
      return stale(receipts, held, countsRepeated: false)
    }
  }

  /// Changes leased items, whatever becomes of the task.
  ///
  /// - Parameters:
  ///   - receipts: The receipts of the items.
  ///   - leaving: The receipts whose items leave the queue, so that the next items of their groups can come.
  ///   - operation: The operation, for errors.
  ///   - statement: The statement that changes the items and returns the valid receipts in its first columns.
  /// - Returns: The result of the statement, or `nil` if there are no receipts.
  private func change(
    _ receipts: [DeliveryReceipt], membersLeave leaving: [DeliveryReceipt], _ operation: StoreOperation,
    _ statement: Statement
  ) async throws -> QueryResult? {
    guard !receipts.isEmpty else { return nil }
    // The receipt of an item of a group has an odd number; see ``QueueStatements/lease(_:_:epoch:mayBeSuspect:skipping:)``.
    let members = leaving.filter { $0.epoch & 1 == 1 }.map { Int64(clamping: $0.sequence) }
    let call = Int64.random(in: .min ... .max)
    let list =
      members.isEmpty
      ? [statement] : [statements.lockGroups(.items(members), call), statement] + statements.advance(call)
    let index = members.isEmpty ? 0 : 1
    let result = try await unlessCancelled(operation) { try await self.write(list, for: operation)[index] }
    if !members.isEmpty { noteChange() }
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
  /// - Parameter countsRepeated: Whether a receipt that occurs again is stale then.
  private func stale(
    _ receipts: [DeliveryReceipt], _ held: QueryResult, countsRepeated: Bool
  ) -> [DeliveryReceipt] {
    var valid = Set((0..<held.rowCount).map { DeliveryReceipt(held, $0) })
    return receipts.filter { receipt in
      countsRepeated ? valid.remove(receipt) == nil : !valid.contains(receipt)
    }
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
