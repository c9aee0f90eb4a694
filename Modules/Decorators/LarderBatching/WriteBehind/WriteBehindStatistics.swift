/// How much a ``WriteBehindStore`` has accepted and not yet written: what a crash would lose.
public struct WriteBehindStatistics: Sendable, Hashable {
  /// How many changes wait or are being written.
  public let pendingChanges: Int

  /// How many bytes their keys and values have; 0 where the bounds do not count bytes.
  public let pendingBytes: Int

  /// How long the oldest of those that wait has been waiting; `nil` where none waits.
  public let oldestAge: Duration?

  /// How many callers wait, for room or for a turn of their own in the base.
  public let waitingCallers: Int

  /// How many changes could not be written and were not taken yet.
  public let failedChanges: Int

  init(
    pendingChanges: Int, pendingBytes: Int, oldestAge: Duration?, waitingCallers: Int, failedChanges: Int
  ) {
    self.pendingChanges = pendingChanges
    self.pendingBytes = pendingBytes
    self.oldestAge = oldestAge
    self.waitingCallers = waitingCallers
    self.failedChanges = failedChanges
  }
}
