public import Larder

/// Taking part in transactions of the base.
extension StoreQueue: TransactionParticipant {
  /// The changes of the queue in an attempt of a transaction.
  public struct TransactionPlan: Sendable {
    fileprivate var plan: QueuePlan
  }

  /// The prefix of the queue.
  public var prefixes: [StoreKey] { [prefix] }

  /// Returns a plan without changes.
  public func makeTransactionPlan() -> TransactionPlan { TransactionPlan(plan: newPlan()) }

  /// Returns the changes of the queue, including those of the groups of acknowledged items.
  public func finish(
    _ plan: TransactionPlan, in transaction: StoreTransaction<Base>
  ) async throws -> ConditionalCommit<any Error> {
    var plan = plan.plan
    try await finishGroups(&plan, .transaction, in: transaction)
    var commit = ConditionalCommit<any Error>()
    for (key, value) in plan.changes { commit.setValue(value, forKey: key) }
    return commit
  }

  /// Wakes consumers, and reports dead letters.
  public func transactionDidCommit(_ plan: TransactionPlan) {
    noteChanges(plan.plan.changes)
    noteCommit(plannedAt: plan.plan.now)
    deadLetterObservers.report(plan.plan.deadLetters)
  }

  /// Changes a leased item in a transaction.
  ///
  /// - Throws: `StoreError` with `staleReceipt`.
  fileprivate func changeLease(
    _ receipt: DeliveryReceipt, _ operation: StoreOperation, in transaction: StoreTransaction<Base>,
    _ change: (ItemRecord, inout QueuePlan) async throws -> Void
  ) async throws {
    try information.checkWritable(for: operation)
    try await transaction.withPlan(of: self) { plan in
      plan.plan.read(try await read([layout.stateKey(receipt.sequence)], operation, in: transaction))
      guard let item = plan.plan.item(receipt.sequence), item.isLeased(by: receipt, at: plan.plan.now) else {
        return try information.check(stale: [receipt], for: operation)
      }
      try await change(item, &plan.plan)
    }
  }

  fileprivate func enqueue(
    _ input: QueueInput<Element>, in transaction: StoreTransaction<Base>
  ) async throws -> EnqueuedItem {
    try information.check([input])
    var allowance = BulkWork.Allowance.unlimited
    let new = try newItem(input, &allowance)
    return try await transaction.withPlan(of: self) { plan in
      try await planEnqueuing([new], &plan.plan, in: transaction)[0]
    }
  }
}

extension StoreTransaction {
  /// Appends an item to a queue, with the commit of the transaction.
  ///
  /// The place of the item in the order of arrival is that of this call.
  ///
  /// ```swift
  /// try await bytes.transaction { tx in
  ///   try await tx.setValue(order, forKey: "17", in: orders)
  ///   try await tx.enqueue(OrderPlaced(order: 17), in: placed)
  ///   return .commit(())
  /// }
  /// ```
  ///
  /// - Parameters:
  ///   - value: The item.
  ///   - id: An id with which enqueuing is idempotent. Defaults to `nil`.
  ///   - delay: The delay, from now, until the item can be received. Defaults to zero.
  ///   - priority: The priority of the item. Defaults to 0.
  ///   - group: The group of the item. Defaults to `nil`.
  ///   - queue: A queue in the store.
  /// - Returns: The key of the item, and whether it is a duplicate.
  /// - Throws: `StoreError` with `invalidArgument` if an argument is invalid, or the queue belongs to another store;
  ///   `invalidKey`; `encodingFailed`; `valueTooLarge`; `notPermitted`; `closed`; the errors of the store.
  @discardableResult
  public func enqueue<Element>(
    _ value: Element, id: StoreKey? = nil, after delay: Duration = .zero, priority: Int = 0, group: StoreKey? = nil,
    in queue: StoreQueue<Base, Element>
  ) async throws -> EnqueuedItem {
    try await queue.enqueue(QueueInput(value, id: id, after: delay, priority: priority, group: group), in: self)
  }

  /// Acknowledges a delivery and removes its item, with the commit of the transaction.
  ///
  /// All else that the transaction writes for the item is then written exactly once.
  ///
  /// ```swift
  /// try await bytes.transaction { tx in
  ///   try await tx.acknowledge(delivery.receipt, in: placed)
  ///   try await tx.update("revenue", in: totals) { $0 = ($0 ?? 0) + 10 }
  ///   return .commit(())
  /// }
  /// ```
  ///
  /// - Parameters:
  ///   - receipt: The receipt of the delivery.
  ///   - queue: A queue in the store.
  /// - Throws: `StoreError` with `staleReceipt` if another consumer may have processed the item. Let this error end the
  ///   body, so nothing is written twice. Else as ``enqueue(_:id:after:priority:group:in:)``.
  public func acknowledge<Element>(
    _ receipt: DeliveryReceipt, in queue: StoreQueue<Base, Element>
  ) async throws {
    try await queue.changeLease(receipt, .acknowledge, in: self) { item, plan in
      plan.remove(receipt.sequence, item, remembering: true)
    }
  }

  /// Releases an item for another delivery at its old position, with the commit of the transaction.
  ///
  /// - Parameters:
  ///   - receipt: The receipt of the delivery.
  ///   - delay: The delay until the item can be received again. Defaults to that of the queue's retry policy.
  ///   - countsAsAttempt: A Boolean value that indicates whether the delivery counts. Defaults to `true`.
  ///   - queue: A queue in the store.
  /// - Throws: `StoreError` with `invalidArgument` if the delay is negative; as ``acknowledge(_:in:)``.
  public func release<Element>(
    _ receipt: DeliveryReceipt, after delay: Duration? = nil, countsAsAttempt: Bool = true,
    in queue: StoreQueue<Base, Element>
  ) async throws {
    if let delay { try queue.information.check(delay: delay, for: .release) }
    try await queue.changeLease(receipt, .release, in: self) { item, plan in
      if countsAsAttempt, queue.rules.isExhausted(item) {
        try await queue.bury(receipt.sequence, item, .tooManyDeliveries, &plan, .release, in: self)
      } else {
        let wait = (delay ?? queue.retrying.delay(afterAttempt: receipt.attempt)).wholeMicroseconds
        plan.change(
          receipt.sequence, from: item, to: item.released(after: wait, counts: countsAsAttempt, at: plan.now))
      }
    }
  }
}
