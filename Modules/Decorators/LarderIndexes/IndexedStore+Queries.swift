public import Larder

extension IndexedStore {
  /// Returns the first entries whose index keys are in a range.
  ///
  /// ```swift
  /// let newest = try await notes.entries(
  ///   where: byTag, in: .prefix(components: "swift"), limit: 20, order: .descending)
  /// ```
  ///
  /// The entries are in the order of their index keys, and then of their keys. An entry with several index keys in the
  /// range appears once for each of them.
  ///
  /// The method reads the index, and then all the values in one snapshot. It omits an entry that has been removed or
  /// changed in between so that it no longer has the index key. Every returned value therefore has the index key, and an
  /// entry that has it throughout is not missing.
  ///
  /// - Parameters:
  ///   - index: One of the store's indexes.
  ///   - range: A range of index keys, whose bounds were created from components, such as
  ///     `KeyRange.prefix(components: "swift")`. An upper bound excludes all entries that begin with its components, also in
  ///     a range that was created with `...`. Defaults to all index keys.
  ///   - limit: The maximum number of entries to return.
  ///   - order: The direction of the scan. Defaults to ascending.
  /// - Returns: The entries, in the given order.
  /// - Throws: `StoreError` with `indexIncomplete`; `invalidArgument` if the limit is negative, the store has no such
  ///   index, or a bound of the range cannot have been created from components; `corrupted` or `undecodable`, with the
  ///   first such key, if a value cannot be decoded; `closed`; `ioFailed`.
  public func entries(
    where index: StoreIndex<Value>, in range: KeyRange = .all, limit: Int, order: ScanOrder = .ascending
  ) async throws -> [StoreEntry<Value>] {
    try information.check(limit: limit, for: .entries)
    try check(range, for: .entries)
    return try await running(.entries) {
      try await matches(of: index, in: range, limit: limit, order: order, during: .entries).map(\.entry)
    }
  }

  /// Returns a page of the entries whose index keys are in a range.
  ///
  /// ```swift
  /// let first = try await notes.page(where: byTag, in: .prefix(components: "swift"), order: .descending)
  /// if let next = first.next {
  ///   let second = try await notes.page(
  ///     where: byTag, in: .prefix(components: "swift"), order: .descending, after: next)
  /// }
  /// ```
  ///
  /// A page is found by its index key, not by counting. In a walk over the pages, an entry that keeps its index key
  /// throughout appears exactly once.
  ///
  /// - Parameters:
  ///   - index: One of the store's indexes.
  ///   - range: A range of index keys. Defaults to all index keys.
  ///   - size: The maximum number of entries on the page, at least 1. Defaults to 20.
  ///   - order: The direction of the pages. Defaults to ascending.
  ///   - cursor: The `next` cursor of the preceding page, or `nil` for the first page. Defaults to `nil`.
  /// - Returns: The page. The key of its `next` cursor is an index key.
  /// - Throws: `StoreError` with `invalidArgument` if the size is less than 1, or if the cursor is from another index or
  ///   range or has the opposite order; the errors of ``entries(where:in:limit:order:)``.
  public func page(
    where index: StoreIndex<Value>, in range: KeyRange = .all, size: Int = 20, order: ScanOrder = .ascending,
    after cursor: PageCursor? = nil
  ) async throws -> StorePage<Value> {
    guard size >= 1 else {
      throw StoreError(
        .invalidArgument, during: .page, store: information.name,
        message: "the page size must be at least 1, not \(size)")
    }
    try check(range, for: .page)
    if let cursor { try check(cursor, of: index, in: range, order: order) }
    return try await running(.page) {
      let rest = cursor.map { range.part(beyond: $0.key, in: order) } ?? range
      let matches = try await matches(of: index, in: rest, limit: size, order: order, during: .page)
      let entries = matches.map(\.entry)
      guard matches.count >= size, let last = matches.last?.indexKey else {
        return StorePage(entries: entries, next: nil)
      }
      let following = try await reading(index, during: .page) { index in
        try await base.keys(
          in: layout.entryRange(index.id, range.part(beyond: last, in: order)), limit: 1, order: order)
      }
      let next = PageCursor(after: last, order: order, index: index.name)
      return StorePage(entries: entries, next: following.isEmpty ? nil : next)
    }
  }

  /// Returns the number of index keys in a range, without reading any value.
  ///
  /// - Parameters:
  ///   - index: One of the store's indexes.
  ///   - range: A range of index keys; see ``entries(where:in:limit:order:)``. Defaults to all index keys.
  /// - Returns: The number of entries, each counted once for each of its index keys in the range.
  /// - Throws: `StoreError` with `indexIncomplete`; `invalidArgument` if the store has no such index or a bound of the
  ///   range cannot have been created from components; `closed`; `ioFailed`.
  public func count(where index: StoreIndex<Value>, in range: KeyRange = .all) async throws -> Int {
    try check(range, for: .count)
    return try await running(.count) {
      try await reading(index, during: .count) { try await base.count(in: layout.entryRange($0.id, range)) }
    }
  }

  // MARK: Reading an index

  /// Throws `invalidArgument` if a cursor is from another query, which would answer with a wrong or an empty page.
  private func check(_ cursor: PageCursor, of index: StoreIndex<Value>, in range: KeyRange, order: ScanOrder) throws {
    let reason: String? =
      if cursor.order != order {
        "the cursor is from pages in the opposite order"
      } else if cursor.index != index.name {
        "the cursor is from pages by \(cursor.index.map { "the index \($0)" } ?? "key"), not by the index \(index.name)"
      } else if !range.contains(cursor.key) {
        "the cursor is from pages of another range"
      } else {
        nil
      }
    guard let reason else { return }
    throw StoreError(
      .invalidArgument, during: .page, store: information.name,
      message: "\(reason); pass it to the query that returned it")
  }

  /// Throws `invalidArgument` if a bound of a range of index keys cannot have been created from components.
  private func check(_ range: KeyRange, for operation: StoreOperation) throws {
    guard !range.lowerBound.isBoundOfComponents || range.upperBound?.isBoundOfComponents == false else { return }
    throw StoreError(
      .invalidArgument, during: operation, store: information.name,
      message: "a bound of the range is not made of components; write `.prefix(components: …)` or "
        + "`StoreKey(components: …)..<StoreKey(components: …)`")
  }

  /// An entry with the index key by which it was found.
  private struct Match: Sendable {
    let indexKey: StoreKey
    let entry: StoreEntry<Value>
  }

  /// Returns the first entries of a range of index keys.
  private func matches(
    of index: StoreIndex<Value>, in range: KeyRange, limit: Int, order: ScanOrder, during operation: StoreOperation
  ) async throws -> [Match] {
    var matches: [Match] = []
    var remaining: KeyRange? = range
    repeat {
      try Task.checkCancellation()
      guard let range = remaining.take() else { break }
      let missing = limit - matches.count
      let found = try await reading(index, during: operation) { index in
        let entries = try await base.entries(in: layout.entryRange(index.id, range), limit: missing, order: order)
        return (index: index, entries: entries)
      }
      matches += try await valid(found.entries, of: found.index, during: operation)
      if found.entries.count >= missing, let last = found.entries.last?.key {
        remaining = range.part(beyond: layout.indexKey(of: last, found.index.id), in: order)
      }
    } while matches.count < limit && remaining != nil
    return matches
  }

  /// Returns the entries of index entries whose values still have the index key.
  private func valid(
    _ indexEntries: [StoreEntry<[UInt8]>], of index: ActiveIndex<Value>, during operation: StoreOperation
  ) async throws -> [Match] {
    let keys = try indexEntries.map { try owner(of: $0, in: index, during: operation) }
    let values = try await callingBase(operation) { try await base.values(forKeys: keys.map(layout.valueKey)) }
    return try await BulkWork.run(atMost: keys.count) { [self] allowance in
      try keys.indices.compactMap { number in
        guard let bytes = values[number] else { return nil }
        try allowance.take(bytes.count)
        let key = keys[number]
        let value = try decode(bytes, forKey: key, during: operation)
        guard entryKeys(key, value, [index])[indexEntries[number].key] != nil else { return nil }
        return Match(
          indexKey: layout.indexKey(of: indexEntries[number].key, index.id), entry: StoreEntry(key: key, value: value))
      }
    }
  }

  /// Runs a closure that reads a complete index, again if the index was replaced in the meantime.
  ///
  /// - Parameters:
  ///   - index: The index.
  ///   - operation: The operation, for errors.
  ///   - body: A closure that reads from the base and receives the index as this store defines it.
  private func reading<Result>(
    _ index: StoreIndex<Value>, during operation: StoreOperation, _ body: (ActiveIndex<Value>) async throws -> Result
  ) async throws -> Result {
    var known = known
    return try await information.repeating(operation) { _ in
      guard let complete = known.complete(index) else {
        known = try await reloadCatalog(for: operation)
        guard known.complete(index) == nil else { return nil }
        throw try unusable(index, known, during: operation)
      }
      let result = try await callingBase(operation) { try await body(complete) }
      // An index that is still in use now was in use and complete before.
      let bytes = known.bytes
      if try await callingBase(operation, { try await base.value(forKey: layout.catalogKey) }) == bytes {
        return result
      }
      known = try await reloadCatalog(for: operation)
      return known.complete(index)?.id == complete.id ? result : nil
    }
  }

  private func unusable(
    _ index: StoreIndex<Value>, _ known: KnownCatalog<Value>, during operation: StoreOperation
  ) throws -> StoreError {
    guard indexes.contains(where: { $0.name == index.name }) else {
      return StoreError(
        .invalidArgument, during: operation, store: information.name,
        message: "the store has no index '\(index.name)'; pass the index when you open the store")
    }
    if information.access == .readWrite { try checkDefinitions(of: known, for: operation) }
    return StoreError(
      .indexIncomplete, during: operation, store: information.name,
      message: known.catalog.undecodableCount == 0
        ? "the index '\(index.name)' is new or changed and not complete; rebuild the indexes"
        : "the index '\(index.name)' lacks the entries of values that cannot be decoded; rebuild the indexes, which reports "
          + "the keys of those that are left")
  }

  /// Returns the entries of an index, in slices.
  func indexEntries(
    of index: ActiveIndex<Value>, _ operation: StoreOperation
  ) -> ScanSequence<StoreEntry<[UInt8]>> {
    ScanSequence(in: layout.entryRange(index.id), key: { (entry: StoreEntry<[UInt8]>) in entry.key }) {
      [self] range, limit in
      try await callingBase(operation) { try await base.entries(in: range, limit: limit, order: .ascending) }
    }
  }

  /// Returns the key of the entry that an index entry belongs to.
  ///
  /// - Throws: `StoreError` with `corrupted` if the index entry is damaged.
  func owner(
    of entry: StoreEntry<[UInt8]>, in index: ActiveIndex<Value>, during operation: StoreOperation
  ) throws -> StoreKey {
    do {
      return try layout.key(of: entry, isUnique: index.definition.isUnique)
    } catch {
      throw StoreError(
        .corrupted, during: operation, store: information.name,
        message: "an entry of the index '\(index.definition.name)' is damaged; rebuild the indexes from scratch",
        underlying: error)
    }
  }
}

extension KnownCatalog {
  /// Returns the index with the name of a definition, or `nil` if it is incomplete or unknown.
  func complete(_ definition: StoreIndex<Value>) -> ActiveIndex<Value>? {
    active.first { $0.isComplete && $0.definition.name == definition.name }
  }
}
