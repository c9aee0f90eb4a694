public import Larder

extension IndexedStore {
  /// A change of one entry, with the index keys before and after it.
  struct EntryChange: Sendable {
    let key: StoreKey
    let old: [UInt8]?
    var new: [UInt8]?
    /// The keys of the index entries of the old value, with their indexes.
    var oldEntries: [StoreKey: ActiveIndex<Value>] = [:]
    /// The keys of the index entries of the new value, with their indexes.
    var newEntries: [StoreKey: ActiveIndex<Value>] = [:]
  }

  /// A change of one index entry.
  struct IndexChange: Sendable {
    let entryKey: StoreKey
    let isUnique: Bool
    /// The entries of the batch that no longer have the index key.
    var formerKeys: Set<StoreKey> = []
    /// The entry that has the index key from now on, if any.
    var key: StoreKey?

    /// Returns the change of the entry of a unique index.
    ///
    /// - Parameters:
    ///   - old: The content of the index entry.
    ///   - refusal: Returns the error if the index key belongs to an entry outside the batch.
    func change(
      of old: [UInt8]?, orRefuse refusal: (StoreKey) -> any Error
    ) -> ConditionalCommit<any Error>.ComputedChange {
      let owner = old.map { StoreKey(bytes: $0) }
      let isFree = owner.map { $0 == key || formerKeys.contains($0) } ?? true
      // Without a new owner, the index key may belong to another entry while the index is incomplete.
      guard isFree else { return key.map { .refuse(refusal($0)) } ?? .keep }
      return .set(key?.bytes)
    }
  }

  /// An encoded value, with the value itself.
  private struct Encoded: Sendable {
    let bytes: [UInt8]
    let value: Value
  }

  /// Applies several changes and those of the indexes, all or none of them; see `DataStore`.
  ///
  /// The keys of unique indexes are checked after the whole batch, so that two entries can exchange theirs.
  ///
  /// - Throws: The errors of `apply(_:)`; `notUnique`; `valueTooLarge` if an index key does not fit into a key of the base;
  ///   `versionMismatch` if another program has defined other indexes; `conflict`, with nothing changed, if other
  ///   programs kept changing the same entries or inserting entries into a range that the batch removes.
  public func apply(_ changes: ChangeBatch<Value>) async throws {
    try information.check(changes)
    try await running(.apply) {
      let format = values.codecRecord.format
      let encoded = try await BulkWork.run(atMost: changes.count) { [self] allowance in
        try changes.changes.map { change in
          try change.mapValue { key, value in
            Encoded(
              bytes: try allowance.encode { try encode(value, forKey: key, during: .apply) }, value: value)
          }
        }
      }
      guard let last = encoded.last, !last.removesEverything else {
        // Programs with other indexes or an older codec remove nothing either.
        if !encoded.isEmpty { try checkDefinitions(of: try await reloadCatalog(for: .apply), for: .apply) }
        return try await removeEverything(encoded.isEmpty)
      }
      let ranges = encoded.compactMap(\.removedRange).filter { !$0.isEmpty }
      let removal = AnnouncedRemoval(of: ranges)
      try await commit(.apply, removal == nil ? .shared : .exclusive, encodedIn: format) { known in
        if let removal { try await announce(removal) }
        let keys = try await keysToChange(by: encoded, in: ranges)
        let old = try await callingBase(.apply) { try await base.values(forKeys: keys.map(layout.valueKey)) }
        let new = ChangeBatch(encoded).result(forKeys: keys)
        let changes = try await entryChanges(
          keys, old, new: new.map { $0?.bytes }, values: new.map { $0?.value }, known, .apply)
        return (Plan(changes: changes, removal: removal), ())
      }
    }
  }

  /// Removes all entries in one batch, unless there is nothing to do.
  private func removeEverything(_ isNothing: Bool) async throws {
    let ranges = isNothing ? [] : [layout.values, layout.indexEntries]
    try await callingBase(.apply) { try await base.apply(ChangeBatch(ranges.map { .removeAll($0) })) }
  }

  /// Announces the removal of a range; see ``AnnouncedRemovals``.
  private func announce(_ removal: AnnouncedRemoval) async throws {
    let store = information.name
    try await callingBase(.apply) {
      try await base.update([layout.removalsKey]) { slots in
        var removals = AnnouncedRemovals(slots[0])
        removals.announce(removal)
        slots[0] = try removals.record(store: store, for: .apply)
      }
    }
  }

  /// Returns the keys that a batch sets or removes, including the existing keys in its ranges.
  private func keysToChange(by changes: [BatchChange<Encoded>], in ranges: [KeyRange]) async throws -> [StoreKey] {
    var keys = Set(changes.compactMap(\.key))
    for range in ranges {
      let found = try await callingBase(.apply) {
        try await base.keys(in: layout.valueRange(range), limit: .max, order: .ascending)
      }
      keys.formUnion(found.map(layout.key(ofValue:)))
    }
    return keys.sorted()
  }

  /// Reads, changes and writes back several values and their index entries as one step; see `DataStore`.
  ///
  /// - Throws: The errors of ``apply(_:)``.
  public func update<Result: Sendable>(
    deciding keys: [StoreKey],
    _ body: @escaping @Sendable (inout UpdateSlots<Value>) -> UpdateDecision<Result>
  ) async throws -> Result {
    try information.check(updateOf: keys)
    return try await running(.update) {
      try await commit(.update, .shared) { known in
        let old = try await callingBase(.update) { try await base.values(forKeys: keys.map(layout.valueKey)) }
        var slots = UpdateSlots(
          stored: try await BulkWork.run(atMost: keys.count) { [self] allowance in
            try zip(keys, old).map { key, bytes -> Value? in
              guard let bytes else { return nil }
              try allowance.take(bytes.count)
              return try decode(bytes, forKey: key, during: .update)
            }
          })
        try Task.checkCancellation()
        let decision = body(&slots)
        guard decision.isCommit else { return (nil, decision.result) }
        let values = slots
        let new = try await BulkWork.run(atMost: keys.count) { [self] allowance in
          try keys.indices.map { number -> [UInt8]? in
            guard values.isAssigned(number) else { return old[number] }
            guard let value = values[number] else { return nil }
            return try allowance.encode {
              try encode(value, forKey: keys[number], replacing: old[number], during: .update)
            }
          }
        }
        let changes = try await entryChanges(keys, old, new: new, values: Array(values), known, .update)
        return (Plan(changes: changes), decision.result)
      }
    }
  }

  // MARK: Planning

  /// Determines the index entries of changed entries.
  func entryChanges(
    _ keys: [StoreKey], _ old: [[UInt8]?], new: [[UInt8]?], values: [Value?], _ known: KnownCatalog<Value>,
    _ operation: StoreOperation
  ) async throws -> [EntryChange] {
    guard !known.active.isEmpty else {
      return keys.indices.map { EntryChange(key: keys[$0], old: old[$0], new: new[$0]) }
    }
    // An undecodable value is replaced or removed like any other, but its index entries have to be searched for.
    let (changes, undecodable) = try await BulkWork.run(atMost: keys.count) { [self] allowance in
      var undecodable: [Int] = []
      let changes = try keys.indices.map { number in
        var change = EntryChange(key: keys[number], old: old[number], new: new[number])
        try allowance.take((change.old?.count ?? 0) + (change.new?.count ?? 0))
        if let bytes = change.old {
          do {
            let value = try decode(bytes, forKey: change.key, during: operation)
            // A value from before the index existed may have an index key that does not fit.
            change.oldEntries = entryKeys(change.key, value, known.active).filter { fits($0.key) }
          } catch is StoreError {
            undecodable.append(number)
          }
        }
        if let value = values[number] {
          change.newEntries = entryKeys(change.key, value, known.active)
          try check(change.newEntries, of: change.key, during: operation)
        }
        return change
      }
      return (changes, undecodable)
    }
    guard !undecodable.isEmpty else { return changes }
    var complete = changes
    let found = try await indexEntries(of: Set(undecodable.map { keys[$0] }), known, operation)
    for number in undecodable { complete[number].oldEntries = found[keys[number]] ?? [:] }
    return complete
  }

  /// Returns the keys of the index entries of a value, with their indexes.
  func entryKeys(_ key: StoreKey, _ value: Value, _ indexes: [ActiveIndex<Value>]) -> [StoreKey: ActiveIndex<Value>] {
    var entries: [StoreKey: ActiveIndex<Value>] = [:]
    for index in indexes {
      for components in index.definition.keys(key, value) {
        entries[layout.entryKey(index.id, components, index.definition.isUnique ? nil : key)] = index
      }
    }
    return entries
  }

  /// Whether the base accepts the key of an index entry.
  func fits(_ entryKey: StoreKey) -> Bool { entryKey.count <= base.information.maximumKeyLength }

  /// Throws `valueTooLarge` if the key of an index entry is too long.
  func check(
    _ entries: [StoreKey: ActiveIndex<Value>], of key: StoreKey, during operation: StoreOperation
  ) throws {
    for (entryKey, index) in entries where !fits(entryKey) {
      throw StoreError(
        .valueTooLarge, during: operation, store: information.name, key: key,
        message: "an entry of the index '\(index.definition.name)' needs a key of \(entryKey.count) bytes; at most "
          + "\(base.information.maximumKeyLength) are allowed, so index a shorter part of the value")
    }
  }

  /// Searches all indexes for the entries of some keys.
  private func indexEntries(
    of keys: Set<StoreKey>, _ known: KnownCatalog<Value>, _ operation: StoreOperation
  ) async throws -> [StoreKey: [StoreKey: ActiveIndex<Value>]] {
    var found: [StoreKey: [StoreKey: ActiveIndex<Value>]] = [:]
    for index in known.active {
      for try await entry in indexEntries(of: index, operation) {
        let key = try owner(of: entry, in: index, during: operation)
        if keys.contains(key) { found[key, default: [:]][entry.key] = index }
      }
    }
    return found
  }

  // MARK: Committing

  /// The changes of a commit.
  struct Plan: Sendable {
    let changes: [EntryChange]
    /// The announcement that must still be there, if the changes remove a range.
    var removal: AnnouncedRemoval?

    /// Returns the change of the record of announced removals.
    ///
    /// It is stale if the announcement of this removal has been withdrawn.
    func change(
      of record: [UInt8]?, store: String, for operation: StoreOperation
    ) -> ConditionalCommit<any Error>.ComputedChange {
      guard record != nil || removal != nil else { return .keep }
      let old = AnnouncedRemovals(record)
      var removals = old
      if let removal, !removals.withdraw(removal) { return .isStale }
      removals.withdraw(covering: changes.filter { $0.old == nil && $0.new != nil }.map(\.key))
      if removals == old { return .keep }
      do {
        return .set(try removals.record(store: store, for: operation))
      } catch {
        return .refuse(error)
      }
    }
  }

  /// Plans and commits changes, again if something changes between planning and committing.
  ///
  /// - Parameters:
  ///   - operation: The operation, for errors.
  ///   - access: Whether other writers of this object may run at the same time in the first attempt.
  ///   - format: The format of the values that are encoded already. Defaults to `nil`, for none.
  ///   - plan: A closure that reads what it needs and plans the changes, or returns `nil` to change nothing.
  private func commit<Result: Sendable>(
    _ operation: StoreOperation, _ access: WriteGate.Access, encodedIn format: CodecRecord.Format? = nil,
    _ plan: (KnownCatalog<Value>) async throws -> (Plan?, Result)
  ) async throws -> Result {
    var known = known
    return try await information.repeating(operation) { number in
      if number > 0 { known = try await reloadCatalog(for: operation) }
      // After a first attempt, the other writers of this object wait, so that only other programs can interfere again.
      return try await gate.withAccess(number == 0 ? access : .exclusive) {
        try checkDefinitions(of: known, for: operation)
        let format = format ?? values.codecRecord.format
        let (plan, result) = try await plan(known)
        guard let plan else { return result }
        try values.codecRecord.checkUnchanged(since: format, during: operation, store: information.name)
        let commit = try commit(of: plan, known, operation)
        let outcome = try await callingBase(operation) { try await base.perform(commit) }
        if case .refused(let error) = outcome { throw error }
        return outcome.isPerformed ? result : nil
      }
    }
  }

  /// Returns the changes of entries and indexes, on condition that nothing that was read has changed.
  ///
  /// - Throws: `StoreError` with `notUnique` if two of the entries have the same key of a unique index.
  private func commit(
    of plan: Plan, _ known: KnownCatalog<Value>, _ operation: StoreOperation
  ) throws -> ConditionalCommit<any Error> {
    var commit = try indexCommit(of: plan, operation)
    commit.require(known.bytes, forKey: layout.catalogKey)
    for change in plan.changes {
      commit.require(change.old, forKey: layout.valueKey(change.key))
      commit.setValue(change.new, forKey: layout.valueKey(change.key))
    }
    return commit
  }

  /// Returns the changes of indexes and announced removals that belong to changes of entries.
  ///
  /// - Throws: `StoreError` with `notUnique` if two of the entries have the same key of a unique index.
  func indexCommit(of plan: Plan, _ operation: StoreOperation) throws -> ConditionalCommit<any Error> {
    var commit = ConditionalCommit<any Error>()
    let (store, removalsKey) = (information.name, layout.removalsKey)
    commit.computeValue(forKey: removalsKey) { plan.change(of: $0(removalsKey), store: store, for: operation) }
    for change in try indexChanges(of: plan.changes, operation) {
      let entryKey = change.entryKey
      guard change.isUnique else {
        commit.setValue(change.key.map { _ in [] }, forKey: entryKey)
        continue
      }
      commit.computeValue(forKey: entryKey) { [self] stored in
        change.change(of: stored(entryKey)) { key in
          notUnique(key, plan.changes.lazy.compactMap { $0.newEntries[entryKey] }.first, operation)
        }
      }
    }
    return commit
  }

  /// Returns the changes of index entries that belong to changes of entries.
  ///
  /// - Throws: `StoreError` with `notUnique` if two of the entries have the same key of a unique index.
  private func indexChanges(of changes: [EntryChange], _ operation: StoreOperation) throws -> [IndexChange] {
    var result: [StoreKey: IndexChange] = [:]
    for change in changes {
      for (entryKey, index) in change.oldEntries where change.newEntries[entryKey] == nil {
        result[entryKey, default: IndexChange(entryKey: entryKey, isUnique: index.definition.isUnique)]
          .formerKeys.insert(change.key)
      }
    }
    for change in changes {
      for (entryKey, index) in change.newEntries {
        // An incomplete index may lack the entry of the old value.
        if index.isComplete, change.oldEntries[entryKey] != nil { continue }
        let indexChange = result[
          entryKey, default: IndexChange(entryKey: entryKey, isUnique: index.definition.isUnique)]
        guard indexChange.key == nil else { throw notUnique(change.key, index, operation) }
        result[entryKey, default: indexChange].key = change.key
      }
    }
    return Array(result.values)
  }

  /// The error of an index key that belongs to another entry already.
  private func notUnique(
    _ key: StoreKey, _ index: ActiveIndex<Value>?, _ operation: StoreOperation
  ) -> StoreError {
    StoreError(
      .notUnique, during: operation, store: information.name, key: key,
      message: "another entry already has the same key in the unique index '\(index?.definition.name ?? "")'")
  }

  // MARK: Values

  func encode(
    _ value: Value, forKey key: StoreKey, replacing stored: [UInt8]? = nil, during operation: StoreOperation
  ) throws -> [UInt8] {
    try values.bytes(of: value, forKey: key, replacing: stored, during: operation)
  }

  func decode(_ bytes: [UInt8], forKey key: StoreKey, during operation: StoreOperation) throws -> Value {
    try values.value(of: bytes, forKey: key, during: operation)
  }
}

extension BatchChange {
  /// The range that the change removes, or `nil` if it concerns one key.
  fileprivate var removedRange: KeyRange? {
    if case .removeAll(let range) = self { range } else { nil }
  }

  /// Whether the change removes every entry.
  fileprivate var removesEverything: Bool { removedRange == .all }
}

extension ChangeBatch {
  /// Returns the values of some keys after the batch, for keys that the batch sets or removes.
  fileprivate func result(forKeys keys: [StoreKey]) -> [Value?] {
    var last: [StoreKey: Value] = [:]
    for change in changes {
      switch change {
      case .set(let key, let value): last[key] = value
      case .remove(let key): last[key] = nil
      case .removeAll(let range):
        for key in last.keys where range.contains(key) { last[key] = nil }
      }
    }
    return keys.map { last[$0] }
  }
}
