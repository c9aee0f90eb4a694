import Larder

extension BoundedStore {
  /// The current time in microseconds since 1970.
  var nowMicroseconds: Int64 { options.now().microseconds }

  /// Records the read of an entry, and starts to persist uses if that is due.
  func noteUse(of key: StoreKey) {
    guard information.access == .readWrite, !running.isClosing else { return }
    let now = nowMicroseconds
    if uses.withLock({ $0.note(key, at: now) }) { persistUses() }
  }

  /// Persists all recorded uses, until one batch fails.
  func settleUses() async {
    await persisting.withLock { $0 }?.value
    let batchCount = uses.withLock { $0.pending.count } / PendingUses.batchSize + 1
    let failureCount = statistics.failureCount
    for _ in 0..<batchCount where statistics.failureCount == failureCount { await persistUses().value }
  }

  /// Persists the next batch after the previous one, in a task of its own, which no reader waits for or cancels.
  @discardableResult
  private func persistUses() -> Task<Void, Never> {
    persisting.withLock { last in
      let task = Task.detached { [last] in
        await last?.value
        await self.persistNextUses()
      }
      last = task
      return task
    }
  }

  private func persistNextUses() async {
    let now = nowMicroseconds
    let keys = uses.withLock { $0.takeBatch(at: now) }
    guard !keys.isEmpty else { return }
    do {
      let count = try await persist(keys)
      counters.withLock { $0.persistedUseCount += count }
    } catch {
      // The entries keep their places in the base. Their next uses are recorded again.
      counters.withLock { counters in
        counters.failureCount += 1
        counters.lastError = error
      }
    }
  }

  /// Moves entries to the end of the order of use, except for those that another process has moved within the interval.
  ///
  /// - Returns: The number of entries that were moved.
  private func persist(_ keys: [StoreKey]) async throws -> Int {
    try await committing(.update) {
      let read = try await read(keys, withValues: false, during: .update)
      let now = nowMicroseconds
      let due = try keys.indices.filter { number in
        guard let record = try read.record(number, of: keys[number]) else { return false }
        return uses.withLock { $0.recent.isDue(at: now, after: record.microseconds) }
      }
      var commit = BoundedCommit(read.totals)
      for number in due {
        guard let record = try read.record(number, of: keys[number]) else { continue }
        commit.use(keys[number], record, at: now, layout)
      }
      return (commit, due.count)
    }
  }
}
