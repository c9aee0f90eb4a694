public import Larder

/// Enqueuing items.
extension StoreQueue {
  /// Appends items to the queue in order, atomically.
  ///
  /// With an id, enqueuing is idempotent: it is a no-op while an item with that id is in the queue, and for
  /// `QueuePolicy.duplicateWindow` after that item was acknowledged or became a dead letter. Without ids,
  /// nothing is read, so writers share commits if the base batches them.
  ///
  /// ```swift
  /// try await outbox.enqueue([
  ///   QueueInput(event, group: "customer:17"),
  ///   QueueInput(reminder, id: "reminder:17", after: .seconds(86_400), priority: -1),
  /// ])
  /// ```
  ///
  /// - Parameter inputs: The items, each with an optional id, delay, priority and group.
  /// - Returns: The result for each item, in order.
  /// - Throws: `StoreError` with `invalidKey`; `invalidArgument` if a delay, a priority or a group is invalid;
  ///   `encodingFailed`; `valueTooLarge`; `full`; `closed`; `ioFailed`; `conflict` if other programs kept changing the
  ///   same ids. `CancellationError`.
  @discardableResult
  public func enqueue(_ inputs: [QueueInput<Element>]) async throws -> [EnqueuedItem] {
    try information.check(inputs)
    return try await running(.enqueue) {
      let format = coder.codecRecord.format
      let new = try await newItems(inputs)
      // An older item that is added to newer ones does no harm, but a program that can write newer ones must.
      if coder.codecRecord.newestName != nil || inputs.contains(where: { $0.id != nil }) {
        let enqueued = try await committing(.enqueue) {
          var plan = newPlan()
          if coder.codecRecord.newestName != nil {
            plan.read(try await read([layout.formatKey], .enqueue))
            try compareCodec(plan, .enqueue)
            try coder.codecRecord.checkUnchanged(since: format, during: .enqueue, store: information.name)
          }
          let items = try await planEnqueuing(new, &plan)
          return (plan, items)
        }
        await correctTimers(of: new)
        return enqueued
      }
      let changes = batch(new)
      // A call that removes a range has read its keys. If the items came in between, they would be seen beside those that
      // it removes.
      try await gate.withAccess(.shared) {
        try await callingBase(.enqueue) { try await base.apply(changes) }
      }
      noteChanges(new.lazy.flatMap { $0.plan.changes })
      await correctTimers(of: new)
      return new.map { EnqueuedItem(key: $0.item.key, sequence: $0.sequence) }
    }
  }

  /// Returns the changes of the base that enqueue an item.
  ///
  /// The item gets a new key, and nothing is read. You can make the changes together with others, in one batch or one
  /// transaction of the base. The place of the item in the order of arrival is that of this call.
  ///
  /// ```swift
  /// var changes = ChangeBatch<[UInt8]>()
  /// changes.setValue(bytes, forKey: "order:17")
  /// for change in try outbox.changes(enqueuing: event).changes { changes.append(change) }
  /// try await base.apply(changes)
  /// ```
  ///
  /// - Parameters:
  ///   - element: The item.
  ///   - delay: The delay, from now, until the item can be received. Defaults to zero.
  ///   - priority: The priority of the item. Defaults to 0.
  ///   - group: The group of the item. Defaults to `nil`.
  /// - Throws: `StoreError` with `invalidArgument`; `encodingFailed`; `valueTooLarge`; `notPermitted`.
  public func changes(
    enqueuing element: Element, after delay: Duration = .zero, priority: Int = 0, group: StoreKey? = nil
  ) throws -> ChangeBatch<[UInt8]> {
    let input = QueueInput(element, after: delay, priority: priority, group: group)
    try information.check([input])
    var allowance = BulkWork.Allowance.unlimited
    return batch([try newItem(input, &allowance)])
  }

  /// A new item with the changes that insert it.
  struct NewItem: Sendable {
    let sequence: UInt128
    let item: ItemRecord
    let plan: QueuePlan
  }

  /// Corrects timers if the clock was set back since items that have been stored were made.
  ///
  /// A program that only enqueues makes no other call that would correct them.
  private func correctTimers(of items: [NewItem]) async {
    guard let time = items.map(\.plan.now).max(), noteCommit(plannedAt: time) else { return }
    do {
      while try await correctSomeTimers(.enqueue) {}
    } catch {
      // The items are stored, so the call has succeeded. The correction stays begun, and the next call continues it.
    }
  }

  private func newItems(_ inputs: [QueueInput<Element>]) async throws -> [NewItem] {
    try await BulkWork.run(atMost: inputs.count) { [self] allowance in
      try inputs.map { try newItem($0, &allowance) }
    }
  }

  func newItem(_ input: QueueInput<Element>, _ allowance: inout BulkWork.Allowance) throws -> NewItem {
    let sequence = nextSequence()
    var plan = newPlan()
    let item = ItemRecord(
      key: input.id ?? sequence.generatedKey, group: input.group, priority: Int8(input.priority),
      hasCallersKey: input.id != nil, arrival: plan.now)
    let payload = try allowance.encode {
      var bytes: [UInt8] = []
      try coder.append(input.value, forKey: item.key, to: &bytes, during: .enqueue)
      return bytes
    }
    plan.insert(sequence, item, delay: input.delay.wholeMicroseconds, payload: payload)
    return NewItem(sequence: sequence, item: item, plan: plan)
  }

  private func batch(_ items: [NewItem]) -> ChangeBatch<[UInt8]> {
    var batch = ChangeBatch<[UInt8]>()
    for item in items {
      for (key, value) in item.plan.changes {
        if let value { batch.setValue(value, forKey: key) } else { batch.removeValue(forKey: key) }
      }
    }
    return batch
  }

  /// Plans the insertion of the items whose ids are neither in the queue nor remembered.
  func planEnqueuing(
    _ new: [NewItem], _ plan: inout QueuePlan, in transaction: StoreTransaction<Base>? = nil
  ) async throws -> [EnqueuedItem] {
    let ids = new.filter(\.item.hasCallersKey).map(\.item.key)
    plan.read(try await read(ids.map(layout.itemKey) + ids.map(layout.rememberedKey), .enqueue, in: transaction))
    return new.map { new in
      let key = new.item.key
      if new.item.hasCallersKey, let original = plan.original(of: key) {
        return EnqueuedItem(key: key, sequence: original, isDuplicate: true)
      }
      for (key, value) in new.plan.changes { plan.set(value, forKey: key) }
      return EnqueuedItem(key: key, sequence: new.sequence)
    }
  }
}
