public import Larder

/// Acknowledging, releasing and extending deliveries.
extension StoreQueue {
  /// Acknowledges deliveries and permanently removes their items, in one commit; see `DurableQueue`.
  public func acknowledge(_ receipts: [DeliveryReceipt]) async throws -> [DeliveryReceipt] {
    try information.checkWritable(for: .acknowledge)
    return try await running(.acknowledge) {
      try await changeLeases(receipts, .acknowledge) { receipt, item, plan in
        plan.remove(receipt.sequence, item, remembering: true)
      }
    }
  }

  /// Releases items for another delivery at their old positions, in one commit; see `DurableQueue`.
  ///
  /// If the deliveries count, an item that was delivered `QueuePolicy.maximumDeliveries` times becomes a dead
  /// letter.
  public func release(
    _ receipts: [DeliveryReceipt], after delay: Duration?, countsAsAttempt: Bool
  ) async throws -> [DeliveryReceipt] {
    try information.checkWritable(for: .release)
    if let delay { try information.check(delay: delay, for: .release) }
    return try await running(.release) {
      try await releaseLeases(receipts, after: delay, countsAsAttempt: countsAsAttempt)
    }
  }

  /// Releases items, also for an operation that is running while the queue closes.
  func releaseLeases(
    _ receipts: [DeliveryReceipt], after delay: Duration?, countsAsAttempt: Bool
  ) async throws -> [DeliveryReceipt] {
    let delays = Dictionary(
      receipts.map { ($0, (delay ?? retrying.delay(afterAttempt: $0.attempt)).wholeMicroseconds) },
      uniquingKeysWith: { first, _ in first })
    return try await changeLeases(receipts, .release) { [self] receipt, item, plan in
      if countsAsAttempt, rules.isExhausted(item) {
        try await bury(receipt.sequence, item, .tooManyDeliveries, &plan, .release)
      } else {
        let new = item.released(after: delays[receipt] ?? 0, counts: countsAsAttempt, at: plan.now)
        plan.change(receipt.sequence, from: item, to: new)
      }
    }
  }

  /// Resets leases so that they expire `lease` from now, in one commit; see `DurableQueue`.
  public func extend(_ receipts: [DeliveryReceipt], lease: Duration) async throws -> [DeliveryReceipt] {
    try information.check(lease: lease, for: .extend)
    return try await running(.extend) {
      try await changeLeases(receipts, .extend) { receipt, item, plan in
        var new = item
        new.beginning = plan.now
        new.deadline = plan.now.addingSaturating(lease.wholeMicroseconds)
        plan.change(receipt.sequence, from: item, to: new)
      }
    }
  }

  /// Changes leased items, whatever becomes of the task.
  ///
  /// - Parameters:
  ///   - receipts: The receipts of the items.
  ///   - operation: The operation, for errors.
  ///   - change: A closure that adds the change of an item to a plan.
  /// - Returns: The receipts that are stale.
  func changeLeases(
    _ receipts: [DeliveryReceipt], _ operation: StoreOperation,
    _ change: @escaping @Sendable (DeliveryReceipt, ItemRecord, inout QueuePlan) async throws -> Void
  ) async throws -> [DeliveryReceipt] {
    var (remaining, stale) = (receipts, [DeliveryReceipt]())
    do {
      try await changeLeases(of: &remaining, &stale, operation, change)
      return stale
    } catch is CancellationError {
      // A commit that has begun is not cancelled, so nothing of what remains has been changed.
      return try await Task { [remaining, stale] in
        var (remaining, stale) = (remaining, stale)
        try await changeLeases(of: &remaining, &stale, operation, change)
        return stale
      }.value
    }
  }

  private func changeLeases(
    of remaining: inout [DeliveryReceipt], _ stale: inout [DeliveryReceipt], _ operation: StoreOperation,
    _ change: @Sendable (DeliveryReceipt, ItemRecord, inout QueuePlan) async throws -> Void
  ) async throws {
    // Each attempt that performs nothing means that another writer has changed an item.
    for _ in 0..<1000 where !remaining.isEmpty {
      let stored = try await read(remaining.map { layout.stateKey($0.sequence) }, operation)
      var planned: [(receipt: DeliveryReceipt, plan: QueuePlan)] = []
      var newStale: [DeliveryReceipt] = []
      for receipt in remaining {
        let key = layout.stateKey(receipt.sequence)
        var plan = newPlan()
        plan.read([key: stored[key] ?? nil])
        guard let item = plan.item(receipt.sequence), item.isLeased(by: receipt, at: plan.now) else {
          newStale.append(receipt)
          continue
        }
        try await change(receipt, item, &plan)
        try await finishGroups(&plan, operation)
        planned.append((receipt, plan))
      }
      let performed = Set(try await perform(planned.map(\.plan), operation))
      remaining = planned.indices.filter { !performed.contains($0) }.map { planned[$0].receipt }
      stale += newStale
    }
    guard remaining.isEmpty else { throw information.contentionError(for: operation) }
  }

  /// Adds to a plan that an item becomes a dead letter.
  func bury(
    _ sequence: UInt128, _ item: ItemRecord, _ reason: DeadLetterReason, _ plan: inout QueuePlan,
    _ operation: StoreOperation, in transaction: StoreTransaction<Base>? = nil
  ) async throws {
    let key = layout.itemKey(item.key)
    plan.read(try await read([key], operation, in: transaction))
    plan.bury(sequence, item, reason, payload: plan.value(forKey: key).flatMap { StoredItem($0)?.payload } ?? [])
    try await finishGroups(&plan, operation, in: transaction)
  }
}
