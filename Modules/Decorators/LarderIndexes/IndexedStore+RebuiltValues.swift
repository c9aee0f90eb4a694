import Larder

extension IndexedStore {
  /// A value that a step of a rebuild has read.
  struct RebuiltValue: Sendable {
    let key: StoreKey
    /// The stored bytes, or `nil` if a value that could not be decoded is missing now.
    let bytes: [UInt8]?
    /// The record of the list of its index entries.
    let list: [UInt8]?
    /// A Boolean value that indicates whether it could not be decoded before, so its key is remembered.
    let isRemembered: Bool
    /// The error if the value cannot be decoded.
    var problem: StoreError?
    /// The keys of its entries in the incomplete indexes, as they are listed.
    var oldEntries: [StoreKey: ActiveIndex<Value>] = [:]
    /// The keys of its entries in the incomplete indexes, as they should be.
    var newEntries: [StoreKey: ActiveIndex<Value>] = [:]
    /// A Boolean value that indicates whether the list has only entries of former indexes, so another rebuild may remove it.
    var isListFormer = false
    /// The record of the new list.
    var newList: [UInt8]?
  }

  /// Determines the index entries of values.
  ///
  /// - Parameters:
  ///   - values: The keys and bytes.
  ///   - known: The catalog.
  ///   - isRemembered: A Boolean value that indicates whether the values could not be decoded before.
  /// - Throws: `StoreError` if a value cannot be decrypted or indexed, or if a newer program wrote it.
  func rebuilt(
    _ values: [(key: StoreKey, bytes: [UInt8]?)], _ known: KnownCatalog<Value>, isRemembered: Bool
  ) async throws -> [RebuiltValue] {
    let lists = try await callingBase(.rebuildIndexes) {
      try await base.values(forKeys: values.map { layout.listKey($0.key) })
    }
    let incomplete = known.active.filter { !$0.isComplete }
    return try await BulkWork.run(atMost: values.count) { [self] allowance in
      try values.indices.map { number in
        let (key, bytes) = values[number]
        try allowance.take(bytes?.count ?? 0)
        var result = RebuiltValue(key: key, bytes: bytes, list: lists[number], isRemembered: isRemembered)
        if let bytes {
          switch try decoded(bytes, forKey: key) {
          case .success(let value): result.newEntries = entryKeys(key, value, incomplete)
          case .failure(let problem):
            result.problem = problem
            return result
          }
        }
        try check(result.newEntries, of: key, during: .rebuildIndexes)
        let listed = try entries(in: lists[number], of: key, known.active, during: .rebuildIndexes)
        result.oldEntries = listed.filter { !$0.value.isComplete }
        let others = listed.filter(\.value.isComplete)
        result.isListFormer = listed.isEmpty
        result.newList = list(of: others.merging(result.newEntries) { $1 }, of: key)
        return result
      }
    }
  }

  /// Decodes a value for a rebuild.
  ///
  /// - Returns: The value, or the error of a value that can never be decoded by this program.
  /// - Throws: `StoreError` with `keyUnavailable`, or with `versionMismatch`, which is not about the value.
  private func decoded(_ bytes: [UInt8], forKey key: StoreKey) throws -> Result<Value, StoreError> {
    do {
      return .success(try decode(bytes, forKey: key, during: .rebuildIndexes))
    } catch let error as StoreError where ![.keyUnavailable, .versionMismatch].contains(error.code) {
      return .failure(error)
    }
  }

  /// Throws the error of the first value if no value of the store can be decoded, which is a mistake in your program.
  ///
  /// - Parameters:
  ///   - first: The first values of the store.
  ///   - last: The key of the last one of them in the base.
  func checkSomeValueDecodes(_ first: [RebuiltValue], before last: StoreKey?) async throws {
    guard let problem = first.first?.problem, first.allSatisfy({ $0.problem != nil }), let last else { return }
    var range = layout.values.after(last)
    while true {
      try Task.checkCancellation()
      let entries = try await callingBase(.rebuildIndexes) {
        try await base.entries(in: range, limit: Self.sliceSize, order: .ascending)
      }
      guard let next = entries.last?.key else { break }
      range = try range.rest(behind: next, of: information.name, during: .rebuildIndexes)
      let isAnyDecodable = try await BulkWork.run(atMost: entries.count) { [self] allowance in
        try entries.contains { entry in
          try allowance.take(entry.value.count)
          if case .success = try decoded(entry.value, forKey: layout.key(ofValue: entry.key)) { return true }
          return false
        }
      }
      if isAnyDecodable { return }
    }
    throw StoreError(
      problem.code, during: .rebuildIndexes, store: information.name, key: problem.key,
      message:
        "none of the values can be decoded, so the program probably has a wrong type or codec",
      underlying: problem)
  }

  // MARK: Committing

  /// Returns the commit of a step that leaves out the values that have changed since they were read.
  ///
  /// The writer of such a value has changed its index entries itself.
  func commit(of values: [RebuiltValue], _ known: KnownCatalog<Value>) throws -> ConditionalCommit<any Error> {
    var commit = ConditionalCommit<any Error>()
    commit.require(known.bytes, forKey: layout.catalogKey)
    // Two values can have the same key of a unique index.
    var entries: [StoreKey: [EntryOfValue]] = [:]
    for value in values {
      let condition = condition(of: value)
      let undecodableKey = layout.undecodableKey(value.key)
      if value.isRemembered != (value.problem != nil) {
        let mark: [UInt8]? = value.problem == nil ? nil : []
        commit.computeValue(forKey: undecodableKey, reading: condition.keys) {
          condition.holds($0) ? .set(mark) : .keep
        }
      }
      guard value.problem == nil else { continue }
      commit.computeValue(forKey: layout.listKey(value.key), reading: condition.keys) {
        condition.holds($0) ? .set(value.newList) : .keep
      }
      for (entryKey, index) in value.oldEntries.merging(value.newEntries, uniquingKeysWith: { $1 }) {
        entries[entryKey, default: []].append(
          EntryOfValue(
            key: value.key, condition: condition, isAddition: value.newEntries[entryKey] != nil,
            name: index.definition.name, isUnique: index.definition.isUnique))
      }
    }
    for (entryKey, changes) in entries {
      commit.computeValue(forKey: entryKey, reading: changes.flatMap(\.condition.keys)) {
        [store = information.name] stored in
        var content = stored(entryKey)
        let current = changes.filter { $0.condition.holds(stored) }
        for change in current where !change.isAddition && (!change.isUnique || content == change.key.bytes) {
          content = nil
        }
        for change in current where change.isAddition {
          if change.isUnique, let content, content != change.key.bytes {
            return .refuse(
              StoreError(
                .notUnique, during: .rebuildIndexes, store: store, key: change.key,
                message: "another entry has the same key in the unique index '\(change.name)'; change one of them"))
          }
          content = change.isUnique ? change.key.bytes : []
        }
        return .set(content)
      }
    }
    let undecodableCount = values.count { $0.problem != nil && !$0.isRemembered }
    if undecodableCount > 0 {
      var catalog = known.catalog
      catalog.undecodableCount += undecodableCount
      commit.setValue(try catalog.bytes(store: information.name, for: .rebuildIndexes), forKey: layout.catalogKey)
    }
    return commit
  }

  /// The condition that a value and its list are as a step has read them, or that its list was removed with former indexes,
  /// which adds no entry.
  private struct Condition: Sendable {
    let valueKey: StoreKey
    let bytes: [UInt8]?
    let listKey: StoreKey
    let list: [UInt8]?
    let isListFormer: Bool

    var keys: [StoreKey] { [valueKey, listKey] }

    func holds(_ stored: (StoreKey) -> [UInt8]?) -> Bool {
      guard stored(valueKey) == bytes else { return false }
      let current = stored(listKey)
      return current == list || current == nil && isListFormer
    }
  }

  private func condition(of value: RebuiltValue) -> Condition {
    Condition(
      valueKey: layout.valueKey(value.key), bytes: value.bytes, listKey: layout.listKey(value.key), list: value.list,
      isListFormer: value.isListFormer)
  }

  /// An index entry that a step adds or removes.
  private struct EntryOfValue: Sendable {
    let key: StoreKey
    let condition: Condition
    let isAddition: Bool
    let name: String
    let isUnique: Bool
  }
}
