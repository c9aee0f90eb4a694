import Larder

/// A sliding deadline that a read has renewed and that is not yet in the base.
@usableFromInline
struct Renewal: Sendable {
  let key: StoreKey

  /// The deadline in the base, as far as known.
  ///
  /// An entry with any other deadline was written again, and this renewal is void.
  fileprivate(set) var stored: ExpiryDeadline

  /// The deadline that an update of the base is writing, or `nil` if there isn't one.
  fileprivate(set) var written: ExpiryDeadline?

  /// The deadline that counts in this process.
  fileprivate(set) var renewed: ExpiryDeadline

  /// The context of the reader.
  let caller: (any CallerContext)?

  fileprivate var isQueued = true

  fileprivate func concerns(_ found: ExpiryDeadline) -> Bool {
    found == stored || found == written
  }

  /// Returns the deadline that counts for an entry that was found with another one.
  @usableFromInline
  func deadline(inPlaceOf found: ExpiryDeadline) -> ExpiryDeadline {
    concerns(found) ? renewed : found
  }
}

/// Decides which renewals are written, and when.
///
/// This is plain state without any I/O. Renewals are written in batches, one after another and the oldest first. A key
/// has at most one renewal, whatever the number of its readers. After a failed update, the renewals of the batch wait
/// behind all others and still count in this process.
struct PendingRenewals: Sendable {
  /// The maximum number of pending renewals.
  ///
  /// Further reads leave the deadline as it is, and the next read tries again.
  static let limit = 10_000

  /// The maximum number of renewals in a batch, so no other writer waits for long.
  static let batchSize = 512

  /// The time after a failed update during which no read starts another one, in microseconds.
  static let pauseMicroseconds: Int64 = 1_000_000

  /// The codes of errors that concern the whole store, even if they name a key.
  private static let storeWideCodes: Set<StoreError.Code> = [
    .closed, .conflict, .full, .ioFailed, .locked, .notPermitted, .timedOut,
  ]

  /// The renewals by key, including those that are being written.
  private(set) var renewals: [StoreKey: Renewal] = [:]

  /// The counts since the store was opened.
  private(set) var statistics = ExpiryStatistics()

  /// The keys of the renewals to write, in order.
  ///
  /// It may still contain keys whose renewal is gone.
  private var queue: [StoreKey] = []

  /// A Boolean value that indicates whether a batch that includes every new renewal will be taken.
  private var isScheduled = false

  /// The time of the last failed update, or `nil` after a success.
  private var failureTime: WallTime?

  /// Records a read of an entry whose sliding deadline may be due.
  ///
  /// - Parameters:
  ///   - key: The key of the entry.
  ///   - found: The deadline of the entry in the base.
  ///   - seen: The renewal that was pending before the base was read, or `nil` if there isn't one.
  ///   - now: The current time.
  ///   - caller: The context of the reader.
  /// - Returns: A Boolean value that indicates whether the caller must ensure that the next batch is taken.
  mutating func note(
    _ key: StoreKey, _ found: ExpiryDeadline, _ seen: Renewal?, at now: WallTime, for caller: (any CallerContext)?
  ) -> Bool {
    let previous = renewals[key]
    var found = found
    // A renewal that was written after the reader has read the base: the one that it has seen, or an earlier step of the present
    // one, after which the deadline is later.
    if let previous {
      if found.window == previous.stored.window, found.date < previous.stored.date { found = previous.stored }
    } else if let seen, seen.concerns(found) {
      found = seen.renewed
    }
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

  /// Takes the next batch, which must end with ``finish(_:writing:error:at:)`` before another one is taken.
  ///
  /// - Parameter now: The current time. Renewals whose new deadline has passed are discarded.
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

  /// Records the outcome of the update of a batch.
  ///
  /// - Parameters:
  ///   - batch: The batch.
  ///   - count: The number of deadlines written. The other entries had been written again or removed.
  ///   - error: The error, if the update failed. If one entry is at fault, its renewal is discarded, so it does not
  ///     fail the others. Otherwise the batch waits behind all others, and may succeed.
  ///   - now: The current time.
  /// - Returns: A Boolean value that indicates whether the caller must ensure that the next batch is taken.
  mutating func finish(_ batch: [Renewal], writing count: Int, error: (any Error)?, at now: WallTime) -> Bool {
    let fault = error.flatMap { PendingRenewals.keyAtFault(in: batch, after: $0) }
    var failed: [StoreKey] = []
    for taken in batch {
      // Without a written deadline, it is a newer renewal, of an entry that was written in the meantime.
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

  /// Returns the key of the only entry that is at fault for a failed update, or `nil` if none is known.
  static func keyAtFault(in batch: [Renewal], after error: any Error) -> StoreKey? {
    // A missing key concerns one entry, although a retry can help: the others must not wait for it.
    guard let error = error as? StoreError, error.outcome == .nothingChanged,
      !error.isRetryable || error.code == .keyUnavailable, !storeWideCodes.contains(error.code)
    else { return nil }
    return batch.first { $0.key == error.key }?.key
  }

  /// Counts a failed update of renewals, or a failed purge.
  mutating func noteFailure(_ error: any Error) {
    statistics.failureCount += 1
    statistics.lastError = error
  }

  /// Returns whether renewals wait without a scheduled batch, because an update failed and the pause after it is over.
  func isStalled(at now: WallTime) -> Bool {
    // A clock that is set back does not extend the pause.
    let isPausing = failureTime.map { (0..<PendingRenewals.pauseMicroseconds).contains($0.microseconds(until: now)) }
    return !isScheduled && !queue.isEmpty && isPausing != true
  }

  private mutating func schedule(at now: WallTime) -> Bool {
    guard isStalled(at: now) else { return false }
    isScheduled = true
    return true
  }
}
