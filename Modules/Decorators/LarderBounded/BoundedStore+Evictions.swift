import Larder

extension BoundedStore {
  /// The maximum number of entries that a commit evicts, so no commit takes long.
  private static var evictionsPerCommit: Int { 512 }

  /// Adds evictions to a commit, so the store has no more than the limit afterward.
  ///
  /// An entry that was used in this process since it got its place gets a new one instead, as long as there are others.
  ///
  /// A store that has more than the limit already, because it was written with a greater one, has no more than before
  /// afterward. It shrinks, but not by more evictions than fit into one commit.
  ///
  /// - Parameters:
  ///   - commit: The commit.
  ///   - keys: The keys of the entries that must not be evicted.
  ///   - performed: The commits that were performed before it. Evictions that don't fit into the commit are added.
  ///   - operation: The operation, for errors.
  /// - Returns: A Boolean value that indicates whether the commit can be performed, or `false` if what was read is
  ///   stale.
  /// - Throws: `StoreError` with `corrupted` if the order of use lacks entries.
  func makeRoom(
    in commit: inout BoundedCommit, keeping keys: [StoreKey] = [], after performed: inout [BoundedCommit],
    during operation: StoreOperation
  ) async throws -> Bool {
    let now = nowMicroseconds
    let limit = (bytes: min(byteLimit, Totals.maximumSum), entries: min(entryLimit ?? .max, Totals.maximumSum))
    let ceiling = (bytes: max(limit.bytes, commit.totals.bytes), entries: max(limit.entries, commit.totals.count))
    commit.ceiling = ceiling
    var (bytes, entries) = (commit.totals.bytes + commit.byteDelta, commit.totals.count + commit.countDelta)
    func exceeds(_ limit: (bytes: Int, entries: Int)) -> Bool { bytes > limit.bytes || entries > limit.entries }
    guard exceeds(limit) else { return true }

    var evicted: [(key: StoreKey, record: EntryRecord)] = []
    var taken = Set<StoreKey>(minimumCapacity: keys.count * 2)
    taken.formUnion(keys)
    let spared = try await uses.evict(
      in: layout.order, page: { try await candidates(in: $0, during: operation) },
      until: { !exceeds(limit) || !exceeds(ceiling) && evicted.count >= Self.evictionsPerCommit },
      key: { candidate in
        if candidate.record == nil {
          // The place is not that of the entry. The commit removes it if that is still so.
          commit.require(candidate.bytes, forKey: layout.entryKey(candidate.key))
          commit.removeFromOrder(candidate.key, number: candidate.orderNumber)
          return nil
        }
        return taken.insert(candidate.key).inserted ? candidate.key : nil
      },
      { candidate in
        guard let record = candidate.record else { return }
        evicted.append((candidate.key, record))
        bytes -= record.size
        entries -= 1
      })
    for candidate in spared {
      if let record = candidate.record { commit.use(candidate.key, record, at: now, layout) }
    }
    guard !exceeds(ceiling) else {
      // During a repair by another process, the totals may be wrong.
      guard try await totals(for: operation) ?? Totals() == commit.totals, !commit.totals.isInRepair else {
        return false
      }
      throw BoundedLayout.damage(
        "the order of use has fewer entries than the totals", store: information.name, for: operation)
    }
    var rest = evicted[...]
    while rest.count > Self.evictionsPerCommit {
      var first = BoundedCommit(commit.totals)
      for (key, record) in rest.prefix(Self.evictionsPerCommit) { first.evict(key, record, layout) }
      guard try await perform(&first, during: operation) else { return false }
      performed.append(first)
      rest.removeFirst(Self.evictionsPerCommit)
    }
    commit.reserveCapacity(rest.count)
    for (key, record) in rest { commit.evict(key, record, layout) }
    return true
  }

  /// Reads a part of the order of use.
  private func candidates(
    in range: KeyRange, during operation: StoreOperation
  ) async throws -> (candidates: [Candidate], rest: KeyRange?) {
    let pageSize = 4
    let records = try await callingBase(operation) {
      try await base.entries(in: range, limit: pageSize, order: .ascending)
    }
    // Damaged records are passed over, and found by a verification.
    let found = records.flatMap { record -> [(number: UInt64, key: StoreKey)] in
      guard let number = layout.orderNumber(ofKey: record.key) else { return [] }
      return OrderRecord(record.value)?.keys.map { (number, $0) } ?? []
    }
    let stored = try await callingBase(operation) {
      try await base.values(forKeys: found.map { layout.entryKey($0.key) })
    }
    let candidates = zip(found, stored).map { found, bytes in
      let record = bytes.flatMap { EntryRecord($0) }
      return Candidate(
        orderNumber: found.number, key: found.key, bytes: bytes,
        record: record.flatMap { layout.orderNumber(of: $0.place) == found.number ? $0 : nil })
    }
    let last = records.count < pageSize ? nil : records.last
    return (candidates, try last.map { try range.rest(behind: $0.key, of: information.name, during: operation) })
  }

  /// Evicts entries in one commit, as many as fit into it, if there is more than the limit.
  ///
  /// - Returns: A Boolean value that indicates whether there may still be more than the limit.
  func trim(for operation: StoreOperation) async throws -> Bool {
    try await committing(operation) { performed in
      var commit = BoundedCommit(try await totals(for: operation) ?? Totals())
      guard try await makeRoom(in: &commit, after: &performed, during: operation) else { return nil }
      return (commit, commit.evictions.count == Self.evictionsPerCommit)
    }
  }
}

/// An entry in the order of use.
private struct Candidate: Sendable {
  /// The number of the record of the order of use.
  let orderNumber: UInt64
  let key: StoreKey
  /// The stored record of the entry.
  let bytes: [UInt8]?
  /// The record, or `nil` if this place in the order is not that of an entry.
  let record: EntryRecord?
}
