public import Larder

extension IndexedStore {
  /// Reads all values and index entries, and reports their differences.
  ///
  /// The method compares in both directions: each value must have all of its index entries, and each index entry must
  /// belong to the value of its key. The list of the index entries of a key must agree with both. It works in small slices while others read and write. Each slice is one snapshot, so
  /// concurrent writes cause no findings.
  ///
  /// ```swift
  /// let report = try await notes.verifyIndexes()
  /// for finding in report.findings { print(finding.place, finding.message) }
  /// if !report.findings.isEmpty { try await notes.rebuildIndexes(fromScratch: true) }
  /// ```
  ///
  /// - Returns: The number of values, and a finding for each value that cannot be decoded, each missing, superfluous or
  ///   damaged index entry, and each incomplete index. ``rebuildIndexes(fromScratch:)`` repairs the indexes.
  /// - Throws: `StoreError` with `closed`; `ioFailed`; `corrupted` if the base or the catalog cannot be read.
  public func verifyIndexes() async throws -> VerificationReport {
    try await running(.verify) {
      var known = try await reloadCatalog(for: .verify)
      return try await information.repeating(.verify) { _ in
        let report = try await verifyIndexes(of: known)
        let start = known.bytes
        known = try await reloadCatalog(for: .verify)
        // The entries of an index that was dropped in the meantime may be gone.
        return known.bytes == start ? report : nil
      }
    }
  }

  private func verifyIndexes(of known: KnownCatalog<Value>) async throws -> VerificationReport {
    let complete = known.active.filter(\.isComplete)
    var report = VerificationReport(entryCount: 0)
    for definition in indexes where !complete.contains(where: { $0.definition.name == definition.name }) {
      report.findings.append(
        finding(nil, in: definition.name, "the index is new or changed and not complete; rebuild the indexes"))
    }
    try await verifyValues(complete, &report)
    for index in complete { try await verify(index, &report) }
    return report
  }

  private func finding(_ key: StoreKey?, in index: String, _ message: String) -> VerificationReport.Finding {
    VerificationReport.Finding(key: key, place: "index '\(index)'", message: message)
  }

  // MARK: From values to index entries

  private func verifyValues(_ indexes: [ActiveIndex<Value>], _ report: inout VerificationReport) async throws {
    let slices = ScanSequence(in: layout.values, key: { (entry: StoreEntry<[UInt8]>) in entry.key }) {
      [self] range, limit in
      try await callingBase(.verify) { try await base.entries(in: range, limit: limit, order: .ascending) }
    }
    var slice: [StoreEntry<[UInt8]>] = []
    for try await entry in slices {
      report.entryCount += 1
      slice.append(entry)
      guard slice.count == Self.sliceSize else { continue }
      try await verify(slice, indexes, &report)
      slice = []
    }
    try await verify(slice, indexes, &report)
  }

  /// Verifies the index entries of some values.
  private func verify(
    _ values: [StoreEntry<[UInt8]>], _ indexes: [ActiveIndex<Value>], _ report: inout VerificationReport
  ) async throws {
    var values = values
    // A value that changes in between is verified again. A value that changes during every attempt is not verified.
    for _ in 0..<100 where !values.isEmpty {
      let expected = try await expectedEntries(of: values, indexes)
      let entryKeys = expected.flatMap { ($0.entries ?? []).map(\.entryKey) }
      let found = try await callingBase(.verify) { [values] in
        try await base.values(
          forKeys: values.map(\.key) + values.map { layout.listKey(layout.key(ofValue: $0.key)) } + entryKeys)
      }
      let lists = Array(found.dropFirst(values.count).prefix(values.count))
      var contents = found.dropFirst(values.count * 2)
      var changed: [StoreEntry<[UInt8]>] = []
      for (number, value) in values.enumerated() {
        let (key, entries) = (layout.key(ofValue: value.key), expected[number].entries)
        let contentsOfValue = contents.prefix(entries?.count ?? 0)
        contents = contents.dropFirst(contentsOfValue.count)
        guard found[number] == value.value else {
          // If a removed value has index entries, the comparison in the other direction finds them.
          if let bytes = found[number] { changed.append(StoreEntry(key: value.key, value: bytes)) }
          continue
        }
        if let message = expected[number].problem {
          report.findings.append(VerificationReport.Finding(key: key, place: information.name, message: message))
        }
        if let message = problem(of: lists[number], of: key, entries, indexes) {
          report.findings.append(VerificationReport.Finding(key: key, place: information.name, message: message))
        }
        for (entry, content) in zip(entries ?? [], contentsOfValue) where content != entry.content {
          report.findings.append(
            finding(key, in: entry.name, content == nil ? "an index entry is missing" : "an index entry is wrong"))
        }
      }
      values = changed
    }
  }

  /// Returns what is wrong with the list of the index entries of a key.
  ///
  /// - Parameters:
  ///   - list: The record.
  ///   - key: The key.
  ///   - expected: The index entries that the value must have, or `nil` if they are not known.
  ///   - indexes: The indexes that are verified.
  private func problem(
    of list: [UInt8]?, of key: StoreKey, _ expected: [Expected.Entry]?, _ indexes: [ActiveIndex<Value>]
  ) -> String? {
    guard let listed = listedEntries(list, of: key, indexes) else {
      return "the list of the index entries is damaged"
    }
    guard let expected, Set(listed.keys) != Set(expected.map(\.entryKey)) else { return nil }
    return "the list of the index entries is wrong"
  }

  /// The index entries that a value must have.
  private struct Expected: Sendable {
    struct Entry: Sendable {
      let entryKey: StoreKey
      let content: [UInt8]
      let name: String
    }

    /// The index entries, or `nil` if the value cannot be decoded.
    var entries: [Entry]?
    /// The reason why the value cannot be decoded or indexed.
    var problem: String?
  }

  private func expectedEntries(
    of values: [StoreEntry<[UInt8]>], _ indexes: [ActiveIndex<Value>]
  ) async throws -> [Expected] {
    try await BulkWork.run(atMost: values.count) { [self] allowance in
      try values.map { stored in
        try allowance.take(stored.value.count)
        let key = layout.key(ofValue: stored.key)
        do {
          let value = try decode(stored.value, forKey: key, during: .verify)
          let entries = entryKeys(key, value, indexes)
          let problem = entries.keys.allSatisfy(fits) ? nil : "an index key of the value is too long"
          return Expected(
            entries: entries.filter { fits($0.key) }.map { entryKey, index in
              Expected.Entry(
                entryKey: entryKey, content: index.definition.isUnique ? key.bytes : [], name: index.definition.name)
            }, problem: problem)
        } catch let error as StoreError {
          return Expected(problem: VerificationReport.Finding.message(for: error, otherwise: error.message))
        }
      }
    }
  }

  // MARK: From index entries to values

  /// Verifies that the entries of an index belong to values.
  private func verify(_ index: ActiveIndex<Value>, _ report: inout VerificationReport) async throws {
    var slice: [(entry: StoreEntry<[UInt8]>, key: StoreKey)] = []
    for try await entry in indexEntries(of: index, .verify) {
      do {
        slice.append((entry, try layout.key(of: entry, isUnique: index.definition.isUnique)))
      } catch {
        report.findings.append(finding(nil, in: index.definition.name, "an index entry is damaged"))
      }
      guard slice.count == Self.sliceSize else { continue }
      try await verify(slice, index, &report)
      slice = []
    }
    try await verify(slice, index, &report)
  }

  private func verify(
    _ slice: [(entry: StoreEntry<[UInt8]>, key: StoreKey)], _ index: ActiveIndex<Value>,
    _ report: inout VerificationReport
  ) async throws {
    guard !slice.isEmpty else { return }
    let found = try await callingBase(.verify) {
      try await base.values(
        forKeys: slice.map(\.entry.key) + slice.map { layout.valueKey($0.key) } + slice.map { layout.listKey($0.key) })
    }
    let keys = slice.map(\.key)
    let values = Array(found.dropFirst(slice.count))
    let valid = try await BulkWork.run(atMost: keys.count) { [self] allowance in
      try keys.indices.map { number -> Set<StoreKey> in
        guard let bytes = values[number] else { return [] }
        try allowance.take(bytes.count)
        do {
          let value = try decode(bytes, forKey: keys[number], during: .verify)
          return Set(entryKeys(keys[number], value, [index]).keys)
        } catch is StoreError {
          // A value that cannot be decoded is a finding of its own, as is a damaged list.
          let listed = listedEntries(values[keys.count + number], of: keys[number], [index])
          return listed.map { Set($0.keys) } ?? [slice[number].entry.key]
        }
      }
    }
    for (number, (entry, key)) in slice.enumerated() where found[number] == entry.value {
      guard !valid[number].contains(entry.key) else { continue }
      report.findings.append(
        finding(key, in: index.definition.name, "an index entry does not belong to the value of its key"))
    }
  }
}

/// Statistics and verification cover the entries and their indexes. Backup covers the whole base.
extension IndexedStore: MaintainableStore where Base: MaintainableStore {
  /// Returns the size of the base, with the number of entries, and the number of index entries as the detail
  /// `indexEntries`; see `MaintainableStore`.
  public func storeStatistics() async throws -> StoreStatistics {
    try await running(.statistics) {
      var statistics = try await callingBase(.statistics) { try await base.storeStatistics() }
      statistics.entryCount = try await count(in: .all)
      let indexEntries = try await callingBase(.statistics) { try await base.count(in: layout.indexEntries) }
      statistics.details.append(StoreStatistics.Detail(name: "indexEntries", value: Int64(indexEntries)))
      return statistics
    }
  }

  /// Verifies values and indexes; see ``verifyIndexes()``.
  public func verify() async throws -> VerificationReport {
    try await verifyIndexes()
  }

  /// Removes the remaining entries of former indexes, and compacts the base; see `MaintainableStore`.
  public func compact() async throws {
    try await running(.compact) {
      if information.access == .readWrite {
        try await reloadCatalog(for: .compact)
        try await removeDroppedIndexes()
      }
      try await callingBase(.compact) { try await base.compact() }
    }
  }
}
