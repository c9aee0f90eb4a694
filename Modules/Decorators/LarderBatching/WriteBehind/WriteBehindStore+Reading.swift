public import Larder
import Synchronization

extension WriteBehindStore {
  /// Returns the value of a key, as it was last accepted; see `DataStore.value(forKey:)`.
  public func value(forKey key: StoreKey) async throws -> Value? {
    try base.information.check(key, for: .value)
    if let content = try withOpenQueue(for: .value, { $0[key] }) { return content.value }
    return try await base.value(forKey: key)
  }

  /// Returns the values of several keys in one snapshot; see `DataStore.values(forKeys:)`.
  public func values(forKeys keys: [StoreKey]) async throws -> [Value?] {
    try base.information.check(keys, for: .values)
    return try await scanning(during: .values) { before, _, end in
      let missing = keys.filter { before[$0] == nil }
      if missing.isEmpty { return keys.map { before[$0]?.value } }
      if missing.count == keys.count { return try await base.values(forKeys: keys) }
      var found = try await base.values(forKeys: missing)[...]
      guard let after = end() else { return nil }
      return keys.map { key in
        let below = before[key] == nil ? found.popFirst() ?? nil : nil
        return if let content = after[key] { content.value } else { below }
      }
    } orInTurn: {
      try await base.values(forKeys: keys)
    }
  }

  /// Returns the first entries of a range in one snapshot; see `DataStore.entries(in:limit:order:)`.
  public func entries(in range: KeyRange, limit: Int, order: ScanOrder) async throws -> [StoreEntry<Value>] {
    try base.information.check(limit: limit, for: .entries)
    return try await page(in: range, limit: limit, order: order, during: .entries) { limit in
      try await base.entries(in: range, limit: limit, order: order)
    } merge: { below, items in
      PendingView.entries(below, under: items, limit: limit, order: order)
    }
  }

  /// Returns the first keys of a range in one snapshot; see `DataStore.keys(in:limit:order:)`.
  public func keys(in range: KeyRange, limit: Int, order: ScanOrder) async throws -> [StoreKey] {
    try base.information.check(limit: limit, for: .keys)
    return try await page(in: range, limit: limit, order: order, during: .keys) { limit in
      try await base.keys(in: range, limit: limit, order: order)
    } merge: { below, items in
      PendingView<Value>.keys(below, under: items, limit: limit, order: order)
    }
  }

  /// Returns the number of entries in a range; see `DataStore.count(in:)`.
  ///
  /// If changes in the range are pending, all pending changes are written first, because only the base knows how a
  /// change alters the count.
  public func count(in range: KeyRange) async throws -> Int {
    if try withOpenQueue(for: .count, { $0.isWritten(in: range) }) { return try await base.count(in: range) }
    return try await inTurn(during: .count, changesBase: false) { try await base.count(in: range) }
  }

  /// Calls a closure with the queue, unless the store is closed.
  func withOpenQueue<Result: Sendable>(
    for operation: StoreOperation, _ body: (inout Queue) -> Result
  ) throws -> Result {
    try queue.withLock { queue in
      guard !queue.isClosed else { throw base.information.closedError(for: operation) }
      return body(&queue)
    }
  }

  /// Reads the first elements of a range by merging a page of the base with the accepted changes.
  private func page<Element>(
    in range: KeyRange, limit: Int, order: ScanOrder, during operation: StoreOperation,
    read: (_ limit: Int) async throws -> [Element], merge: ([Element], [PendingView<Value>.Item]) -> [Element]
  ) async throws -> [Element] {
    try await scanning(during: operation) { before, attempt, end in
      if before.isEmpty(in: range) { return try await read(limit) }
      // Accepted removals must not make the page short. More may be accepted while the base is read.
      let removalLimit =
        PendingView<Value>.removalCount(of: before.items(in: range, order: order)) + (16 << (4 * attempt))
      let extendedLimit = limit > Int.max - removalLimit ? .max : limit + removalLimit
      let below = try await read(extendedLimit)
      guard let items = end()?.items(in: range, order: order) else { return nil }
      let isCut = below.count >= extendedLimit
      return isCut && PendingView<Value>.removalCount(of: items) > removalLimit ? nil : merge(below, items)
    } orInTurn: {
      try await read(limit)
    }
  }

  /// Reads the accepted changes and the base in one snapshot.
  ///
  /// If nothing is pending in the range, the base alone suffices. Flushes write batches in the order in which they were
  /// accepted, so the base contains everything accepted up to some moment of the read.
  ///
  /// - Parameters:
  ///   - operation: The operation.
  ///   - read: A closure that reads. It receives the changes that the base may lack at the beginning, the number of the
  ///     attempt, and a closure that ends the scan and returns the changes that the base may have lacked since, or
  ///     `nil` if they are unknown. It returns `nil` to read again.
  ///   - readInTurn: A closure that reads the base alone, after everything has been written. It is called after three
  ///     attempts.
  private func scanning<Result>(
    during operation: StoreOperation,
    read: (
      _ before: PendingView<Value>, _ attempt: Int, _ end: () -> PendingView<Value>?
    ) async throws -> Result?,
    orInTurn readInTurn: () async throws -> Result
  ) async throws -> Result {
    for attempt in 0..<3 {
      let (number, before) = try withOpenQueue(for: operation) { $0.beginScan() }
      let end = { self.queue.withLock { $0.endScan(number) } }
      // Ending a scan again is a no-op. The contents of the last view are released outside the lock.
      defer { _ = end() }
      if let result = try await read(before, attempt, end) { return result }
    }
    return try await inTurn(during: operation, changesBase: false, readInTurn)
  }
}
