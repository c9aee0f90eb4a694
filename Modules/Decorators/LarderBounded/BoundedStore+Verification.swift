public import Larder

extension StoreOperation {
  /// The operation `repairAccounting()` of a ``BoundedStore``.
  public static let repairAccounting = StoreOperation(rawValue: "repairAccounting")
}

extension BoundedStore {
  /// The number of entries that a step of a verification or a repair reads.
  private static var sliceSize: Int { 128 }

  /// Reads all entries and the accounting, and reports their differences.
  ///
  /// Differences mean that a program has changed the base without a bounded store. The writers of this object wait. If
  /// another program writes in the meantime, the method starts again.
  ///
  /// ```swift
  /// let report = try await images.verifyAccounting()
  /// for finding in report.findings { print(finding.place, finding.message) }
  /// if !report.findings.isEmpty { try await images.repairAccounting() }
  /// ```
  ///
  /// - Returns: The number of entries, and a finding for each entry that is not or wrongly accounted for, for each
  ///   superfluous or damaged record, and for wrong totals. ``repairAccounting()`` repairs them.
  /// - Throws: `StoreError` with `conflict` if other programs kept writing; `corrupted` if the record of totals is damaged;
  ///   `closed`; the errors of the base.
  public func verifyAccounting() async throws -> VerificationReport {
    try await running(.verify) {
      try await gate.withAccess(.exclusive) {
        try await information.repeating(.verify) { _ in
          let start = try await totals(for: .verify)
          guard var walk = try await walk(from: start?.place ?? 0, fixing: false, during: .verify),
            try await totals(for: .verify) == start
          else { return nil }
          let totals = start ?? Totals()
          if totals.isInRepair || totals.bytes != walk.bytes || totals.count != walk.count {
            walk.find(nil, "the totals, \(totals.bytes) bytes in \(totals.count) entries, are not those of the entries")
          }
          return walk.report
        }
      }
    }
  }

  /// Counts all entries, and corrects the accounting.
  ///
  /// Call it after another program has changed the base, for example after restoring entries from a backup. It loses no
  /// entry, except that it evicts entries at the end if there is more than the limit. Entries without a place in the order
  /// of use get the last ones, as if they were used now.
  ///
  /// The method works in small steps, each of them a commit. If the process ends in the meantime, the next program that
  /// opens the store repairs again. The writers of this object wait. If another program writes in the meantime, the method
  /// starts again.
  ///
  /// ```swift
  /// let report = try await images.verifyAccounting()
  /// for finding in report.findings { print(finding.place, finding.message) }
  /// if !report.findings.isEmpty { try await images.repairAccounting() }
  /// ```
  ///
  /// - Returns: The number of entries, and a finding for each difference, which is now corrected.
  /// - Throws: `StoreError` with `conflict` if other programs kept writing; `versionMismatch` if a newer version wrote the
  ///   accounting; `closed`; the errors of the base. `CancellationError` between two steps.
  @discardableResult
  public func repairAccounting() async throws -> VerificationReport {
    try await running(.repairAccounting) {
      try information.checkWritable(for: .repairAccounting)
      let report = try await repair(for: .repairAccounting)
      while try await trim(for: .repairAccounting) { try Task.checkCancellation() }
      return report
    }
  }

  @discardableResult
  func repair(for operation: StoreOperation) async throws -> VerificationReport {
    try await gate.withAccess(.exclusive) {
      var findings: [VerificationReport.Finding] = []
      return try await information.repeating(operation) { _ in
        guard let start = try await beginRepair(operation),
          var walk = try await walk(from: start.place, fixing: true, during: operation)
        else { return nil }
        findings += walk.report.findings
        var totals = start
        (totals.bytes, totals.count, totals.isInRepair) = (walk.bytes, walk.count, false)
        totals.place = walk.place
        guard try await replaceTotals(start.record, by: totals, operation) else { return nil }
        walk.report.findings = findings
        return walk.report
      }
    }
  }

  /// Marks the totals as being repaired.
  ///
  /// - Returns: The totals, or `nil` if another program has changed them in the meantime.
  private func beginRepair(_ operation: StoreOperation) async throws -> Totals? {
    let record = try await callingBase(operation) { try await base.value(forKey: layout.totalsKey) }
    var totals: Totals
    do {
      totals = try Totals(record, store: information.name, for: operation)
    } catch StoreError.Code.corrupted {
      totals = Totals()
      totals.insertions = .random(in: .min ... .max)
    }
    totals.isInRepair = true
    return try await replaceTotals(record, by: totals, operation) ? totals : nil
  }

  /// Replaces the totals if they are as expected, and returns whether they were.
  private func replaceTotals(_ expected: [UInt8]?, by totals: Totals, _ operation: StoreOperation) async throws -> Bool
  {
    var commit = ConditionalCommit<Never>()
    commit.require(expected, forKey: layout.totalsKey)
    commit.setValue(totals.record, forKey: layout.totalsKey)
    return try await callingBase(operation) { [commit] in try await base.perform(commit).isPerformed }
  }

  // MARK: Walking through everything

  /// The result of a walk through all entries and records.
  private struct Walk: Sendable {
    var report = VerificationReport(entryCount: 0)
    var bytes = 0
    let store: String
    /// The greatest place that was found or given.
    var place: UInt64

    var count: Int { report.entryCount }

    mutating func find(_ key: StoreKey?, _ message: String) {
      report.findings.append(VerificationReport.Finding(key: key, place: store, message: message))
    }
  }

  /// Compares entries and records in both directions.
  ///
  /// - Parameters:
  ///   - place: The greatest place in the order of use.
  ///   - fixing: A Boolean value that indicates whether to correct the differences.
  ///   - operation: The operation, for errors.
  /// - Returns: The result, or `nil` if another program has changed in the meantime what is to be fixed.
  private func walk(from place: UInt64, fixing: Bool, during operation: StoreOperation) async throws -> Walk? {
    var walk = Walk(store: information.name, place: place)
    // The order of use comes first, so that entries can be added to each record that remains.
    var remaining: KeyRange? = layout.order
    while let range = remaining {
      let records = try await entries(in: range, operation)
      let commit = try await compareOrder(records, &walk, operation)
      guard try await fix(commit, if: fixing, operation) else { return nil }
      remaining = try rest(of: range, after: records.last?.key, records.count, operation)
    }
    remaining = layout.values
    while let range = remaining {
      let entries = try await entries(in: range, operation)
      let commit = try await compare(entries, &walk, operation)
      guard try await fix(commit, if: fixing, operation) else { return nil }
      remaining = try rest(of: range, after: entries.last?.key, entries.count, operation)
    }
    remaining = layout.entries
    while let range = remaining {
      let keys = try await callingBase(operation) {
        try await base.keys(in: range, limit: Self.sliceSize, order: .ascending)
      }
      let commit = try await compareRecords(keys.map(layout.key(ofEntry:)), &walk, operation)
      guard try await fix(commit, if: fixing, operation) else { return nil }
      remaining = try rest(of: range, after: keys.last, keys.count, operation)
    }
    return walk
  }

  private func entries(in range: KeyRange, _ operation: StoreOperation) async throws -> [StoreEntry<[UInt8]>] {
    try await callingBase(operation) { try await base.entries(in: range, limit: Self.sliceSize, order: .ascending) }
  }

  private func rest(
    of range: KeyRange, after last: StoreKey?, _ count: Int, _ operation: StoreOperation
  ) throws -> KeyRange? {
    guard count == Self.sliceSize, let last else { return nil }
    return try range.rest(behind: last, of: information.name, during: operation)
  }

  /// Commits corrections, which leave the totals unchanged, and returns whether they were not stale.
  private func fix(_ commit: BoundedCommit, if fixing: Bool, _ operation: StoreOperation) async throws -> Bool {
    try Task.checkCancellation()
    var commit = commit
    return fixing ? try await perform(&commit, during: operation) : true
  }

  /// Compares values with their records, and adds up their sizes.
  private func compare(
    _ entries: [StoreEntry<[UInt8]>], _ walk: inout Walk, _ operation: StoreOperation
  ) async throws -> BoundedCommit {
    let keys = entries.map { layout.key(ofValue: $0.key) }
    let stored = try await callingBase(operation) { try await base.values(forKeys: keys.map(layout.entryKey)) }
    let records = stored.map { $0.flatMap { EntryRecord($0) } }
    let orderKeys = records.map { layout.orderKey(layout.orderNumber(of: $0?.place ?? 0)) }
    let order = try await callingBase(operation) { try await base.values(forKeys: orderKeys) }
    var commit = BoundedCommit(Totals())
    for (number, key) in keys.enumerated() {
      let (record, size) = (records[number], key.count + entries[number].value.count)
      walk.report.entryCount += 1
      walk.bytes += size
      walk.place = max(walk.place, record?.place ?? 0)
      let problem: String? =
        if stored[number] == nil {
          "the entry is not accounted for"
        } else if record == nil {
          "the record of the entry is damaged"
        } else if record?.size != size {
          "the size of the entry is not the recorded one"
        } else if order[number].flatMap({ OrderRecord($0) })?.keys.contains(key) != true {
          "the entry is not in the order of use"
        } else {
          nil
        }
      guard let problem else { continue }
      walk.find(key, problem)
      if record == nil { walk.place += 1 }
      let new = EntryRecord(place: record?.place ?? walk.place, microseconds: record?.microseconds ?? 0, size: size)
      let orderNumber = layout.orderNumber(of: new.place)
      commit.require(entries[number].value, forKey: entries[number].key)
      commit.require(stored[number], forKey: layout.entryKey(key))
      commit.set(layout.entryKey(key), new.bytes)
      commit.removeFromOrder(key, number: orderNumber)
      commit.addToOrder(key, number: orderNumber)
    }
    return commit
  }

  /// Finds records of entries that do not exist.
  private func compareRecords(
    _ keys: [StoreKey], _ walk: inout Walk, _ operation: StoreOperation
  ) async throws -> BoundedCommit {
    let stored = try await callingBase(operation) {
      try await base.values(forKeys: keys.map(layout.entryKey) + keys.map(layout.valueKey))
    }
    var commit = BoundedCommit(Totals())
    for (number, key) in keys.enumerated() where stored[keys.count + number] == nil {
      walk.find(key, "a record belongs to no entry")
      commit.require(nil, forKey: layout.valueKey(key))
      commit.require(stored[number], forKey: layout.entryKey(key))
      commit.set(layout.entryKey(key), nil)
      if let record = stored[number].flatMap({ EntryRecord($0) }) {
        commit.removeFromOrder(key, number: layout.orderNumber(of: record.place))
      }
    }
    return commit
  }

  /// Finds places in the order of use that are not those of entries.
  private func compareOrder(
    _ records: [StoreEntry<[UInt8]>], _ walk: inout Walk, _ operation: StoreOperation
  ) async throws -> BoundedCommit {
    var commit = BoundedCommit(Totals())
    let order = records.map { layout.orderNumber(ofKey: $0.key) == nil ? nil : OrderRecord($0.value) }
    let keys = Set(order.flatMap { $0?.keys ?? [] }).sorted()
    let stored = try await callingBase(operation) { try await base.values(forKeys: keys.map(layout.entryKey)) }
    let entries = Dictionary(uniqueKeysWithValues: zip(keys, stored))
    for (record, content) in zip(records, order) {
      guard let content else {
        walk.find(nil, "a record of the order of use is damaged")
        commit.require(record.value, forKey: record.key)
        commit.set(record.key, nil)
        continue
      }
      var kept = OrderRecord()
      for key in content.keys {
        let entry = entries[key].flatMap { $0 }.flatMap { EntryRecord($0) }
        if let entry, layout.orderKey(layout.orderNumber(of: entry.place)) == record.key, !kept.keys.contains(key) {
          kept.keys.append(key)
          // Entries that get a place later get one behind all those in the order of use, also if the totals are lost.
          walk.place = max(walk.place, entry.place)
        } else {
          walk.find(key, "a place in the order of use is not that of the entry")
          commit.require(entries[key] ?? nil, forKey: layout.entryKey(key))
        }
      }
      guard kept != content else { continue }
      commit.require(record.value, forKey: record.key)
      commit.set(record.key, kept.bytes)
    }
    return commit
  }
}

/// Statistics and verification cover the entries and their accounting. Backup covers the whole base.
extension BoundedStore: MaintainableStore where Base: MaintainableStore {
  /// Returns the size of the base, with the number of entries, and the number of bytes that count toward the limit as the
  /// detail `boundedBytes`; see `MaintainableStore`.
  public func storeStatistics() async throws -> StoreStatistics {
    let usage = try await usage()
    var statistics = try await forward(.statistics, of: nil) { try await base.storeStatistics() }
    statistics.entryCount = usage.entries
    statistics.details.append(StoreStatistics.Detail(name: "boundedBytes", value: Int64(usage.bytes)))
    return statistics
  }

  /// Verifies the accounting; see ``verifyAccounting()``.
  public func verify() async throws -> VerificationReport {
    try await verifyAccounting()
  }
}
