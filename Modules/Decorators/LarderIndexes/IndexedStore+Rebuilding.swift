public import Larder

extension IndexedStore {
  /// The number of values or index entries that a step of a rebuild or of a verification reads.
  static var sliceSize: Int { 128 }

  /// The names of the indexes that ``rebuildIndexes(fromScratch:)`` has yet to complete.
  ///
  /// ```swift
  /// let names = try await notes.incompleteIndexes()
  /// if !names.isEmpty { try await notes.rebuildIndexes() }
  /// ```
  ///
  /// - Returns: The names, in the order of the definitions.
  /// - Throws: `StoreError` with `closed`; `ioFailed`; `corrupted`.
  public func incompleteIndexes() async throws -> [String] {
    try await running(.rebuildIndexes) {
      let known = try await reloadCatalog(for: .rebuildIndexes)
      return indexes.map(\.name).filter { name in !known.active.contains { $0.isComplete && $0.definition.name == name }
      }
    }
  }

  /// Completes all new and changed indexes, and removes the remaining entries of former ones.
  ///
  /// ```swift
  /// let notes = try await bytes.indexed(by: [byTag], codec: .json(Note.self))
  /// try await notes.rebuildIndexes()
  /// ```
  ///
  /// The method is a no-op if there is nothing to do, so you can call it whenever you open the store. It works in small
  /// steps, each of them a commit. All entries can be read and written in the meantime, and queries of an index work as
  /// soon as the index is complete. If the process ends or the method throws, the next call continues after the last step.
  /// Several processes may rebuild at the same time.
  ///
  /// A value that cannot be decoded is a finding. Its key is remembered, and the next call tries again. Until it can be
  /// decoded, or is replaced or removed, the indexes stay incomplete, and no new key can be added to a unique one.
  ///
  /// - Parameter fromScratch: A Boolean value that indicates whether to drop the entries of all indexes first, for
  ///   example because ``verifyIndexes()`` has found differences. Queries throw `indexIncomplete` until the indexes are
  ///   complete again, even if the process ends before. Defaults to `false`.
  /// - Returns: The number of entries that were indexed, and a finding for each entry whose value cannot be decoded.
  /// - Throws: `StoreError` with the key of an entry, in which cases the indexes stay incomplete: `notUnique` or
  ///   `valueTooLarge` if it cannot be indexed; `keyUnavailable` if its value cannot be decrypted now; `versionMismatch` if
  ///   a newer program wrote its value; `corrupted` or `undecodable` if it is the first of all entries, and none of their
  ///   values can be decoded. `versionMismatch` if another program has defined other indexes; the errors of the base.
  ///   `CancellationError` between two steps.
  @discardableResult
  public func rebuildIndexes(fromScratch: Bool = false) async throws -> VerificationReport {
    try await running(.rebuildIndexes) {
      try information.checkWritable(for: .rebuildIndexes)
      try checkDefinitions(of: try await reloadCatalog(for: .rebuildIndexes), for: .rebuildIndexes)
      if fromScratch { try await changeCatalog(for: .rebuildIndexes) { $0.restart() } }
      try await removeDroppedIndexes()
      var entryCount = 0
      while true {
        while let count = try await indexNextValues() { entryCount += count }
        let (count, findings) = try await indexUndecodableValues()
        entryCount += count
        if try await completeIndexes() { return VerificationReport(entryCount: entryCount, findings: findings) }
      }
    }
  }

  // MARK: Former indexes

  /// Removes the entries of indexes that are no longer used.
  func removeDroppedIndexes() async throws {
    let dropped = known.catalog.dropped
    guard !dropped.isEmpty else { return }
    for id in dropped {
      // No writer adds an entry, because each of them compares the catalog when it commits.
      while true {
        try Task.checkCancellation()
        let keys = try await callingBase(.rebuildIndexes) {
          try await base.keys(in: layout.entryRange(id), limit: 1000, order: .ascending)
        }
        let changes = (keys + [layout.progressKey(id)]).map { BatchChange<[UInt8]>.remove($0) }
        try await callingBase(.rebuildIndexes) { try await base.apply(ChangeBatch(changes)) }
        if keys.count < 1000 { break }
      }
    }
    try await removeFormerLists()
    try await changeCatalog(for: .rebuildIndexes) { catalog in catalog.dropped.removeAll { dropped.contains($0) } }
  }

  /// Removes the lists that have only entries of former indexes.
  ///
  /// A damaged list is removed if all indexes have to be rebuilt, so it is written again.
  private func removeFormerLists() async throws {
    let prefixes = known.catalog.indexes.map { IndexLayout.itemPrefix($0.id) }
    let isNoneComplete = known.catalog.indexes.allSatisfy { !$0.isComplete }
    var rest: KeyRange? = layout.entryLists
    while let range = rest {
      try Task.checkCancellation()
      let lists = try await callingBase(.rebuildIndexes) {
        try await base.entries(in: range, limit: Self.sliceSize, order: .ascending)
      }
      var commit = ConditionalCommit<Never>()
      for list in lists {
        let items = EntryList(list.value)?.items
        guard items?.allSatisfy({ item in !prefixes.contains(where: item.hasPrefix) }) ?? isNoneComplete else {
          continue
        }
        commit.computeValue(forKey: list.key) { $0(list.key) == list.value ? .set(nil) : .keep }
      }
      _ = try await callingBase(.rebuildIndexes) { [commit] in try await base.perform(commit) }
      let last = lists.count < Self.sliceSize ? nil : lists.last
      rest = try last.map { try range.rest(behind: $0.key, of: information.name, during: .rebuildIndexes) }
    }
  }

  // MARK: Steps

  /// The indexes that a rebuild has to complete.
  private struct Incomplete: Sendable {
    let known: KnownCatalog<Value>
    let indexes: [ActiveIndex<Value>]
    /// The record of the progress of each index.
    let progress: [[UInt8]?]

    /// The record of the progress of an index for which all values have been read.
    static var end: [UInt8] { [] }

    /// The indexes for which values have yet to be read, with the keys of the values that were read last.
    var unread: [(index: ActiveIndex<Value>, progress: StoreKey?)] {
      zip(indexes, progress).filter { $1 != Incomplete.end }.map { ($0, $1.map { StoreKey(bytes: $0) }) }
    }
  }

  /// Reads the catalog, and the progress of the indexes that are incomplete.
  private func incomplete() async throws -> Incomplete {
    try Task.checkCancellation()
    let known = try await reloadCatalog(for: .rebuildIndexes)
    try checkDefinitions(of: known, for: .rebuildIndexes)
    let indexes = known.active.filter { !$0.isComplete }
    let progress = try await callingBase(.rebuildIndexes) {
      try await base.values(forKeys: indexes.map { layout.progressKey($0.id) })
    }
    return Incomplete(known: known, indexes: indexes, progress: progress)
  }

  /// Adds the next values to the incomplete indexes, and records the progress, in one commit.
  ///
  /// - Returns: The number of values that were added, or `nil` if all values have been read.
  private func indexNextValues() async throws -> Int? {
    let incomplete = try await incomplete()
    let starts = incomplete.unread.map { $0.progress.map(layout.values.after) ?? layout.values }
    guard let range = starts.min(by: { $0.lowerBound < $1.lowerBound }) else { return nil }
    let entries = try await callingBase(.rebuildIndexes) {
      try await base.entries(in: range, limit: Self.sliceSize, order: .ascending)
    }
    let last = entries.count < Self.sliceSize ? nil : entries.last?.key
    // Values in no order, as in a damaged base, would be indexed forever.
    if let last { _ = try range.rest(behind: last, of: information.name, during: .rebuildIndexes) }
    let values = try await rebuilt(
      entries.map { (layout.key(ofValue: $0.key), $0.value) }, incomplete.known, isRemembered: false)
    if range == layout.values { try await checkSomeValueDecodes(values, before: entries.last?.key) }
    var commit = try commit(of: values, incomplete.known)
    for (index, progress) in incomplete.unread {
      let key = layout.progressKey(index.id)
      commit.require(progress?.bytes, forKey: key)
      commit.setValue(last?.bytes ?? Incomplete.end, forKey: key)
    }
    return try await perform(commit) ? values.count { $0.problem == nil } : 0
  }

  /// Adds the values that could not be decoded before to the incomplete indexes, as far as they can be decoded now.
  ///
  /// - Returns: The number of values that were added, and a finding for each of the others.
  private func indexUndecodableValues() async throws -> (count: Int, findings: [VerificationReport.Finding]) {
    var count = 0
    var findings: [VerificationReport.Finding] = []
    var rest: KeyRange? = layout.undecodable
    while let range = rest {
      let incomplete = try await incomplete()
      guard !incomplete.indexes.isEmpty, incomplete.known.catalog.undecodableCount > 0 else { break }
      let remembered = try await callingBase(.rebuildIndexes) {
        try await base.keys(in: range, limit: Self.sliceSize, order: .ascending)
      }
      let keys = remembered.map(layout.key(ofUndecodable:))
      let stored = try await callingBase(.rebuildIndexes) { try await base.values(forKeys: keys.map(layout.valueKey)) }
      let values = try await rebuilt(Array(zip(keys, stored)), incomplete.known, isRemembered: true)
      guard try await perform(try commit(of: values, incomplete.known)) else { continue }
      for value in values {
        if let problem = value.problem {
          findings.append(VerificationReport.Finding(key: value.key, place: information.name, message: problem.message))
        } else if value.bytes != nil {
          count += 1
        }
      }
      let last = remembered.count < Self.sliceSize ? nil : remembered.last
      rest = try last.map { try range.rest(behind: $0, of: information.name, during: .rebuildIndexes) }
    }
    return (count, findings)
  }

  /// Marks the indexes as complete, unless a value is missing that could not be decoded.
  ///
  /// - Returns: `false` if another program has changed something, so values may have to be read again.
  private func completeIndexes() async throws -> Bool {
    let incomplete = try await incomplete()
    guard !incomplete.indexes.isEmpty else { return true }
    guard incomplete.unread.isEmpty else { return false }
    if incomplete.known.catalog.undecodableCount > 0 {
      // Another program that remembers a value also changes the progress that was read before.
      let remembered = try await callingBase(.rebuildIndexes) {
        try await base.keys(in: layout.undecodable, limit: 1, order: .ascending)
      }
      guard remembered.isEmpty else { return true }
    }
    var catalog = incomplete.known.catalog
    catalog.complete()
    var commit = ConditionalCommit<any Error>()
    commit.require(incomplete.known.bytes, forKey: layout.catalogKey)
    commit.setValue(try catalog.bytes(store: information.name, for: .rebuildIndexes), forKey: layout.catalogKey)
    for (index, progress) in zip(incomplete.indexes, incomplete.progress) {
      commit.require(progress, forKey: layout.progressKey(index.id))
      commit.setValue(nil, forKey: layout.progressKey(index.id))
    }
    return try await perform(commit)
  }

  /// Performs the commit of a step.
  ///
  /// - Returns: `false` if another program has rebuilt the same part or defined other indexes.
  private func perform(_ commit: ConditionalCommit<any Error>) async throws -> Bool {
    let outcome = try await gate.withAccess(.shared) {
      try await callingBase(.rebuildIndexes) { try await base.perform(commit) }
    }
    switch outcome {
    case .performed: return true
    case .isStale:
      await Task.yield()
      return false
    case .refused(let error): throw error
    }
  }
}
