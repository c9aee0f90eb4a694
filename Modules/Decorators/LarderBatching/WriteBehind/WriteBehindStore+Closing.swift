public import Larder

extension WriteBehindStore {
  /// Writes all accepted changes and closes the base.
  ///
  /// The method waits for at most the ``WriteBehindRetryPolicy/closingTime`` of the policy, which has no limit by
  /// default; see ``close(within:)``. It ignores cancellation.
  ///
  /// - Throws: `StoreError` from the first failure not yet taken with ``takeFailures()``, which you can still call, or
  ///   with `timedOut` if the limit was reached; the errors of the base. The store is closed even if this method throws.
  public func close() async throws {
    try await close(within: retries.closingTime, saving: nil)
  }

  /// Writes accepted changes for a limited time and closes the base.
  ///
  /// At the limit, a running attempt is cancelled, and the method waits for its end, as the base does in its own
  /// `close()`. The changes that are then not written become a failure with `timedOut`, which the failure handler and
  /// ``takeFailures()`` receive. The method ignores cancellation.
  ///
  /// - Parameter limit: The maximum time to wait for changes to be written.
  /// - Throws: `StoreError` as ``close()`` does. The store is closed even if this method throws.
  public func close(within limit: Duration) async throws {
    try await close(within: limit, saving: nil)
  }

  /// Writes accepted changes for a limited time, saves the others in a second store, and closes the base.
  ///
  /// ```swift
  /// let rescue = try await JSONFileStore<UnwrittenChange<Position>>(path: folder + "/unwritten.json")
  /// try await positions.close(within: .seconds(10), savingTo: rescue)
  /// ```
  ///
  /// The second store decides about durability, encryption and format; it is not refused if it stores the values of a base that
  /// encrypts in plain form, because the changes would be lost. A change to a key replaces a saved change to it.
  /// ``restoreChanges(from:)`` of a new object writes the saved changes. At the limit, a running attempt is cancelled, as
  /// ``close(within:)`` says. Changes that were given up before are not saved; see
  /// ``WriteBehindFailure/unwrittenChanges``.
  ///
  /// - Parameters:
  ///   - limit: The maximum time to wait for changes to be written.
  ///   - rescue: The store for the changes that are not written. It stays open.
  /// - Returns: The number of saved keys.
  /// - Throws: `StoreError` as ``close()`` does, but none for saved changes; the errors of `rescue`, in which case the
  ///   changes become a failure. The store is closed even if this method throws.
  @discardableResult
  public func close(
    within limit: Duration, savingTo rescue: some DataStore<UnwrittenChange<Value>>
  ) async throws -> Int {
    try await close(within: limit) { try await rescue.apply($0) }
  }

  /// Writes the changes that ``close(within:savingTo:)`` of an earlier object saved, and removes them from its second
  /// store.
  ///
  /// Call it after opening and before the first write, because the saved changes are accepted as the newest ones. Saved
  /// changes are removed only after they were written, so a crash may repeat some of them, but does not lose any. During an
  /// outage
  /// of the base, the method waits.
  ///
  /// ```swift
  /// let rescue = try await JSONFileStore<UnwrittenChange<Position>>(path: folder + "/unwritten.json")
  /// try await positions.restoreChanges(from: rescue)
  /// ```
  ///
  /// - Parameter rescue: The store with the saved changes. Nothing else may write to it in the meantime.
  /// - Returns: The number of keys whose change was written.
  /// - Throws: `StoreError` from the first failure not yet taken with ``takeFailures()``; the errors of `rescue`;
  ///   `CancellationError` if the task is cancelled, after which you can call the method again.
  @discardableResult
  public func restoreChanges(from rescue: some DataStore<UnwrittenChange<Value>>) async throws -> Int {
    var count = 0
    while true {
      let entries = try await rescue.entries(in: .all, limit: min(1000, bounds.changes), order: .ascending)
      if entries.isEmpty { return count }
      try await apply(
        ChangeBatch(
          entries.map { entry in
            switch entry.value {
            case .set(let value): .set(entry.key, value)
            case .removed: .remove(entry.key)
            }
          }))
      try await flush()
      try await rescue.apply(ChangeBatch(entries.map { .remove($0.key) }))
      count += entries.count
    }
  }

  /// Writes accepted changes until a limit, and closes the base.
  ///
  /// - Parameters:
  ///   - limit: The maximum time, or `nil`.
  ///   - save: A closure that saves the changes that are not written, or `nil` to keep them as a failure.
  /// - Returns: The number of saved keys.
  @discardableResult
  private func close(
    within limit: Duration?,
    saving save: ((ChangeBatch<UnwrittenChange<Value>>) async throws -> Void)?
  ) async throws -> Int {
    let call = PendingCall()
    let (arrival, isFirst) = change { $0.close(call, at: $1) }
    var (isOver, mustThrow, savedCount) = (false, isFirst, 0)
    if case .waits = arrival {
      let timer = limit.map { limit in Task.detached { await self.abandon(after: limit) } }
      _ = await call.wait()
      timer?.cancel()
      isOver = await timer?.value ?? false
      if !isOver, queue.withLock({ $0.isAbandoned }) { mustThrow = true }
    }
    var saveError: (any Error)?
    let (leftovers, retried) = queue.withLock { (isOver ? $0.takeLeftovers() : [], $0.retriedError) }
    if !leftovers.isEmpty {
      let failure = WriteBehindFailure(leftovers, error: errors.unwritten(retried))
      do {
        if let save {
          let changes = failure.unwrittenChanges
          try await save(changes)
          savedCount = changes.count
        }
      } catch {
        saveError = error
      }
      if save == nil || saveError != nil {
        mustThrow = true
        onFailure(failure)
        queue.withLock { $0.add(failure) }
      }
    }
    try await base.close()
    if let saveError { throw saveError }
    if mustThrow { try throwFirstError() }
    return savedCount
  }

  /// Ends the writing when a time is over.
  ///
  /// - Returns: A Boolean value that indicates whether it did, rather than being cancelled before.
  private func abandon(after limit: Duration) async -> Bool {
    guard await clock.hasSlept(for: limit) else { return false }
    change { ((), $0.abandon(at: $1)) }
    flusher.withLock { $0 }?.cancel()
    return true
  }
}
