import Larder

/// A sliding deadline that a read has renewed and that is not yet in the base.
@usableFromInline
struct Renewal: Sendable {
  let key: StoreKey

  /// The deadline in the base, as far as is known.
  ///
  /// An entry with any other one was written anew: this renewal is void.
  fileprivate(set) var stored: Deadline

  /// The deadline that an update of the base is writing; `nil` if none is.
  fileprivate(set) var written: Deadline?

  /// The deadline that counts in this process.
  fileprivate(set) var renewed: Deadline

  /// The context of the reader.
  let caller: (any CallerContext)?

  fileprivate var isQueued = true

  fileprivate func concerns(_ found: Deadline) -> Bool {
    found == stored || found == written
  }

  /// The deadline that counts for an entry that was found with another one.
  func deadline(inPlaceOf found: Deadline) -> Deadline {
    concerns(found) ? renewed : found
  }
}

/// Decides which renewals are written when: plain state without any I/O.
///
/// Renewals are written in batches, one after another and the oldest first. A key has one renewal at most, whatever the
/// number of its readers. After a failed update the renewals of the batch wait behind all others, and still count in this
/// process.
struct PendingRenewals: Sendable {
  /// The most renewals that wait.
  ///
  /// Reads beyond it leave the deadline as it is, and the next read tries again.
  static let limit = 10_000

  /// The most renewals of a batch, so that no other writer waits for long.
  static let batchSize = 512

  /// The time after a failed update within which no read starts another one.
  static let pauseMicroseconds: Int64 = 1_000_000

  /// The codes of errors that concern the whole store, even if they name a key.
  private static let storeWideCodes: Set<StoreError.Code> = [
    .closed, .conflict, .full, .ioFailed, .locked, .notPermitted, .timedOut,
  ]

  /// The renewals by key, those included that are being written.
  private(set) var renewals: [StoreKey: Renewal] = [:]

  /// The counts since the store was opened.
  private(set) var statistics = ExpiryStatistics()

  /// The keys of the renewals that are to be written, in order.
  ///
  /// Those of renewals that are gone may still be here.
  private var queue: [StoreKey] = []

  /// Whether a batch is going to be taken that contains whatever is noted now.
  private var isScheduled = false

  /// When an update failed; `nil` once one has succeeded.
  private var failureTime: WallTime?

  /// Notes that an entry was read whose sliding deadline may have to be renewed.
  ///
  /// - Parameters:
  ///   - key: The key of the entry.
  ///   - found: The deadline of the entry in the base.
  ///   - now: The time.
  ///   - caller: The context of the reader.
  /// - Returns: Whether the caller must see to it that the next batch is taken.
  mutating func note(_ key: StoreKey, _ found: Deadline, at now: WallTime, for caller: (any CallerContext)?) -> Bool {
    let previous = renewals[key]
    let current = previous?.deadline(inPlaceOf: found) ?? found
    if !current.isPast(at: now), let renewed = current.moved(byReadAt: now) {
      guard previous != nil || renewals.count < PendingRenewals.limit else {
        statistics.droppedRenewalCount += 1
        return schedule(at: now)
      }
      if var previous, previous.concerns(found) {
        previous.renewed = renewed
        renewals[key] = previous
      } else {
        renewals[key] = Renewal(key: key, stored: found, renewed: renewed, caller: caller)
      }
      if previous?.isQueued != true { queue.append(key) }
      renewals[key]?.isQueued = true
    }
    return schedule(at: now)
  }

  /// Takes the next batch, for which ``finish(_:writing:error:at:)`` must be called before another one is taken.
  ///
  /// - Parameter now: The time. Renewals whose new deadline has passed are dropped.
  mutating func nextBatch(at now: WallTime) -> [Renewal] {
    isScheduled = false
    var batch: [Renewal] = []
    var takenCount = 0
    for key in queue where batch.count < PendingRenewals.batchSize {
      takenCount += 1
      guard var renewal = renewals[key], renewal.isQueued else { continue }
      if renewal.renewed.isPast(at: now) {
        renewals[key] = nil
        statistics.droppedRenewalCount += 1
      } else {
        renewal.isQueued = false
        renewal.written = renewal.renewed
        renewals[key] = renewal
        batch.append(renewal)
      }
    }
    queue.removeFirst(takenCount)
    return batch
  }

  /// Notes how the update of a batch ended.
  ///
  /// - Parameters:
  ///   - batch: The batch.
  ///   - count: The number of deadlines that were written; the other entries had been written anew or removed.
  ///   - error: The error, if the update failed. A renewal whose entry is at fault is dropped, so that it does not fail the
  ///     others. If no entry is known to be at fault, the batch waits behind all others, which may be written.
  ///   - now: The time.
  /// - Returns: Whether the caller must see to it that the next batch is taken.
  mutating func finish(_ batch: [Renewal], writing count: Int, error: (any Error)?, at now: WallTime) -> Bool {
    let fault = error.flatMap { PendingRenewals.keyAtFault(in: batch, after: $0) }
    var failed: [StoreKey] = []
    for taken in batch {
      // One without is a newer renewal of an entry that was written meanwhile.
      guard var renewal = renewals[taken.key], let written = renewal.written else { continue }
      renewal.written = nil
      if taken.key == fault {
        renewals[taken.key] = nil
        statistics.droppedRenewalCount += 1
      } else if error != nil {
        if !renewal.isQueued { failed.append(taken.key) }
        renewal.isQueued = true
        renewals[taken.key] = renewal
      } else {
        renewal.stored = written
        renewals[taken.key] = renewal.isQueued ? renewal : nil
      }
    }
    queue.append(contentsOf: failed)
    statistics.writtenRenewalCount += count
    if let error { noteFailure(error) }
    failureTime = error == nil || fault != nil ? nil : now
    return schedule(at: now)
  }

  /// The key of the entry that is alone at fault for a failed update; `nil` if none is known.
  static func keyAtFault(in batch: [Renewal], after error: any Error) -> StoreKey? {
    guard let error = error as? StoreError, error.outcome == .nothingChanged, !error.isRetryable,
      !storeWideCodes.contains(error.code)
    else { return nil }
    return batch.first { $0.key == error.key }?.key
  }

  /// Counts an update for renewals or a purge that failed.
  mutating func noteFailure(_ error: any Error) {
    statistics.failureCount += 1
    statistics.lastError = error
  }

  /// Whether renewals wait that nothing is going to take: an update has failed, and the pause after it is over.
  func isStalled(at now: WallTime) -> Bool {
    // A clock that was put back does not make the pause longer.
    let isPausing = failureTime.map { (0..<PendingRenewals.pauseMicroseconds).contains($0.microseconds(until: now)) }
    return !isScheduled && !queue.isEmpty && isPausing != true
  }

  private mutating func schedule(at now: WallTime) -> Bool {
    guard isStalled(at: now) else { return false }
    isScheduled = true
    return true
  }
}
