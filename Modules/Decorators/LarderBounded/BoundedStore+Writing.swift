public import Larder

extension BoundedStore {
  /// Applies several changes and updates the accounting, in one commit; see `DataStore`.
  ///
  /// If more than 512 entries must be evicted to make room, the first of them are evicted in commits of their own.
  ///
  /// - Throws: The errors of `apply(_:)`; `full`, with nothing changed, if the entries of the batch together exceed the
  ///   limit; `conflict`, with nothing changed, if other programs kept changing the same entries, or kept inserting entries
  ///   while the batch removes a range; `corrupted` if the accounting is damaged.
  public func apply(_ changes: ChangeBatch<[UInt8]>) async throws {
    try information.check(changes)
    try await running(.apply) {
      guard !changes.isEmpty else {
        return try await callingBase(.apply) { try await base.apply(changes) }
      }
      // Changes before the removal of everything have no effect.
      let start = changes.changes.lastIndex { $0.removedRange == .all }
      if let start { return try await replaceEverything(by: changes.changes[(start + 1)...].finalValues(forKeys: [])) }
      let ranges = changes.changes.compactMap(\.removedRange).filter { !$0.isEmpty }
      func news(_ existing: [StoreKey]) -> [(key: StoreKey, value: [UInt8]?)] {
        changes.changes[...].finalValues(forKeys: existing).sorted { $0.key < $1.key }
      }
      // Before the other writers end, unless it depends on what they write.
      let knownNews = ranges.isEmpty ? news([]) : nil
      try await committing(.apply) { performed -> (BoundedCommit, Void)? in
        let known = try await existingKeys(in: ranges)
        let news = knownNews ?? news(known.keys)
        let read = try await read(news.map(\.key), withValues: false, during: .apply)
        // Another process may have inserted a key into a range since the keys were read.
        guard known.insertions == nil || known.insertions == read.totals.insertions else { return nil }
        var commit = BoundedCommit(read.totals)
        commit.refusesInsertions = known.insertions != nil
        let isPlanned = try await plan(news, read, &commit, after: &performed, during: .apply)
        return isPlanned ? (commit, ()) : nil
      }
    }
  }

  /// Reads, changes and writes back several values and the accounting as one step; see `DataStore`.
  ///
  /// The body runs before the commit, and runs again if another writer changes the same entries at the same time. The entries
  /// of all keys of a committed update count toward the limit, because none of them may be evicted for it.
  ///
  /// - Throws: The errors of ``apply(_:)``.
  public func update<Result: Sendable>(
    deciding keys: [StoreKey], _ body: @escaping UpdateBody<[UInt8], Result>
  ) async throws -> Result {
    try information.check(updateOf: keys)
    return try await running(.update) {
      try await committing(.update) { performed in
        let read = try await read(keys, withValues: true, during: .update)
        try Task.checkCancellation()
        var slots = UpdateSlots(stored: read.values)
        let decision = body(&slots)
        var commit = BoundedCommit(read.totals)
        guard decision.isCommit else { return (commit, decision.result) }
        let isPlanned = try await plan(
          zip(keys, slots).map { ($0, $1) }, read, assigned: Set(slots.assignedIndices), &commit, after: &performed,
          during: .update)
        return isPlanned ? (commit, decision.result) : nil
      }
    }
  }

  /// Removes everything and writes the entries that a batch sets afterward, without reading anything.
  private func replaceEverything(by news: [StoreKey: [UInt8]?]) async throws {
    var totals = Totals()
    // Removals of ranges that were planned before must not find the number that they have read.
    totals.insertions = .random(in: .min ... .max)
    let entries = news.keys.sorted().compactMap { key in (news[key] ?? nil).map { (key, $0) } }
    try checkLimit(entries.filter { isStorable($0, $1) }.map { $0.count + $1.count }, during: .apply)
    var commit = BoundedCommit(totals)
    let now = nowMicroseconds
    for (key, value) in entries {
      if isStorable(key, value) {
        commit.set(key, nil, value, at: now, layout)
      } else {
        commit.refuse(key, byteCount: key.count + value.count)
      }
    }
    (totals.bytes, totals.count, totals.place) = (commit.byteDelta, commit.countDelta, commit.place)
    var batch = ChangeBatch<[UInt8]>([.removeAll(layout.values), .removeAll(layout.entries), .removeAll(layout.order)])
    for (key, value) in commit.initialValues(layout) { batch.setValue(value, forKey: key) }
    batch.setValue(totals.record, forKey: layout.totalsKey)
    try await gate.withAccess(.exclusive) { [batch] in
      try await callingBase(.apply) { try await base.apply(batch) }
    }
    finish(commit)
  }

  // MARK: Reading before a commit

  /// The entries that a writer has read in one snapshot.
  struct Read: Sendable {
    let totals: Totals
    /// The records of the entries.
    let records: [[UInt8]?]
    /// The values, or nothing if they were not read.
    let values: [[UInt8]?]
    let store: String
    let operation: StoreOperation

    /// Returns the record of an entry.
    ///
    /// - Throws: `StoreError` with `corrupted`.
    func record(_ number: Int, of key: StoreKey) throws -> EntryRecord? {
      guard let bytes = records[number] else { return nil }
      guard let record = EntryRecord(bytes) else {
        throw BoundedLayout.damage("the record of the entry is damaged", key: key, store: store, for: operation)
      }
      return record
    }
  }

  /// Reads the totals, and the records and possibly the values of some entries, in one snapshot.
  func read(_ keys: [StoreKey], withValues: Bool, during operation: StoreOperation) async throws -> Read {
    var baseKeys = [layout.totalsKey] + keys.map(layout.entryKey)
    if withValues { baseKeys += keys.map(layout.valueKey) }
    let found = try await callingBase(operation) { [baseKeys] in try await base.values(forKeys: baseKeys) }
    return Read(
      totals: try Totals(found[0], store: information.name, for: operation),
      records: Array(found[1..<(1 + keys.count)]), values: Array(found.dropFirst(1 + keys.count)),
      store: information.name, operation: operation)
  }

  /// Returns the existing keys in the ranges that a batch removes, and the number of insertions before they were read.
  private func existingKeys(in ranges: [KeyRange]) async throws -> (keys: [StoreKey], insertions: UInt64?) {
    guard !ranges.isEmpty else { return ([], nil) }
    let insertions = try await totals(for: .apply)?.insertions ?? 0
    var keys: [StoreKey] = []
    for range in ranges {
      keys += try await callingBase(.apply) {
        try await base.keys(in: layout.valueKeys.storedRange(range), limit: .max, order: .ascending)
      }.map(layout.key(ofValue:))
    }
    return (keys, insertions)
  }

  // MARK: Planning

  private func isStorable(_ key: StoreKey, _ value: [UInt8]) -> Bool { key.count + value.count <= shareLimit }

  /// Throws `full` if entries of some sizes do not fit into the limit together.
  private func checkLimit(_ sizes: [Int], during operation: StoreOperation) throws {
    let bytes = sizes.reduce(0, +)
    func refuse(_ amount: String, _ limit: String) throws {
      throw StoreError(
        .full, during: operation, store: information.name,
        message: "the entries of the operation have \(amount); the limit is \(limit), so write fewer at a time")
    }
    if bytes > byteLimit { try refuse("\(bytes) bytes", "\(byteLimit)") }
    if let entryLimit, sizes.count > entryLimit { try refuse("the number \(sizes.count)", "\(entryLimit)") }
  }

  /// Adds the changes of entries to a commit, and the evictions that make room for them.
  ///
  /// - Parameters:
  ///   - news: The keys with their values after the commit.
  ///   - read: The records of these entries, and possibly their values.
  ///   - assigned: The indices of entries that are reported also if they stay equal. Defaults to an empty set.
  ///   - commit: The commit.
  ///   - performed: The commits that were performed before it, to make room.
  ///   - operation: The operation, for errors.
  /// - Returns: A Boolean value that indicates whether they could be planned, or `false` if what was read is stale.
  private func plan(
    _ news: [(key: StoreKey, value: [UInt8]?)], _ read: Read, assigned: Set<Int> = [], _ commit: inout BoundedCommit,
    after performed: inout [BoundedCommit], during operation: StoreOperation
  ) async throws -> Bool {
    let now = nowMicroseconds
    // Each may evict another.
    commit.reserveCapacity(news.count * 2)
    var sizes: [Int] = []
    for (number, (key, value)) in news.enumerated() {
      let old = try read.record(number, of: key)
      // If the values were read, the commit depends on all of them, also on those that it leaves unchanged.
      if !read.values.isEmpty { commit.require(read.values[number], forKey: layout.valueKey(key)) }
      if !read.values.isEmpty, read.values[number] == value {
        commit.require(old?.bytes, forKey: layout.entryKey(key))
        if assigned.contains(number) { commit.report(layout.valueKey(key)) }
        if let old { sizes.append(old.size) }
      } else if let value, isStorable(key, value) {
        commit.set(key, old, value, at: now, layout)
        sizes.append(key.count + value.count)
      } else {
        commit.remove(key, old, layout)
        if let value { commit.refuse(key, byteCount: key.count + value.count) }
      }
    }
    if commit.byteDelta > 0 || commit.countDelta > 0 { try checkLimit(sizes, during: operation) }
    return try await makeRoom(in: &commit, keeping: news.map(\.key), after: &performed, during: operation)
  }

  // MARK: Committing

  /// Plans and commits changes, again if something changes between planning and committing.
  ///
  /// - Parameters:
  ///   - operation: The operation, for errors.
  ///   - plan: A closure that plans a commit, or returns `nil` if what it has read is stale. Its argument receives the
  ///     commits that it has performed before it.
  func committing<Result>(
    _ operation: StoreOperation, _ plan: (inout [BoundedCommit]) async throws -> (BoundedCommit, Result)?
  ) async throws -> Result {
    var performed: [BoundedCommit] = []
    defer { for commit in performed { finish(commit) } }
    return try await information.repeating(operation) { _ in
      try await gate.withAccess(.exclusive) { () -> Result? in
        guard case (var commit, let result)? = try await plan(&performed), try await perform(&commit, during: operation)
        else {
          return nil
        }
        performed.append(commit)
        return result
      }
    }
  }

  /// Performs the changes of a commit in one update of the base.
  ///
  /// - Returns: A Boolean value that indicates whether they were performed, or `false` if the commit is stale.
  func perform(_ commit: inout BoundedCommit, during operation: StoreOperation) async throws -> Bool {
    guard !commit.isEmpty else { return true }
    let complete = commit.takeComplete(with: layout, store: information.name, for: operation)
    let outcome = try await callingBase(operation) { try await base.perform(complete) }
    if case .refused(let error) = outcome { throw error }
    return outcome.isPerformed
  }

  /// Updates the state in memory after a commit, and reports its evictions.
  private func finish(_ commit: BoundedCommit) {
    // A removed entry need not be forgotten. If it is set again, it gets a place.
    uses.finish(placed: commit.used, at: nowMicroseconds)
    guard !commit.evictions.isEmpty else { return }
    counters.withLock { counters in
      for eviction in commit.evictions {
        switch eviction.reason {
        case .limit:
          counters.evictedCount += 1
          counters.evictedBytes += eviction.byteCount
        case .share: counters.refusedCount += 1
        }
      }
    }
    guard let report = configuration.onEviction else { return }
    for eviction in commit.evictions { report(eviction) }
  }
}

extension BatchChange {
  /// The range that the change removes, or `nil` if it concerns one key.
  fileprivate var removedRange: KeyRange? {
    if case .removeAll(let range) = self { range } else { nil }
  }
}

extension ArraySlice<BatchChange<[UInt8]>> {
  /// Returns the values that changes leave, by key, for the keys that they set or remove and for existing ones.
  ///
  /// - Parameter existing: The existing keys in the removed ranges.
  fileprivate func finalValues(forKeys existing: [StoreKey]) -> [StoreKey: [UInt8]?] {
    var values = [StoreKey: [UInt8]?](minimumCapacity: existing.count + count)
    for key in existing { values[key] = .some(nil) }
    for change in self {
      switch change {
      case .set(let key, let value): values[key] = .some(value)
      case .remove(let key): values[key] = .some(nil)
      case .removeAll(let range):
        for key in values.keys where range.contains(key) { values[key] = .some(nil) }
      }
    }
    return values
  }
}
