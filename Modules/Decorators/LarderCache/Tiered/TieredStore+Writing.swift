public import Larder

extension TieredStore {
  /// Applies several changes to the base atomically; see `DataStore`.
  ///
  /// The new values are cached.
  public func apply(_ changes: ChangeBatch<Value>) async throws {
    try information.check(changes)
    let written = WrittenKeys(changes, box: box)
    try await writing(written.keys, written.ranges, .apply) { values, _ in
      try await base.apply(changes)
      values = written.values
    }
  }

  /// Reads and writes several values of the base as one atomic step; see `DataStore`.
  ///
  /// The values of the slots are cached, as the body leaves them if it commits, and as it got them if it discards.
  public func update<Result: Sendable>(
    deciding keys: [StoreKey], _ body: @escaping UpdateBody<Value, Result>
  ) async throws -> Result {
    try information.check(updateOf: keys)
    return try await writing(keys, [], .update) { values, readOnly in
      let (result, slots) = try await base.updateReturningSlots(keys, deciding: body)
      values = slots.map { $0.map { $0.map(box) } }
      if let slots { readOnly = Set(keys.indices).subtracting(slots.assignedIndices) }
      return result
    }
  }

  /// Removes the copy of a key from the cache, so the next read loads it from the base.
  ///
  /// Running loads of the key are not cached, and later readers do not join them.
  ///
  /// - Parameter key: The key.
  /// - Throws: `StoreError` with `invalidKey` or `closed`; the errors of the cache; `CancellationError`.
  public func invalidate(_ key: StoreKey) async throws {
    try information.check(key, for: .invalidate)
    try await writing([key], [], .invalidate) { _, _ in }
  }

  /// Removes all copies from the cache; see ``invalidate(_:)``.
  ///
  /// - Throws: `StoreError` with `closed`; the errors of the cache; `CancellationError`.
  public func invalidateAll() async throws {
    try await writing([], [.all], .invalidateAll) { _, _ in }
  }

  /// Performs a write on the base while its keys are busy and not cached, and then caches the new values.
  ///
  /// - Parameters:
  ///   - keys: The keys. They must be distinct.
  ///   - ranges: The ranges.
  ///   - operation: The operation.
  ///   - body: A closure that writes. It sets its first argument to the new value of each key if that is known, and its
  ///     second to the indices of the keys that it has only read.
  private func writing<Result>(
    _ keys: [StoreKey], _ ranges: [KeyRange], _ operation: StoreOperation,
    _ body: (inout SharedLoad.Values?, inout Set<Int>) async throws -> Result
  ) async throws -> Result {
    try await operations.run(operation, of: information) {
      let time = beginCopying()
      let write = state.withLock { Write(keys, ranges, in: &$0.busy) }
      // After an error, the state of the keys is known only to the base, and nothing is cached.
      defer { state.withLock { write.end(in: &$0.busy) } }
      do {
        try await removeCopies(of: keys, in: ranges)
      } catch {
        noteReports(of: keys, in: ranges)
        guard var error = error as? StoreError else { throw error }
        // The outcome in the cache may be unknown, but the base is unchanged.
        error.operation = operation
        error.outcome = .nothingChanged
        throw error
      }
      var values: SharedLoad.Values?
      var readOnly: Set<Int> = []
      let result: Result
      do {
        result = try await body(&values, &readOnly)
      } catch let error as StoreError where error.outcome == .unknown {
        baseDoubt.arise()
        throw error
      }
      if let values {
        let areCurrent = state.withLock { [readOnly] state in
          keys.indices.map { state.busy.endReports(of: write.keys[$0], isReported: !readOnly.contains($0)) }
        }
        await insert(keys, values, at: time) { index, busy in
          areCurrent[index] && busy.isCurrent(write.keys[index])
        }
      }
      return result
    }
  }

  // MARK: Insertion

  /// Copies the results of a load into the cache, except those whose keys have changed since it began.
  ///
  /// - Parameters:
  ///   - keys: The keys.
  ///   - fills: The fill of each key, or `nil` for a key that was busy or is loaded by another reader.
  ///   - boxes: The values.
  ///   - time: The time when the load began.
  func copy(_ keys: [StoreKey], _ fills: [Keys.Fill?], _ boxes: SharedLoad.Values, at time: Int64) async {
    await insert(keys, boxes, at: time) { index, busy in fills[index].map { busy.isCurrent($0) } ?? false }
    end(fills)
  }

  /// Replaces the copies of some keys by the results of a reload, so no later reader gets an older value.
  ///
  /// - Parameters:
  ///   - keys: The keys.
  ///   - fills: The fill of each key, or `nil` for a key that was busy.
  ///   - boxes: The values.
  ///   - time: The time when the load began.
  /// - Throws: The errors of removing the former copies.
  func replace(_ keys: [StoreKey], _ fills: [Keys.Fill?], _ boxes: SharedLoad.Values, at time: Int64) async throws {
    let (areCurrent, write) = state.withLock { state in
      let areCurrent = fills.map { $0.map { state.busy.end($0) } ?? false }
      let write = Write(keys, [], in: &state.busy)
      // The base reports no write for this.
      for key in write.keys { _ = state.busy.endReports(of: key, isReported: false) }
      return (areCurrent, write)
    }
    defer { state.withLock { write.end(in: &$0.busy) } }
    do {
      try await removeCopies(of: keys, in: [])
    } catch {
      noteReports(of: keys, in: [])
      throw error
    }
    await insert(keys, boxes, at: time) { index, busy in areCurrent[index] && busy.isCurrent(write.keys[index]) }
  }

  /// Ends loads without a result for the cache.
  func end(_ fills: [Keys.Fill?]) {
    state.withLock { state in
      for case let fill? in fills { _ = state.busy.end(fill) }
    }
  }

  /// Inserts copies of entries into the cache.
  ///
  /// - Parameters:
  ///   - keys: The keys.
  ///   - boxes: The value of each key, or `nil` if the base does not have it.
  ///   - time: The time when the values were read or written.
  ///   - isAllowed: A closure that decides whether the entry at an index may be inserted.
  private func insert(
    _ keys: [StoreKey], _ boxes: SharedLoad.Values, at time: Int64, isAllowed: (_ index: Int, Keys) -> Bool
  ) async {
    do {
      try await insertions.enter(.shared)
      defer { insertions.leave() }
      let allowed = state.withLock { state in keys.indices.filter { isAllowed($0, state.busy) } }
      var batch = ChangeBatch<CachedCopy<Value>>()
      for index in allowed where isCacheable(keys[index]) {
        let key = keys[index]
        if boxes[index] != nil || configuration.negativeTimeToLive != nil {
          batch.setValue(CachedCopy(value: boxes[index].map(value), time: time), forKey: key)
        } else if try await hasCopies(of: [key], in: []) {
          // Too old, or of an entry that others have removed from the base.
          batch.removeValue(forKey: key)
        }
      }
      guard !batch.isEmpty else { return }
      // A copy must not outlive an entry that a power failure takes back.
      if base.information.durability == .synced { try await baseDoubt.settle { try await base.synchronize() } }
      try await changeCopies(batch)
    } catch is CancellationError {
      // The entries are not cached, which is no failure.
    } catch {
      report(error)
    }
  }

  // MARK: Removal

  /// Removes the copies of busy keys, durably.
  private func removeCopies(of keys: [StoreKey], in ranges: [KeyRange]) async throws {
    // Later insertions find the keys busy. This waits for those that have begun.
    try await insertions.enter(.exclusive)
    insertions.leave()
    let keys = keys.filter(isCacheable)
    if try await hasCopies(of: keys, in: ranges) {
      try await changeCopies(ChangeBatch(keys.map { .remove($0) } + ranges.map { .removeAll($0) }))
    }
    guard !keys.isEmpty || !ranges.isEmpty else { return }
    switch cache.information.durability {
    case .buffered, .accepted:
      // Also if there is no copy now: a power failure could bring back one that was evicted a moment ago.
      try await cache.synchronize()
    case .synced: try await cacheDoubt.settle { try await cache.synchronize() }
    case .volatile: break
    }
  }

  private func changeCopies(_ batch: ChangeBatch<CachedCopy<Value>>) async throws {
    do {
      try await copies.apply(batch)
    } catch let error as StoreError where error.outcome == .unknown {
      cacheDoubt.arise()
      throw error
    }
  }

  /// Returns whether the cache has copies of some keys, or may have them.
  private func hasCopies(of keys: [StoreKey], in ranges: [KeyRange]) async throws -> Bool {
    // A removal in vain costs a commit, but many look-ups cost more.
    guard keys.count <= 16 else { return true }
    for range in ranges + keys.map({ .only($0) }) {
      if try await !copies.keys(in: range, limit: 1).isEmpty { return true }
    }
    return false
  }
}

/// The doubt whether a store still shows the same entries after a power failure.
///
/// It exists from the beginning, because an earlier process may have died during a write, and after a write whose outcome
/// is unknown. It ends when the store has been synchronized.
final class Doubt: Sendable {
  private struct State: Sendable {
    /// The number of times that doubt has arisen.
    var number = 1
    /// The highest number that a synchronization has settled.
    var settled = 0
  }

  private let state = Locked(State())

  func arise() { state.withLock { $0.number += 1 } }

  /// Calls a closure that synchronizes the store, unless there is no doubt.
  func settle(by synchronize: () async throws -> Void) async throws {
    // A write that fails during the synchronization leaves a doubt.
    let (number, settled) = state.withLock { ($0.number, $0.settled) }
    guard settled < number else { return }
    try await synchronize()
    state.withLock { $0.settled = max($0.settled, number) }
  }
}

/// A running write of a ``TieredStore``, whose keys are busy.
private struct Write {
  typealias Keys = BusyKeys<SharedLoad.Part>

  let keys: [Keys.KeyWrite]
  private let ranges: [Keys.RangeWrite]

  /// Marks the keys of a write as busy.
  init(_ keys: [StoreKey], _ ranges: [KeyRange], in busy: inout Keys) {
    let rangeWrites = ranges.map { busy.beginWrite(in: $0) }
    self.keys = keys.map { busy.beginWrite(of: $0, besides: rangeWrites) }
    self.ranges = rangeWrites
  }

  func end(in busy: inout Keys) {
    for range in ranges { busy.end(range) }
    for key in keys { _ = busy.end(key) }
  }
}
