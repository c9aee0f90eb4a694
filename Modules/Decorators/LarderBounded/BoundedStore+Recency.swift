import Larder

extension BoundedStore {
  /// The current time in microseconds since 1970.
  var nowMicroseconds: Int64 { configuration.now().microsecondsSince1970 }

  /// Records the read of an entry, and starts to persist uses if that is due.
  func noteUse(of key: StoreKey) {
    guard information.access == .readWrite, !operations.isClosing else { return }
    let now = nowMicroseconds
    if uses.note(key, at: now) { uses.startWriting(at: now) { [self] keys in await persistUses(of: keys) } }
  }

  /// Persists all recorded uses, until one batch fails.
  func settleUses() async {
    await uses.settle(at: nowMicroseconds) { [self] keys in await persistUses(of: keys) }
  }

  /// Persists the uses of entries, and returns whether it could.
  private func persistUses(of keys: [StoreKey]) async -> Bool {
    do {
      let count = try await persist(keys)
      counters.withLock { $0.persistedUseCount += count }
      return true
    } catch {
      // The entries keep their places in the base. Their next uses are recorded again.
      counters.withLock { counters in
        counters.failureCount += 1
        counters.lastError = error
      }
      return false
    }
  }

  /// Moves entries to the end of the order of use, except for those that another process has moved within the interval.
  ///
  /// - Returns: The number of entries that were moved.
  private func persist(_ keys: [StoreKey]) async throws -> Int {
    try await committing(.update) { _ in
      let read = try await read(keys, withValues: false, during: .update)
      let now = nowMicroseconds
      var commit = BoundedCommit(read.totals)
      for (number, key) in keys.enumerated() {
        guard let record = try read.record(number, of: key), uses.isDue(at: now, after: record.microseconds) else {
          continue
        }
        commit.use(key, record, at: now, layout)
      }
      return (commit, commit.used.count)
    }
  }
}
