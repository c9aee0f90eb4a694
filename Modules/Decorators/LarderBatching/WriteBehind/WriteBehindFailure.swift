public import Larder

/// Changes that a ``WriteBehindStore`` had accepted and could not write, with the error.
///
/// ```swift
/// for failure in positions.takeFailures() {
///   logger.error("\(failure.changes.count) changes were not written: \(failure.error)")
/// }
/// ```
public struct WriteBehindFailure<Value: Sendable>: Sendable {
  /// The changes in the order they were accepted, including those that a later change of the failure replaces.
  ///
  /// All of them failed together.
  public let changes: ChangeBatch<Value>

  /// The error of the write.
  public let error: StoreError

  /// The size of the changes.
  let size: BatchSize

  /// Creates a failure of batches.
  init(_ batches: some Sequence<SizedBatch<Value>>, error: StoreError) {
    changes = ChangeBatch(batches.flatMap { $0.batch.changes })
    size = batches.reduce(into: BatchSize()) { $0 += $1.size }
    self.error = error
  }

  /// The last change to each key, to be written to another store; see ``WriteBehindStore/restoreChanges(from:)``.
  public var unwrittenChanges: ChangeBatch<UnwrittenChange<Value>> {
    var last = SortedEntries<UnwrittenChange<Value>>()
    for change in changes.changes {
      switch change {
      case .set(let key, let value): _ = last.setValue(.set(value), forKey: key)
      case .remove(let key): _ = last.setValue(.removed, forKey: key)
      // Range removals are never delayed.
      case .removeAll: break
      }
    }
    var sets: [BatchChange<UnwrittenChange<Value>>] = []
    last.forEach { sets.append(.set($0, $1)) }
    return ChangeBatch(sets)
  }
}

/// The statistics of the changes that a ``WriteBehindStore`` has accepted and not yet written, which a crash would
/// lose.
public struct WriteBehindStatistics: Sendable, Hashable {
  /// The number of changes that are pending or being written.
  public let pendingChanges: Int

  /// The number of bytes of their keys and values, or 0 if the bounds do not count bytes.
  public let pendingBytes: Int

  /// The age of the oldest change that is pending or being written, or `nil` if there isn't one.
  public let oldestAge: Duration?

  /// The number of callers that wait for room or for exclusive access to the base.
  public let waitingCallers: Int

  /// The number of failed changes that were not yet taken.
  public let failedChanges: Int

  /// The number of times in a row that changes were tried and stayed pending because of an error that a retry may mend.
  ///
  /// It is 0 if the base works. During an outage it grows.
  public let failedAttempts: Int
}
