public import Larder

extension IndexedStore {
  /// The number of values or index entries that a step of a rebuild or of a verification reads.
  static var sliceSize: Int { 128 }

  /// The names of the indexes that ``rebuildIndexes(fromScratch:)`` has yet to complete.
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
  /// - Parameter fromScratch: Whether to drop the entries of all indexes first, for example because ``verifyIndexes()``
  ///   has found differences. Queries throw `indexIncomplete` until the indexes are complete again, even if the process
  ///   ends before. Defaults to `false`.
  /// - Returns: The number of indexed entries, and a finding for each entry whose value could not be decoded. Such
  ///   an entry is in no index until it is written again.
  /// - Throws: `StoreError` with `notUnique` or `valueTooLarge` and the key of an entry that cannot be indexed, or with
  ///   `keyUnavailable` and the key of an entry that cannot be decrypted now, in which cases the index stays incomplete;
  ///   `versionMismatch` if another program has defined other indexes; the errors of the base.
  ///   `CancellationError` between two steps.
  @discardableResult
  public func rebuildIndexes(fromScratch: Bool = false) async throws -> VerificationReport {
    try await running(.rebuildIndexes) {
      try information.checkWritable(for: .rebuildIndexes)
      try checkDefinitions(of: try await reloadCatalog(for: .rebuildIndexes), for: .rebuildIndexes)
      if fromScratch { try await changeCatalog(for: .rebuildIndexes) { $0.restart() } }
      try await removeDroppedIndexes()
      var report = VerificationReport(entryCount: 0)
      while try await indexNextValues(&report) { try Task.checkCancellation() }
      return report
    }
  }

  /// Removes the entries of indexes that are no longer used.
  func removeDroppedIndexes() async throws {
    for id in known.catalog.dropped {
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
      try await changeCatalog(for: .rebuildIndexes) { catalog in catalog.dropped.removeAll { $0 == id } }
    }
  }

  // MARK: Steps

  /// Adds the next values to the incomplete indexes, and records the progress, in one commit.
  ///
  /// - Returns: Whether an index may still be incomplete.
  private func indexNextValues(_ report: inout VerificationReport) async throws -> Bool {
    let known = try await reloadCatalog(for: .rebuildIndexes)
    try checkDefinitions(of: known, for: .rebuildIndexes)
    let incomplete = known.active.filter { !$0.isComplete }
    guard !incomplete.isEmpty else { return false }
    let progressKeys = incomplete.map { layout.progressKey($0.id) }
    let progress = try await callingBase(.rebuildIndexes) { try await base.values(forKeys: progressKeys) }
    // The progress of an index is the key of the last indexed value.
    let starts = progress.map { record in record.map { layout.values.after(StoreKey(bytes: $0)) } ?? layout.values }
    let range = starts.min { $0.lowerBound < $1.lowerBound } ?? layout.values
    let entries = try await callingBase(.rebuildIndexes) {
      try await base.entries(in: range, limit: Self.sliceSize, order: .ascending)
    }
    let slice = try await indexed(entries, by: incomplete)
    var commit = commit(of: slice.entries, for: entries)
    commit.require(known.bytes, forKey: layout.catalogKey)
    let isLast = entries.count < Self.sliceSize
    for (key, record) in zip(progressKeys, progress) {
      commit.require(record, forKey: key)
      commit.setValue(isLast ? nil : entries.last?.key.bytes, forKey: key)
    }
    if isLast {
      var catalog = known.catalog
      catalog.complete()
      commit.setValue(try catalog.bytes(store: information.name, for: .rebuildIndexes), forKey: layout.catalogKey)
    }
    let outcome = try await gate.withAccess(.shared) { [commit] in
      try await callingBase(.rebuildIndexes) { try await base.perform(commit) }
    }
    switch outcome {
    case .performed:
      report.entryCount += entries.count
      report.findings += slice.findings
    case .isStale:
      // Another program has rebuilt the same part, or defined other indexes.
      await Task.yield()
    case .refused(let error): throw error
    }
    return true
  }

  /// Returns the addition of index entries, as far as their values have not changed since they were read.
  ///
  /// The writer of a value that has changed has added the new entries itself.
  private func commit(
    of entries: [RebuiltEntry], for values: [StoreEntry<[UInt8]>]
  ) -> ConditionalCommit<any Error> {
    var commit = ConditionalCommit<any Error>()
    // Two values can have the same key of a unique index.
    for (entryKey, entries) in Dictionary(grouping: entries, by: \.entryKey) {
      commit.computeValue(forKey: entryKey, reading: values.map(\.key)) { [store = information.name] stored in
        var content = stored(entryKey)
        for entry in entries where stored(values[entry.value].key) == values[entry.value].value {
          if entry.isUnique, let owner = content, owner != entry.key.bytes {
            return .refuse(
              StoreError(
                .notUnique, during: .rebuildIndexes, store: store, key: entry.key,
                message: "another entry has the same key in the unique index '\(entry.name)'; change one of them"))
          }
          content = entry.isUnique ? entry.key.bytes : []
        }
        return .set(content)
      }
    }
    return commit
  }

  /// Returns the index entries of values.
  private func indexed(
    _ values: [StoreEntry<[UInt8]>], by indexes: [ActiveIndex<Value>]
  ) async throws -> (entries: [RebuiltEntry], findings: [VerificationReport.Finding]) {
    try await BulkWork.run(atMost: values.count) { [self] allowance in
      var entries: [RebuiltEntry] = []
      var findings: [VerificationReport.Finding] = []
      for number in values.indices {
        let (key, bytes) = (layout.key(ofValue: values[number].key), values[number].value)
        try allowance.take(bytes.count)
        let value: Value
        do {
          value = try decode(bytes, forKey: key, during: .rebuildIndexes)
        } catch let error as StoreError where error.code != .keyUnavailable {
          findings.append(VerificationReport.Finding(key: key, place: information.name, message: error.message))
          continue
        }
        let entryKeys = entryKeys(key, value, indexes)
        try check(entryKeys, of: key, during: .rebuildIndexes)
        entries += entryKeys.map { entryKey, index in
          RebuiltEntry(
            value: number, key: key, entryKey: entryKey, name: index.definition.name,
            isUnique: index.definition.isUnique)
        }
      }
      return (entries, findings)
    }
  }
}

/// An index entry that a step of a rebuild adds.
private struct RebuiltEntry: Sendable {
  /// The number of the value in the step.
  let value: Int
  let key: StoreKey
  let entryKey: StoreKey
  let name: String
  let isUnique: Bool
}
