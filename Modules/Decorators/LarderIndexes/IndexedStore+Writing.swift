public import Larder

extension IndexedStore {
  /// A change of one entry, with the index keys before and after it.
  struct EntryChange: Sendable {
    let key: StoreKey
    /// The new bytes, or `nil` to remove the entry.
    let new: [UInt8]?
    /// The record of the list of the old index entries.
    let oldList: [UInt8]?
    /// The keys of the old index entries, with their indexes.
    let oldEntries: [StoreKey: ActiveIndex<Value>]
    /// The keys of the index entries of the new value, with their indexes.
    let newEntries: [StoreKey: ActiveIndex<Value>]
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
      // Without a new owner, the index key belongs to another entry only if the index is damaged.
      guard isFree else { return key.map { .refuse(refusal($0)) } ?? .keep }
      return .set(key?.bytes)
    }
  }

  /// An encoded value, with the value itself.
  private struct Encoded: Sendable {
    let bytes: [UInt8]
    let value: Value
  }

  /// Applies several changes and updates the indexes, in one commit; see `DataStore`.
  ///
  /// The keys of unique indexes are checked after the whole batch, so two entries can exchange theirs.
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
        let lists = try await callingBase(.apply) { try await base.values(forKeys: keys.map(layout.listKey)) }
        let new = ChangeBatch(encoded).result(forKeys: keys)
        let changes = try await entryChanges(
          keys, lists: lists, new: new.map { $0?.bytes }, values: new.map { $0?.value }, known, .apply)
        return (Plan(changes: changes, removal: removal), ())
      }
    }
  }

  /// Removes all entries in one batch, unless there is nothing to do.
  private func removeEverything(_ isNothing: Bool) async throws {
    let ranges = isNothing ? [] : [layout.values, layout.indexEntries, layout.entryLists, layout.undecodable]
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
        try await base.keys(in: layout.valueKeys.storedRange(range), limit: .max, order: .ascending)
      }
      keys.formUnion(found.map(layout.key(ofValue:)))
    }
    return keys.sorted()
  }

  /// Reads, changes and writes back several values and their index entries as one step; see `DataStore`.
  ///
  /// - Throws: The errors of ``apply(_:)``.
  public func update<Result: Sendable>(
    deciding keys: [StoreKey], _ body: @escaping UpdateBody<Value, Result>
  ) async throws -> Result {
    try information.check(updateOf: keys)
    return try await running(.update) {
      try await commit(.update, .shared) { known in
        let stored = try await callingBase(.update) {
          try await base.values(forKeys: keys.map(layout.valueKey) + keys.map(layout.listKey))
        }
        let (old, lists) = (Array(stored.prefix(keys.count)), Array(stored.dropFirst(keys.count)))
        var slots = UpdateSlots(
          stored: try await BulkWork.decode(old, forKeys: keys) { [self] in try decode($0, forKey: $1, during: .update)
          })
        try Task.checkCancellation()
        let decision = body(&slots)
        guard decision.isCommit else { return (nil, decision.result) }
        let (assigned, values) = (slots.assignedIndices, slots)
        let new = try await BulkWork.run(atMost: assigned.count) { [self] allowance in
          try assigned.map { number -> [UInt8]? in
            guard let value = values[number] else { return nil }
            return try allowance.encode {
              try encode(value, forKey: keys[number], replacing: old[number], during: .update)
            }
          }
        }
        let changes = try await entryChanges(
          assigned.map { keys[$0] }, lists: assigned.map { lists[$0] }, new: new, values: assigned.map { values[$0] },
          known, .update)
        return (Plan(changes: changes, read: zip(keys, old).map { ($0, $1) }), decision.result)
      }
    }
  }

  // MARK: Planning

  /// Determines the index entries of changed entries.
  ///
  /// - Parameters:
  ///   - keys: The keys of the entries.
  ///   - lists: The records of the lists of their index entries.
  ///   - new: The new bytes, or `nil` for an entry that is removed.
  ///   - values: The new values.
  ///   - known: The catalog.
  ///   - operation: The operation, for errors.
  func entryChanges(
    _ keys: [StoreKey], lists: [[UInt8]?], new: [[UInt8]?], values: [Value?], _ known: KnownCatalog<Value>,
    _ operation: StoreOperation
  ) async throws -> [EntryChange] {
    let changes = try await BulkWork.run(atMost: keys.count) { [self] allowance in
      try keys.indices.map { number in
        let key = keys[number]
        try allowance.take((lists[number]?.count ?? 0) + (new[number]?.count ?? 0))
        let newEntries = values[number].map { entryKeys(key, $0, known.active) } ?? [:]
        try check(newEntries, of: key, during: operation)
        return EntryChange(
          key: key, new: new[number], oldList: lists[number],
          oldEntries: try entries(in: lists[number], of: key, known.active, during: operation), newEntries: newEntries)
      }
    }
    try await checkUniqueness(of: changes, known, operation)
    return changes
  }

  /// Throws `indexIncomplete` if changes add keys to a unique index that lacks those of undecodable values.
  private func checkUniqueness(
    of changes: [EntryChange], _ known: KnownCatalog<Value>, _ operation: StoreOperation
  ) async throws {
    guard known.catalog.undecodableCount > 0 else { return }
    let addition = changes.lazy.compactMap { change in
      change.newEntries.first { entryKey, index in
        index.definition.isUnique && !index.isComplete && change.oldEntries[entryKey] == nil
      }.map { (key: change.key, index: $0.value) }
    }.first
    guard let addition else { return }
    // The catalog counts each value that is remembered, so that the commit is stale if another one is.
    let undecodable = try await callingBase(operation) {
      try await base.keys(in: layout.undecodable, limit: changes.count + 1, order: .ascending)
    }
    guard !Set(undecodable.map(layout.key(ofUndecodable:))).isSubset(of: changes.map(\.key)) else { return }
    throw StoreError(
      .indexIncomplete, during: operation, store: information.name, key: addition.key,
      message:
        "the unique index '\(addition.index.definition.name)' lacks the keys of values that cannot be decoded, so it "
        + "accepts no new ones; rebuild the indexes with a program that can decode the values, or replace or remove those "
        + "that a rebuild reports")
  }

  /// Returns the keys of the index entries of a value, with their indexes.
  func entryKeys(_ key: StoreKey, _ value: Value, _ indexes: [ActiveIndex<Value>]) -> [StoreKey: ActiveIndex<Value>] {
    var entries: [StoreKey: ActiveIndex<Value>] = [:]
    for index in indexes {
      for components in index.definition.keys(key, value) {
        entries[layout.entryKey(index.id, components, key, isUnique: index.definition.isUnique)] = index
      }
    }
    return entries
  }

  /// A Boolean value that indicates whether the base accepts the key of an index entry.
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

  // MARK: Committing

  /// The changes of a commit.
  struct Plan: Sendable {
    let changes: [EntryChange]
    /// The announcement that must still be there, if the changes remove a range.
    var removal: AnnouncedRemoval?
    /// The keys and bytes of the values that the changes depend on.
    var read: [(key: StoreKey, bytes: [UInt8]?)] = []

    /// Returns the change of the record of announced removals.
    ///
    /// It is stale if the announcement of this removal has been withdrawn.
    ///
    /// - Parameters:
    ///   - record: The record.
    ///   - insertedKeys: The keys that the commit inserts.
    ///   - store: The name of the store in errors.
    ///   - operation: The operation in errors.
    func change(
      of record: [UInt8]?, insertedKeys: [StoreKey], store: String, for operation: StoreOperation
    ) -> ConditionalCommit<any Error>.ComputedChange {
      guard record != nil || removal != nil else { return .keep }
      let old = AnnouncedRemovals(record)
      var removals = old
      if let removal, !removals.withdraw(removal) { return .isStale }
      removals.withdraw(covering: insertedKeys)
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
  ///   - access: The access of the first attempt: shared with other writers of this object, or exclusive.
  ///   - format: The format of the values that are encoded already. Defaults to `nil`.
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
    var commit = try indexCommit(of: plan, known, operation)
    commit.require(known.bytes, forKey: layout.catalogKey)
    for (key, bytes) in plan.read { commit.require(bytes, forKey: layout.valueKey(key)) }
    for change in plan.changes {
      commit.require(change.oldList, forKey: layout.listKey(change.key))
      commit.setValue(change.new, forKey: layout.valueKey(change.key))
      commit.report(layout.valueKey(change.key))
    }
    return commit
  }

  /// Returns the changes of indexes and announced removals that belong to changes of entries.
  ///
  /// - Throws: `StoreError` with `notUnique` if two of the entries have the same key of a unique index.
  func indexCommit(
    of plan: Plan, _ known: KnownCatalog<Value>, _ operation: StoreOperation
  ) throws -> ConditionalCommit<any Error> {
    var commit = ConditionalCommit<any Error>()
    let (store, removalsKey) = (information.name, layout.removalsKey)
    let setKeys = plan.changes.filter { $0.new != nil }.map { (key: $0.key, valueKey: layout.valueKey($0.key)) }
    commit.computeValue(forKey: removalsKey, reading: setKeys.map(\.valueKey)) { stored in
      let record = stored(removalsKey)
      let insertedKeys = record == nil ? [] : setKeys.filter { stored($0.valueKey) == nil }.map(\.key)
      return plan.change(of: record, insertedKeys: insertedKeys, store: store, for: operation)
    }
    for change in plan.changes {
      commit.setValue(list(of: change.newEntries, of: change.key), forKey: layout.listKey(change.key))
      if known.catalog.undecodableCount > 0 { commit.setValue(nil, forKey: layout.undecodableKey(change.key)) }
    }
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
      for (entryKey, index) in change.newEntries where change.oldEntries[entryKey] == nil {
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

  /// A Boolean value that indicates whether the change removes every entry.
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
