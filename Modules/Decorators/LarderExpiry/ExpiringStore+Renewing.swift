public import Larder
import Synchronization

/// Renewing sliding deadlines in the background.
extension ExpiringStore {
  /// What the store has done in the background, renewals that are pending included.
  public var statistics: ExpiryStatistics {
    renewals.withLock { state in
      var statistics = state.statistics
      statistics.pendingRenewalCount = state.renewals.count
      return statistics
    }
  }

  // MARK: Looking

  // A read looks for renewals after it took the time and before it reads the base. A renewal that it does not find was
  // then in the base before it reads, or it began after the time of the read.

  /// The pending renewal of a key.
  @usableFromInline
  func renewal(of key: StoreKey) -> Renewal? {
    guard hasRenewals.load(ordering: .acquiring) else { return nil }
    return renewals.withLock { $0.renewals[key] }
  }

  /// All pending renewals.
  func allRenewals() -> [StoreKey: Renewal] {
    guard hasRenewals.load(ordering: .acquiring) else { return [:] }
    return renewals.withLock { $0.renewals }
  }

  /// The pending renewals of some keys, in order; nothing if no key has any.
  func pendingRenewals(of keys: [StoreKey]) -> [Renewal?] {
    guard hasRenewals.load(ordering: .acquiring) else { return [] }
    return renewals.withLock { state in keys.map { state.renewals[$0] } }
  }

  /// Gives entries that an update has read the deadlines that count in this process.
  func applyRenewals(to slots: inout [Expiring<Value>?], of keys: [StoreKey]) {
    for (index, renewal) in pendingRenewals(of: keys).enumerated() {
      guard let renewal, let found = slots[index]?.deadline else { continue }
      slots[index]?.deadline = renewal.deadline(inPlaceOf: found)
    }
  }

  /// Whether a read of an entry with a pending renewal has to see to it that renewals are tried again.
  func needsRetry(_ renewal: Renewal?, at now: WallTime) -> Bool {
    guard renewal != nil else { return false }
    return renewals.withLock { $0.isStalled(at: now) }
  }

  /// Whether an entry with a sliding deadline is live for a read, which renews the deadline if that is due.
  ///
  /// It also has a renewal tried again that could not be written: the deadline that counts is the renewed one, so the next
  /// due read may be far off.
  ///
  /// - Parameters:
  ///   - key: The key of the entry.
  ///   - found: The deadline of the entry in the base.
  ///   - renewal: The renewal of the key that was pending before the base was read.
  ///   - now: The time of the read.
  @usableFromInline
  func readSliding(_ key: StoreKey, _ found: Deadline, _ renewal: Renewal?, at now: WallTime) -> Bool {
    let deadline = renewal?.deadline(inPlaceOf: found) ?? found
    guard !deadline.isPast(at: now) else { return false }
    if deadline.moved(byReadAt: now) != nil || needsRetry(renewal, at: now) { renew([(key, found)]) }
    return true
  }

  // MARK: Writing

  /// Renews the deadlines of entries that were read, as far as they are due, and has failed renewals tried again.
  ///
  /// - Parameter found: The keys with the deadlines of their entries in the base.
  func renew(_ found: [(key: StoreKey, deadline: Deadline)]) {
    guard !found.isEmpty, !Task.isCancelled, !running.isClosing else { return }
    let information = base.information
    guard information.access == .readWrite else { return }
    let caller = information.callerContext?()
    let isDue = withRenewals { state in
      // First the mark and then the time: a read that finds the entry expired at that time or later finds the mark, and
      // waits for the lock. So the clock is read under it.
      hasRenewals.store(true, ordering: .sequentiallyConsistent)
      let now = now()
      var isDue = false
      for (key, deadline) in found where state.note(key, deadline, at: now, for: caller) { isDue = true }
      return isDue
    }
    if isDue { writeRenewals() }
  }

  /// Writes what is pending, whatever failed before, and stops at the first failure for which no entry is at fault.
  ///
  /// It does not wait for renewals that are noted meanwhile, beyond a batch.
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

  /// Writes the next batch when the one before has been written.
  ///
  /// It is a task of its own, which no reader waits for or cancels.
  ///
  /// - Returns: The task, which tells how that ended.
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
      count = try await run(for: batch.map(\.caller)) {
        try await base.update(batch.map(\.key)) { slots in
          var count = 0
          for (index, renewal) in batch.enumerated() where slots[index]?.deadline == renewal.stored {
            slots[index]?.deadline = renewal.renewed
            count += 1
          }
          guard count > 0 else { throw NothingToChange() }
          return count
        }
      }
    } catch is NothingToChange {
      // Every entry was written anew or removed.
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

/// How writing a batch of renewals ended.
enum RenewalOutcome: Sendable {
  /// The batch was written, or there was none.
  case written
  /// Nothing was written because of one entry, whose renewal was dropped.
  case entryAtFault
  /// Nothing is known to be written.
  case failed
}
