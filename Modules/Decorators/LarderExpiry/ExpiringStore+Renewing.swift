public import Larder
import Synchronization

/// Renewal of sliding deadlines in the background.
extension ExpiringStore {
  /// Returns the statistics of the background work, including pending renewals.
  ///
  /// ```swift
  /// let statistics = sessions.statistics()
  /// print(statistics.pendingRenewalCount, statistics.writtenRenewalCount, statistics.droppedRenewalCount)
  /// if let error = statistics.lastError { print(statistics.failureCount, error) }
  /// ```
  public func statistics() -> ExpiryStatistics {
    renewals.withLock { state in
      var statistics = state.statistics
      statistics.pendingRenewalCount = state.renewals.count
      return statistics
    }
  }

  // MARK: Pending renewals

  // A read looks up renewals after it has read the clock and before it reads the base. A renewal that it does not find
  // was therefore written to the base before the read, or began after the time of the read.

  /// Returns the pending renewal of a key.
  @usableFromInline
  func renewal(of key: StoreKey) -> Renewal? {
    guard hasRenewals.load(ordering: .acquiring) else { return nil }
    return renewals.withLock { $0.renewals[key] }
  }

  /// Returns all pending renewals.
  @usableFromInline
  func allRenewals() -> [StoreKey: Renewal] {
    guard hasRenewals.load(ordering: .acquiring) else { return [:] }
    return renewals.withLock { $0.renewals }
  }

  /// Returns the pending renewals of some keys, in order, or an empty array if there aren't any at all.
  func pendingRenewals(of keys: [StoreKey]) -> [Renewal?] {
    guard hasRenewals.load(ordering: .acquiring) else { return [] }
    return renewals.withLock { state in keys.map { state.renewals[$0] } }
  }

  /// Returns the entries that an update has read, with their renewed deadlines.
  func renewed(_ slots: UpdateSlots<Expiring<Value>>, of keys: [StoreKey]) -> [Expiring<Value>?] {
    var entries = Array(slots)
    for (index, renewal) in pendingRenewals(of: keys).enumerated() {
      guard let renewal, let found = entries[index]?.deadline else { continue }
      entries[index]?.deadline = renewal.deadline(inPlaceOf: found)
    }
    return entries
  }

  /// Returns whether a read must renew the deadline of an entry, or `nil` if the entry has expired.
  ///
  /// It must also restart the writing of a renewal that failed. The deadline that counts is the renewed one, so the next
  /// read that is due may be far off.
  ///
  /// - Parameters:
  ///   - found: The deadline of the entry in the base.
  ///   - renewal: The renewal of the key that was pending before the base was read.
  ///   - now: The time of the read.
  func isRenewalDue(for found: ExpiryDeadline, _ renewal: Renewal?, at now: WallTime) -> Bool? {
    let deadline = renewal?.deadline(inPlaceOf: found) ?? found
    guard !deadline.isPast(at: now) else { return nil }
    return deadline.moved(byReadAt: now) != nil || renewal != nil && renewals.withLock { $0.isStalled(at: now) }
  }

  /// Returns whether an entry with a sliding deadline is live for a read, and renews the deadline if that is due.
  ///
  /// - Parameter key: The key of the entry. For the others, see ``isRenewalDue(for:_:at:)``.
  @usableFromInline
  func readSliding(_ key: StoreKey, _ found: ExpiryDeadline, _ renewal: Renewal?, at now: WallTime) -> Bool {
    guard let isDue = isRenewalDue(for: found, renewal, at: now) else { return false }
    if isDue { renew([(key, found, renewal)]) }
    return true
  }

  // MARK: Writing

  /// Renews the deadlines of entries that were read, if they are due, and restarts failed renewals.
  ///
  /// - Parameter found: The keys, with the deadlines of their entries in the base, and the renewals that were pending before the
  ///   base was read.
  func renew(_ found: [(key: StoreKey, deadline: ExpiryDeadline, seen: Renewal?)]) {
    guard !found.isEmpty, !Task.isCancelled, !operations.isClosing else { return }
    guard base.information.access == .readWrite else { return }
    let caller = CallerContexts.current
    let isDue = withRenewals { state in
      // The flag is set before the clock is read. A read that finds the entry expired at that time or later sees the
      // flag and waits for the lock. Therefore the clock is read under the lock.
      hasRenewals.store(true, ordering: .sequentiallyConsistent)
      let now = now()
      var isDue = false
      for read in found where state.note(read.key, read.deadline, read.seen, at: now, for: caller) { isDue = true }
      return isDue
    }
    if isDue { writeRenewals() }
  }

  /// Writes all pending renewals, including failed ones, and stops at the first failure that is not the fault of one
  /// entry.
  ///
  /// It does not wait for renewals that are recorded in the meantime, except for those of one batch.
  func settleRenewals() async {
    let pendingCount = renewals.withLock { $0.renewals.count }
    var (batchCount, faultCount) = (pendingCount / PendingRenewals.batchSize + 2, pendingCount)
    while batchCount > 0, faultCount >= 0, hasRenewals.load(ordering: .acquiring) {
      switch await writeRenewals().value {
      case .written: batchCount -= 1
      case .entryAtFault: faultCount -= 1
      case .failed: return
      }
    }
  }

  /// Writes the next batch after the previous one has been written.
  ///
  /// The batch has a task of its own that no reader waits for or cancels.
  ///
  /// - Returns: The task, whose value is the outcome.
  @discardableResult
  private func writeRenewals() -> Task<RenewalOutcome, Never> {
    renewing.withLock { last in
      let task = Task.detached { [last] in
        _ = await last?.value
        return await self.writeNextRenewals()
      }
      last = task
      return task
    }
  }

  private func writeNextRenewals() async -> RenewalOutcome {
    let start = now()
    let batch = withRenewals { $0.nextBatch(at: start) }
    guard !batch.isEmpty else { return .written }
    var count = 0
    var failure: (any Error)?
    do {
      count = try await CallerContexts.run(for: batch.map(\.caller)) {
        try await base.update(deciding: batch.map(\.key)) { slots in
          var count = 0
          for (index, renewal) in batch.enumerated() where slots[index]?.deadline == renewal.stored {
            slots[index]?.deadline = renewal.renewed
            count += 1
          }
          // Otherwise every entry was written again or removed.
          return count > 0 ? .commit(count) : .discard(0)
        }
      }
    } catch {
      failure = error
    }
    let end = now()
    if withRenewals({ $0.finish(batch, writing: count, error: failure, at: end) }) { writeRenewals() }
    guard let failure else { return .written }
    return PendingRenewals.keyAtFault(in: batch, after: failure) == nil ? .failed : .entryAtFault
  }

  private func withRenewals<Result: Sendable>(_ body: (inout PendingRenewals) -> Result) -> Result {
    renewals.withLock { state in
      let result = body(&state)
      let isPending = !state.renewals.isEmpty
      if hasRenewals.load(ordering: .relaxed) != isPending { hasRenewals.store(isPending, ordering: .releasing) }
      return result
    }
  }
}

/// The outcome of writing a batch of renewals.
enum RenewalOutcome: Sendable {
  /// The batch was written, or there was none.
  case written
  /// Nothing was written because of one entry, whose renewal was discarded.
  case entryAtFault
  /// Nothing is known to be written.
  case failed
}

/// The statistics of the background work of an ``ExpiringStore``, whose errors no caller receives.
public struct ExpiryStatistics: Sendable {
  /// The number of sliding deadlines that reads have renewed and that are not yet in the base.
  public internal(set) var pendingRenewalCount = 0

  /// The number of renewed deadlines that were written.
  public internal(set) var writtenRenewalCount = 0

  /// The number of renewals that were discarded.
  ///
  /// A renewal is discarded if too many are pending, if the new deadline passes before it is written, or if the store
  /// refuses the entry, for instance because it cannot be read or encoded.
  public internal(set) var droppedRenewalCount = 0

  /// The number of background updates that failed: renewals, which are tried again, and purges by writes.
  public internal(set) var failureCount = 0

  /// The last error of a background update, or `nil` if there was no failure.
  public internal(set) var lastError: (any Error)?
}
