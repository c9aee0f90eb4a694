public import Larder

/// The queue as a store.
extension StoreQueue {
  /// Applies several changes atomically; see `DataStore`.
  ///
  /// Setting an existing key replaces its item without changing the item's position. Setting a new key enqueues an item.
  /// Removing a key withdraws its item.
  ///
  /// - Throws: The errors of `DataStore.apply(_:)`; `StoreError` with `conflict` if other programs kept changing the same
  ///   items.
  public func apply(_ changes: ChangeBatch<Element>) async throws {
    try information.check(changes)
    try await running(.apply) {
      // The base knows whether it is closed.
      let format = coder.codecRecord.format
      if changes.isEmpty { return try await callingBase(.apply) { try await base.apply([]) } }
      let encoded = try await BulkWork.encode(changes) { [coder] value, key in
        try coder.bytes(of: value, forKey: key, during: .apply)
      }
      let removesRange = encoded.contains { if case .removeAll = $0 { true } else { false } }
      // No other writer may insert an item into a range between the reading of its keys and the commit.
      try await committing(.apply, removesRange ? .exclusive : .shared) {
        var keys: Set<StoreKey> = []
        for change in encoded {
          switch change {
          case .set(let key, _), .remove(let key): keys.insert(key)
          case .removeAll(let range): keys.formUnion(try await items.keys(in: range, limit: .max, order: .ascending))
          }
        }
        var plan = newPlan()
        try await readItems(keys.sorted(), into: &plan, .apply)
        try coder.codecRecord.checkUnchanged(since: format, during: .apply, store: information.name)
        for change in encoded {
          switch change {
          case .set(let key, let payload): set(payload, forKey: key, &plan)
          case .remove(let key): remove(key, &plan)
          case .removeAll(let range):
            for key in keys where range.contains(key) { remove(key, &plan) }
          }
        }
        try await finishGroups(&plan, .apply)
        return (plan, ())
      }
    }
  }

  /// Reads, modifies and writes the items of several keys atomically; see `DataStore`.
  ///
  /// The body runs before the commit, and runs again if another writer changes the same items at the same time. An item
  /// that it does not assign, or that stays the same, keeps its lease.
  ///
  /// - Throws: The errors of `DataStore.update(deciding:_:)`; `StoreError` with `conflict` if other programs kept changing
  ///   the same items.
  public func update<Result: Sendable>(
    deciding keys: [StoreKey], _ body: @escaping UpdateBody<Element, Result>
  ) async throws -> Result {
    try information.check(updateOf: keys)
    return try await running(.update) {
      try await committing(.update) {
        try Task.checkCancellation()
        var plan = newPlan()
        try await readItems(keys, into: &plan, .update)
        let before = keys.map { plan.value(forKey: layout.itemKey($0)) }
        var slots = UpdateSlots(
          stored: try zip(keys, before).map { key, bytes in try bytes.map { try decode($0, key, during: .update) } })
        let decision = body(&slots)
        let payloads = before.map { $0.flatMap { StoredItem($0)?.payload } }
        let assigned = decision.isCommit ? slots.assignedIndices : []
        for index in assigned { plan.report(layout.itemKey(keys[index])) }
        for (key, bytes) in assigned.isEmpty ? [] : try coder.changes(in: slots, of: keys, stored: payloads) {
          if let bytes { set(Array(bytes), forKey: key, &plan) } else { remove(key, &plan) }
        }
        try await finishGroups(&plan, .update)
        return (plan, decision.result)
      }
    }
  }

  /// Compares the codec with the record that a plan has read.
  ///
  /// There is no record if the base was emptied.
  func compareCodec(_ plan: QueuePlan, _ operation: StoreOperation) throws {
    if let record = plan.value(forKey: layout.formatKey) { _ = try self.record(replacing: record, during: operation) }
  }

  /// Reads the items of keys and their states, and compares the codec with the record, as part of the plan.
  ///
  /// An older program must not replace an item of a newer one.
  private func readItems(_ keys: [StoreKey], into plan: inout QueuePlan, _ operation: StoreOperation) async throws {
    let stored = try await read([layout.formatKey] + keys.map(layout.itemKey), operation)
    plan.read(stored)
    try compareCodec(plan, operation)
    let sequences = keys.compactMap { plan.value(forKey: layout.itemKey($0)).flatMap { StoredItem($0)?.sequence } }
    plan.read(try await read(sequences.map(layout.stateKey), operation))
  }

  /// Returns the item of a key after the changes of a plan so far, if both its value and its state can be read.
  private func live(_ key: StoreKey, _ plan: QueuePlan) -> (sequence: UInt128, item: ItemRecord)? {
    guard let stored = plan.value(forKey: layout.itemKey(key)).flatMap({ StoredItem($0) }) else { return nil }
    return plan.item(stored.sequence).map { (stored.sequence, $0) }
  }

  private func set(_ payload: [UInt8], forKey key: StoreKey, _ plan: inout QueuePlan) {
    plan.report(layout.itemKey(key))
    if let (sequence, item) = live(key, plan) {
      plan.change(sequence, from: item, to: item.replaced)
      plan.set(StoredItem.bytes(sequence, payload), forKey: layout.itemKey(key))
    } else {
      let item = ItemRecord(key: key, group: nil, priority: 0, hasCallersKey: true, arrival: plan.now)
      plan.insert(nextSequence(), item, delay: 0, payload: payload)
    }
  }

  private func remove(_ key: StoreKey, _ plan: inout QueuePlan) {
    plan.report(layout.itemKey(key))
    if let (sequence, item) = live(key, plan) {
      plan.remove(sequence, item, remembering: false)
    } else if plan.value(forKey: layout.itemKey(key)) != nil {
      plan.set(nil, forKey: layout.itemKey(key))
    }
  }
}
