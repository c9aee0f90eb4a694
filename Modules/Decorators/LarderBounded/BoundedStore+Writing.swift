public import Larder

extension BoundedStore {
  /// Applies several changes and those of the accounting, all or none of them; see `DataStore`.
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
      try await committing(.apply) { () -> (BoundedCommit, Void)? in
        let known = try await existingKeys(in: ranges)
        let news = changes.changes[...].finalValues(forKeys: known.keys)
        let keys = news.keys.sorted()
        let read = try await read(keys, withValues: false, during: .apply)
        // Another process may have inserted a key into a range since the keys were read.
        guard known.insertions == nil || known.insertions == read.totals.insertions else { return nil }
        var commit = BoundedCommit(read.totals)
        commit.refusesInsertions = known.insertions != nil
        let isPlanned = try await plan(keys.map { ($0, news[$0] ?? nil) }, read, &commit, during: .apply)
        return isPlanned ? (commit, ()) : nil
      }
    }
  }

  /// Reads, changes and writes back several values and the accounting as one step; see `DataStore`.
  ///
  /// The body runs before the commit, and runs again if another writer changes the same entries at the same time. The entries
  /// of all keys of a committed update count towards the limit, because none of them may be evicted for it.
  ///
  /// - Throws: The errors of ``apply(_:)``.
  public func update<Result: Sendable>(
    deciding keys: [StoreKey],
    _ body: @escaping @Sendable (inout UpdateSlots<[UInt8]>) -> UpdateDecision<Result>
  ) async throws -> Result {
    try information.check(updateOf: keys)
    return try await running(.update) {
      try await committing(.update) {
        let read = try await read(keys, withValues: true, during: .update)
        try Task.checkCancellation()
        var slots = UpdateSlots(stored: read.values)
        let decision = body(&slots)
        var commit = BoundedCommit(read.totals)
        guard decision.isCommit else { return (commit, decision.result) }
        let isPlanned = try await plan(zip(keys, slots).map { ($0, $1) }, read, &commit, during: .update)
        return isPlanned ? (commit, decision.result) : nil
      }
    }
  }

  /// Removes everything and writes the entries that a batch sets afterwards, without reading anything.
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
    for (key, value) in commit.entries.changes {
      if let value { batch.setValue(value, forKey: key) }
    }
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
        try await base.keys(in: layout.valueRange(range), limit: .max, order: .ascending)
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
  /// - Returns: Whether they could be planned, or `false` if what was read is stale.
  private func plan(
    _ news: [(key: StoreKey, value: [UInt8]?)], _ read: Read, _ commit: inout BoundedCommit,
    during operation: StoreOperation
  ) async throws -> Bool {
    let now = nowMicroseconds
    var sizes: [Int] = []
    for (number, (key, value)) in news.enumerated() {
      let old = try read.record(number, of: key)
      // If the values were read, the commit depends on all of them, also on those that it leaves unchanged.
      if !read.values.isEmpty { commit.require(read.values[number], forKey: layout.valueKey(key)) }
      if !read.values.isEmpty, read.values[number] == value {
        commit.require(old?.bytes, forKey: layout.entryKey(key))
        if let old { sizes.append(old.size) }
      } else if let value, isStorable(key, value) {
        commit.set(key, old, value, at: now, layout)
        sizes.append(key.count + value.count)
      } else {
        commit.remove(key, old, layout)
        if let value { commit.refuse(key, byteCount: key.count + value.count) }
      }
    }
    guard commit.byteDelta > 0 || commit.countDelta > 0 else { return true }
    try checkLimit(sizes, during: operation)
    commit.limit = (byteLimit, entryLimit ?? .max)
    return try await makeRoom(in: &commit, during: operation)
  }

  /// The number of entries by which a commit exceeds the limit, and the number of bytes.
  private func excess(of commit: BoundedCommit) -> (bytes: Int, entries: Int) {
    (
      commit.totals.bytes + commit.byteDelta - min(byteLimit, Totals.maximumSum),
      entryLimit.map { commit.totals.count + commit.countDelta - min($0, Totals.maximumSum) } ?? 0
    )
  }

  /// Adds evictions to a commit until it keeps the limit.
  ///
  /// An entry that was used in this process since it got its place gets a new one instead, as long as there are others.
  ///
  /// - Parameter maximum: The number of evictions after which the commit need not keep the limit. Defaults to none.
  /// - Returns: Whether it keeps the limit, or `false` if what was read is stale.
  /// - Throws: `StoreError` with `corrupted` if the order of use lacks entries.
  private func makeRoom(
    in commit: inout BoundedCommit, maximum: Int = .max, during operation: StoreOperation
  ) async throws -> Bool {
    let now = nowMicroseconds
    var misplaced: Set<StoreKey> = []
    func isEnough() -> Bool {
      let excess = excess(of: commit)
      return excess.bytes <= 0 && excess.entries <= 0 || commit.evictions.count >= maximum
    }
    let spared = try await uses.evict(
      in: layout.order, page: { try await candidates(in: $0, during: operation) }, until: isEnough,
      key: { candidate in
        let entryKey = layout.entryKey(candidate.key)
        let isTaken = commit.concerns(entryKey) && !misplaced.contains(candidate.key)
        guard !isTaken, !commit.concerns(candidate.orderKey) else { return nil }
        if candidate.record != nil { return candidate.key }
        // The place is not that of the entry. The commit removes it if that is still so.
        misplaced.insert(candidate.key)
        commit.require(candidate.bytes, forKey: entryKey)
        commit.set(candidate.orderKey, nil)
        return nil
      },
      { candidate in
        if let record = candidate.record { commit.evict(candidate.key, record, layout) }
      })
    for candidate in spared {
      if let record = candidate.record { commit.use(candidate.key, record, at: now, layout) }
    }
    if isEnough() { return true }
    // During a repair by another process, the totals may be wrong.
    guard try await totals(for: operation) ?? Totals() == commit.totals, !commit.totals.isInRepair else { return false }
    throw BoundedLayout.damage(
      "the order of use has fewer entries than the totals", store: information.name, for: operation)
  }

  /// An entry in the order of use.
  private struct Candidate: Sendable {
    let orderKey: StoreKey
    let key: StoreKey
    /// The stored record of the entry.
    let bytes: [UInt8]?
    /// The record, or `nil` if this place in the order is not that of an entry.
    let record: EntryRecord?
  }

  /// Reads a part of the order of use.
  private func candidates(
    in range: KeyRange, during operation: StoreOperation
  ) async throws -> (candidates: [Candidate], rest: KeyRange?) {
    let pageSize = 64
    let orderKeys = try await callingBase(operation) {
      try await base.keys(in: range, limit: pageSize, order: .ascending)
    }
    let found = orderKeys.compactMap { orderKey in layout.use(of: orderKey).map { (orderKey, $0.key, $0.place) } }
    let stored = try await callingBase(operation) {
      try await base.values(forKeys: found.map(\.0) + found.map { layout.entryKey($0.1) })
    }
    let candidates = found.indices.compactMap { number -> Candidate? in
      // Another writer has moved the entry in the meantime.
      guard stored[number] != nil else { return nil }
      let bytes = stored[found.count + number]
      let record = bytes.flatMap { EntryRecord($0) }
      return Candidate(
        orderKey: found[number].0, key: found[number].1, bytes: bytes,
        record: record?.place == found[number].2 ? record : nil)
    }
    return (candidates, orderKeys.count < pageSize ? nil : orderKeys.last.map { range.after($0) })
  }

  // MARK: Committing

  /// Plans and commits changes, again if something changes between planning and committing.
  ///
  /// - Parameters:
  ///   - operation: The operation, for errors.
  ///   - plan: A closure that plans a commit, or returns `nil` if what it has read is stale.
  func committing<Result>(
    _ operation: StoreOperation, _ plan: () async throws -> (BoundedCommit, Result)?
  ) async throws -> Result {
    try await information.repeating(operation) { _ in
      let planned = try await gate.withAccess(.exclusive) { () -> (BoundedCommit, Result)? in
        guard let (commit, result) = try await plan(), try await perform(commit, during: operation) else { return nil }
        return (commit, result)
      }
      guard let (commit, result) = planned else { return nil }
      finish(commit)
      return result
    }
  }

  /// Performs the changes of a commit in one update of the base.
  ///
  /// - Returns: Whether they were performed, or `false` if the commit is stale.
  func perform(_ commit: BoundedCommit, during operation: StoreOperation) async throws -> Bool {
    guard !commit.entries.keys.isEmpty else { return true }
    let outcome = try await callingBase(operation) {
      try await base.perform(commit.withTotals(at: layout.totalsKey, store: information.name, for: operation))
    }
    if case .refused(let error) = outcome { throw error }
    return outcome.isPerformed
  }

  /// Updates the state in memory after a commit, and reports its evictions.
  private func finish(_ commit: BoundedCommit) {
    uses.finish(placed: commit.used, removed: commit.removed)
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

  /// Evicts entries in small steps until the limit is kept.
  func trim(for operation: StoreOperation) async throws {
    var isOver = true
    while isOver {
      try Task.checkCancellation()
      isOver = try await committing(operation) {
        var commit = BoundedCommit(try await totals(for: operation) ?? Totals())
        let before = excess(of: commit)
        guard before.bytes > 0 || before.entries > 0 else { return (commit, false) }
        return try await makeRoom(in: &commit, maximum: 512, during: operation) ? (commit, true) : nil
      }
    }
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
    var values: [StoreKey: [UInt8]?] = [:]
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
