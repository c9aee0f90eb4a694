/// What an ``ExpiringStore`` has done in the background, where no caller is told of errors.
public struct ExpiryStatistics: Sendable {
  /// The number of sliding deadlines that reads have renewed and that are not yet in the base.
  public internal(set) var pendingRenewalCount = 0

  /// The number of renewed deadlines that were written.
  public internal(set) var writtenRenewalCount = 0

  /// The number of renewals that were given up, because too many were pending, the new deadline passed before it could be
  /// written, or the store refused the entry, for instance because it could not be read or encoded.
  public internal(set) var droppedRenewalCount = 0

  /// The number of background updates that failed: of renewals, which are tried again, and of purges by writes.
  public internal(set) var failureCount = 0

  /// The last error of a background update; `nil` if none has failed.
  public internal(set) var lastError: (any Error)?
}
