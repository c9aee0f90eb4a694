import Larder
import Synchronization

/// Removing what has expired.
extension ExpiringStore {
  /// How many entries are read at once, and removed at once, so that no other writer waits for long.
  static var sliceSize: Int { 128 }

  /// Removes entries that have expired, and thereby gives back their space; see `ExpirableStore`.
  ///
  /// It reads the whole store, from the first key on, in slices; of each it removes what has expired in one update of the
  /// base, which looks at every deadline again: a value that was written meanwhile stays. Other writers come between the
  /// slices. An entry that cannot be decoded stays.
  ///
  /// - Parameter limit: The most entries to remove; `Int.max` for all that have expired.
  /// - Returns: How many were removed.
  /// - Throws: What the base throws on reading and writing; `CancellationError` where the task is cancelled, between two
  ///   slices; `invalidArgument` where the limit is negative. What was removed before stays so.
  @discardableResult
  public func purgeExpired(limit: Int) async throws -> Int {
    try base.information.check(limit: limit, for: .purgeExpired)
    var removed = 0
    var remaining: KeyRange? = .all
    while let range = remaining, removed < limit {
      let purged = try await purge(range, size: Self.sliceSize, limit: limit - removed, for: .purgeExpired)
      removed += purged.removed
      remaining = purged.remaining
    }
    return removed
  }

  /// Makes what purges this store every so often; see ``ExpiryPurger``.
  ///
  /// - Parameters:
  ///   - interval: The time from the end of one purge to the beginning of the next, more than zero.
  ///   - clock: What measures it; a `ContinuousClock` unless given.
  public func purger(every interval: Duration, clock: any Clock<Duration> = ContinuousClock()) -> ExpiryPurger {
    ExpiryPurger(storeName: base.information.name, interval: interval, clock: clock) { [weak self] range in
      try await self?.purge(range, size: Self.sliceSize, limit: .max, for: .purgeExpired)
    }
  }

  /// Removes what has expired of the first entries of a range.
  ///
  /// - Parameters:
  ///   - range: Where.
  ///   - size: How many entries to look at.
  ///   - limit: The most entries to remove.
  ///   - operation: What errors name.
  func purge(
    _ range: KeyRange, size: Int, limit: Int, for operation: StoreOperation
  ) async throws -> PurgedSlice {
    try Task.checkCancellation()
    guard running.begin() else { throw base.information.closedError(for: operation) }
    defer { running.end() }
    return try await reporting(operation) {
      let slice = try await decodableEntries(in: range, limit: size)
      let (seen, renewals) = (now(), allRenewals())
      let expired = slice.entries.filter { !$0.value.isLive(at: seen, with: renewals[$0.key]) }.prefix(limit).map(\.key)
      guard !expired.isEmpty else { return PurgedSlice(removed: 0, remaining: slice.remaining) }
      do {
        let removed = try await base.update(expired) { [self] slots in
          let now = now()
          applyRenewals(to: &slots, of: expired)
          var count = 0
          for index in slots.indices where slots[index]?.isLive(at: now) == false {
            slots[index] = nil
            count += 1
          }
          guard count > 0 else { throw NothingToChange() }
          return count
        }
        return PurgedSlice(removed: removed, remaining: slice.remaining)
      } catch is NothingToChange {
        return PurgedSlice(removed: 0, remaining: slice.remaining)
      }
    }
  }

  /// Reads the first entries of a range, up to what cannot be read.
  ///
  /// - Returns: The entries, and what of the range lies behind them; what cannot be read lies in neither.
  func decodableEntries(
    in range: KeyRange, limit: Int
  ) async throws -> (entries: [StoreEntry<Expiring<Value>>], remaining: KeyRange?, isDamaged: Bool) {
    var readable = range
    var remaining: KeyRange?
    while true {
      let isDamaged = readable != range
      do {
        let entries =
          readable.isEmpty ? [] : try await base.entries(in: readable, limit: limit, order: .ascending)
        if entries.count >= limit, let last = entries.last { return (entries, range.after(last.key), false) }
        return (entries, remaining, isDamaged)
      } catch let error as StoreError {
        // Its deadline is not known, so it stays; what lies before it and behind it does not suffer for it.
        guard let lost = error.lostKeys, let before = readable.part(before: lost), let after = range.part(after: lost)
        else { throw error }
        (readable, remaining) = (before, after.isEmpty ? nil : after)
      }
    }
  }

  /// Runs a write after the purge that is due with it.
  ///
  /// A purge that fails does not refuse the write: ``statistics`` counts it, and a later write tries again.
  ///
  /// - Parameters:
  ///   - count: How many entries are written.
  ///   - operation: The write.
  ///   - body: Does the write.
  func writing<Result>(
    _ count: Int, for operation: StoreOperation, _ body: () async throws -> Result
  ) async throws -> Result {
    guard running.begin() else { throw base.information.closedError(for: operation) }
    defer { running.end() }
    if purgesOnWrite, let slice = writePurge.withLock({ $0.begin(writing: count) }) {
      var remaining: KeyRange? = slice.range
      do {
        remaining = try await purge(slice.range, size: slice.size, limit: .max, for: .purgeExpired).remaining
      } catch is CancellationError {
        // Nobody's fault. The write looks for itself whether it is cancelled.
      } catch {
        renewals.withLock { $0.noteFailure(error) }
      }
      writePurge.withLock { $0.end(remaining: remaining) }
    }
    return try await body()
  }
}

/// What came of purging a part of a store.
struct PurgedSlice: Sendable {
  /// How many entries were removed.
  let removed: Int

  /// What of the range is still to be looked at; `nil` where nothing is.
  let remaining: KeyRange?
}
