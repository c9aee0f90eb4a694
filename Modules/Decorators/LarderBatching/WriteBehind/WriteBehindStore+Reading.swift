public import Larder

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
    let contents = try withOpenQueue(for: .values) { queue in keys.map { queue[$0] } }
    if contents.allSatisfy({ $0 != nil }) { return contents.map { $0?.value } }
    if contents.contains(where: { $0 != nil }) { try await flush(.keys(keys), for: .values) }
    return try await base.values(forKeys: keys)
  }

  /// Returns the first entries of a range in one snapshot; see `DataStore.entries(in:limit:order:)`.
  public func entries(in range: KeyRange, limit: Int, order: ScanOrder) async throws -> [StoreEntry<Value>] {
    try base.information.check(limit: limit, for: .entries)
    try await flush(.range(range), for: .entries)
    return try await base.entries(in: range, limit: limit, order: order)
  }

  /// Returns the first keys of a range in one snapshot; see `DataStore.keys(in:limit:order:)`.
  public func keys(in range: KeyRange, limit: Int, order: ScanOrder) async throws -> [StoreKey] {
    try base.information.check(limit: limit, for: .keys)
    // `contains` asks for the range of a single key, whose pending change is the answer.
    let key = range.lowerBound
    if range == .only(key), let content = try withOpenQueue(for: .keys, { $0[key] }) {
      if limit == 0 { return [] }
      return if case .set = content { [key] } else { [] }
    }
    try await flush(.range(range), for: .keys)
    return try await base.keys(in: range, limit: limit, order: order)
  }

  /// Returns the number of entries in a range; see `DataStore.count(in:)`.
  public func count(in range: KeyRange) async throws -> Int {
    try await flush(.range(range), for: .count)
    return try await base.count(in: range)
  }

  /// Waits until the changes in a scope that were accepted before are written.
  ///
  /// The base then has all of them. Flushes write batches in the order they were accepted, except for those that must
  /// be retried, so a snapshot of the scope in the base also is a snapshot of this store at some moment since the call.
  func flush(_ scope: ChangeScope, for operation: StoreOperation) async throws {
    if try withOpenQueue(for: operation, { !$0.isWritten(in: scope) }) {
      try await waitForFlush(of: scope, during: operation)
    }
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
}
