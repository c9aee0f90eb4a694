import Larder

/// Planning and performing changes of the base.
extension StoreQueue {
  /// Reads stored values in one snapshot, or through a transaction.
  func read(
    _ keys: [StoreKey], _ operation: StoreOperation, in transaction: StoreTransaction<Base>? = nil
  ) async throws -> [StoreKey: [UInt8]?] {
    guard !keys.isEmpty else { return [:] }
    let values = try await callingBase(operation) {
      if let transaction { return try await transaction.storedValues(forKeys: keys) }
      return try await base.values(forKeys: keys)
    }
    return Dictionary(zip(keys, values), uniquingKeysWith: { first, _ in first })
  }

  func newPlan() -> QueuePlan { QueuePlan(layout, rules, now: microseconds, randomness: randomness) }

  /// Adds to a plan what its changes mean for the other items of their groups.
  func finishGroups(
    _ plan: inout QueuePlan, _ operation: StoreOperation, in transaction: StoreTransaction<Base>? = nil
  ) async throws {
    for (group, touched) in plan.touchedGroups {
      let first = try await readFirst(of: group, except: touched.removed, &plan, operation, in: transaction)
      plan.finish(group, first: first)
    }
  }

  /// Reads the record of a group, and then the state of its first item, apart from some items.
  ///
  /// A base has no snapshot of its keys and its values together. The record is read first, because each change of the
  /// group replaces it, so the plan is stale if the items that are found afterward are not those of this record.
  ///
  /// Without a record, this proves nothing: a group that is emptied loses its record, and items that are enqueued need none. So a first
  /// item without a state was removed after the keys were read, and they are read again. If it is still there, its state is lost, and
  /// it is passed over.
  ///
  /// - Returns: The sequence number of the item, or `nil` if the group has no other item.
  func readFirst(
    of group: StoreKey, except removed: Set<UInt128> = [], _ plan: inout QueuePlan, _ operation: StoreOperation,
    in transaction: StoreTransaction<Base>? = nil
  ) async throws -> UInt128? {
    plan.read(try await read([layout.groupKey(group)], operation, in: transaction))
    var (passed, withoutState) = (removed, UInt128?.none)
    while true {
      let members = try await callingBase(operation) { [limit = passed.count + 1] in
        try await base.keys(in: layout.members(group), limit: limit, order: .ascending)
      }
      guard let first = members.lazy.compactMap({ self.layout.sequence(of: $0) }).first(where: { !passed.contains($0) })
      else { return nil }
      let stateKey = layout.stateKey(first)
      let state = try await read([stateKey], operation, in: transaction)
      guard state[stateKey] ?? nil == nil else {
        plan.read(state)
        return first
      }
      if withoutState == first { passed.insert(first) }
      withoutState = first
    }
  }

  /// Performs plans in one update of the base, each only if it is still current.
  ///
  /// - Parameters:
  ///   - plans: The plans.
  ///   - operation: The operation, for errors.
  ///   - isWanted: A Boolean value that indicates whether a plan is still wanted; see `DataStore.perform(_:where:)`.
  /// - Returns: The indices of the plans that were performed.
  func perform(
    _ plans: [QueuePlan], _ operation: StoreOperation,
    where isWanted: @escaping @Sendable (_ index: Int, _ performedCount: Int) -> Bool = { _, _ in true }
  ) async throws -> [Int] {
    let performed = try await callingBase(operation) {
      try await base.perform(plans.map(\.commit), where: isWanted)
    }
    noteChanges(performed.lazy.flatMap { plans[$0].changes })
    if let time = plans.map(\.now).max() { noteCommit(plannedAt: time) }
    deadLetterObservers.report(performed.flatMap { plans[$0].deadLetters })
    return performed
  }

  /// Wakes a consumer if changes can have made an item due and the base does not report them.
  func noteChanges(_ changes: some Sequence<(key: StoreKey, value: [UInt8]?)>) {
    guard !isObserved else { return }
    if changes.contains(where: { $0.value != nil && layout.concernsDelivery($0.key) }) { waits.signal() }
  }

  /// Plans and performs changes, again if something changes between planning and performing.
  ///
  /// - Parameters:
  ///   - operation: The operation, for errors.
  ///   - access: The access of the first attempt: shared with other writers of this object, or exclusive. Defaults to
  ///     `shared`.
  ///   - plan: A closure that reads what it needs and plans the changes.
  func committing<Result>(
    _ operation: StoreOperation, _ access: WriteGate.Access = .shared,
    _ plan: () async throws -> (QueuePlan, Result)
  ) async throws -> Result {
    try await information.repeating(operation) { number in
      try await gate.withAccess(number == 0 ? access : .exclusive) {
        let (plan, result) = try await plan()
        if plan.commit.isEmpty { return result }
        return try await perform([plan], operation).isEmpty ? nil : result
      }
    }
  }
}
