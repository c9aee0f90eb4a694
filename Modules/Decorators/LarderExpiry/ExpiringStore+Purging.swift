public import Larder

/// Purging of expired entries.
extension ExpiringStore {
  /// The number of entries that are read, and removed, in one step, so no other writer waits for long.
  static var sliceSize: Int { 128 }

  /// Removes expired entries and frees their space; see `ExpirableStore`.
  ///
  /// It reads the whole store in slices, in key order, and removes the expired entries of each slice in one update of
  /// the base. The update checks every deadline again, so a value that was written in the meantime stays. Other writers
  /// can run between slices. An entry that cannot be decoded stays.
  ///
  /// - Parameter limit: The maximum number of entries to remove, or `Int.max` to remove all expired ones.
  /// - Returns: The number of entries removed.
  /// - Throws: The errors of the base; `CancellationError` if the task is cancelled between two slices;
  ///   `invalidArgument` if the limit is negative. Entries removed before the error stay removed.
  @discardableResult
  public func purgeExpired(limit: Int) async throws -> Int {
    try base.information.check(limit: limit, for: .purgeExpired)
    var removed = 0
    var remaining: KeyRange? = .all
    while let range = remaining, removed < limit {
      let purged = try await purge(range, size: Self.sliceSize, limit: limit - removed)
      removed += purged.removed
      remaining = purged.remaining
    }
    return removed
  }

  /// Returns a purger that periodically purges this store; see ``ExpiryPurger``.
  ///
  /// ```swift
  ///   let purger = sessions.purger(every: .seconds(60))
  ///   let purging = Task { try await purger.run() }
  ///   // When you no longer need it:
  ///   purging.cancel()
  ///
  /// ```
  ///
  /// - Parameters:
  ///   - interval: The time from the end of one purge to the beginning of the next. It must be greater than zero.
  ///   - clock: The clock that measures the interval. Defaults to a `ContinuousClock`.
  public func purger(every interval: Duration, clock: any Clock<Duration> = ContinuousClock()) -> ExpiryPurger {
    ExpiryPurger(storeName: base.information.name, interval: interval, clock: clock) { [weak self] in
      try await self?.purgeExpired(limit: .max)
    }
  }

  /// Removes the expired entries among the first entries of a range.
  ///
  /// - Parameters:
  ///   - range: The range.
  ///   - size: The number of entries to examine.
  ///   - limit: The maximum number of entries to remove.
  /// - Returns: The number of entries removed, and the part of the range that is still to be examined, or `nil` if
  ///   there isn't one.
  private func purge(_ range: KeyRange, size: Int, limit: Int) async throws -> (removed: Int, remaining: KeyRange?) {
    try Task.checkCancellation()
    guard operations.begin() else { throw base.information.closedError(for: .purgeExpired) }
    defer { operations.end() }
    return try await reporting(.purgeExpired) {
      let slice = try await decodableEntries(in: range, limit: size, during: .purgeExpired)
      let (seen, renewals) = (now(), allRenewals())
      let expired = slice.entries.filter { !$0.value.isLive(at: seen, with: renewals[$0.key]) }.prefix(limit).map(\.key)
      guard !expired.isEmpty else { return (0, slice.remaining) }
      let removed = try await base.update(deciding: expired) { [self] slots in
        let now = now()
        let entries = renewed(slots, of: expired)
        let indices = slots.indices.filter { entries[$0]?.isLive(at: now) == false }
        for index in indices { slots[index] = nil }
        return indices.isEmpty ? .discard(0) : .commit(indices.count)
      }
      return (removed, slice.remaining)
    }
  }

  /// Reads the first entries of a range up to the first damage.
  ///
  /// - Returns: The entries, and the part of the range that follows. Unreadable keys lie in neither.
  func decodableEntries(
    in range: KeyRange, limit: Int, during operation: StoreOperation
  ) async throws -> (entries: [StoreEntry<Expiring<Value>>], remaining: KeyRange?, isDamaged: Bool) {
    var readable = range
    var remaining: KeyRange?
    while true {
      let isDamaged = readable != range
      do {
        let entries =
          readable.isEmpty ? [] : try await base.entries(in: readable, limit: limit, order: .ascending)
        if entries.count >= limit, let last = entries.last {
          return (entries, try range.rest(behind: last.key, of: base.information.name, during: operation), false)
        }
        return (entries, remaining, isDamaged)
      } catch let error as StoreError {
        // The deadline of an unreadable entry is not known, so the entry stays. The entries around it are purged all
        // the same.
        guard let lost = error.lostKeys, let before = readable.part(before: lost), let after = range.part(after: lost)
        else { throw error }
        (readable, remaining) = (before, after.isEmpty ? nil : after)
      }
    }
  }

  /// Removes some of the expired entries, if enough entries were written since the last time.
  ///
  /// A purge that fails does not fail the write that it precedes. ``statistics()`` counts it, and a later write tries again.
  ///
  /// - Parameter count: The number of entries that are about to be written.
  func purgeIfDue(beforeWriting count: Int) async {
    guard purgesOnWrite, let slice = writePurge.withLock({ $0.begin(writing: count) }) else { return }
    var remaining: KeyRange? = slice.range
    do {
      remaining = try await purge(slice.range, size: slice.size, limit: .max).remaining
    } catch is CancellationError {
      // Cancellation is not a failure. The write itself checks for it.
    } catch {
      renewals.withLock { $0.noteFailure(error) }
    }
    writePurge.withLock { $0.end(remaining: remaining) }
  }
}

/// Decides which writes purge, which entries, and how many.
///
/// The purge walks through the whole store, over and over, one slice at a time. It examines two entries for each one
/// written. By this, a round finds at least as many expired entries as can have expired in the meantime, so they never
/// outgrow the entries written in one round.
struct WritePurge: Sendable {
  /// A part of the store that is to be purged.
  struct Slice: Sendable, Equatable {
    /// The range where the slice begins.
    let range: KeyRange

    /// The number of entries to examine.
    let size: Int
  }

  /// The number of entries that are written before a slice is due, so most writes cost nothing more.
  static let writesPerSlice = 16

  /// The number of entries that are examined for each one written.
  static let entriesPerWrite = 2

  /// The maximum number of entries in a slice, so no write waits for long.
  static let maximumSliceSize = 128

  /// The number of entries written since the last slice.
  private var writeCount = 0

  /// The range where the next slice begins.
  private var range = KeyRange.all

  /// A Boolean value that indicates whether a write is purging, in which case other writes do not.
  private var isRunning = false

  /// Records that entries are being written.
  ///
  /// - Parameter count: The number of entries.
  /// - Returns: The slice to purge first, which must end with ``end(remaining:)``, or `nil`.
  mutating func begin(writing count: Int) -> Slice? {
    let mostCounted = WritePurge.maximumSliceSize / WritePurge.entriesPerWrite
    writeCount = min(writeCount + min(count, mostCounted), mostCounted)
    guard count > 0, !isRunning, writeCount >= WritePurge.writesPerSlice else { return nil }
    defer { writeCount = 0 }
    isRunning = true
    return Slice(range: range, size: writeCount * WritePurge.entriesPerWrite)
  }

  /// Records the end of a slice.
  ///
  /// - Parameter remaining: The range after the slice, the same range if the purge failed, or `nil` at the end of the
  ///   store.
  mutating func end(remaining: KeyRange?) {
    isRunning = false
    range = remaining ?? .all
  }
}

/// A task body that periodically purges an ``ExpiringStore`` while something else keeps that store alive.
///
/// ```swift
/// let purger = sessions.purger(every: .seconds(60))
/// let purging = Task { try await purger.run() }
/// …
/// purging.cancel()
/// ```
public struct ExpiryPurger: Sendable {
  fileprivate let storeName: String
  fileprivate let interval: Duration
  fileprivate let clock: any Clock<Duration>

  /// Purges the store, or returns `nil` if it no longer exists.
  fileprivate let purge: @Sendable () async throws -> Int?

  /// Waits for the interval and purges the store, repeatedly.
  ///
  /// It returns when its task is cancelled, or at the next purge after the store was closed or the last other reference
  /// to it is gone. To wait for its end after closing the store, cancel the task. It holds the store only while it
  /// purges. You can run it again after an error.
  ///
  /// - Throws: `StoreError` from a failed purge; `invalidArgument` if the interval is not greater than zero.
  public func run() async throws {
    guard interval > .zero else {
      throw StoreError(
        .invalidArgument, during: .purgeExpired, store: storeName,
        message: "the interval must be greater than zero, not \(interval)")
    }
    do {
      while true {
        try await clock.sleep(for: interval)
        guard try await purge() != nil else { return }
      }
    } catch is CancellationError, StoreError.Code.closed {
      return
    }
  }
}

/// Runs operations of the base, whose errors then name the operation that the caller asked for.
@usableFromInline
func reporting<Result>(_ operation: StoreOperation, _ body: () async throws -> Result) async throws -> Result {
  do {
    return try await body()
  } catch var error as StoreError {
    error.operation = operation
    throw error
  }
}
