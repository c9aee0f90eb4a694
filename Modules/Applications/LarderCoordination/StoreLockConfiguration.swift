import Larder

/// The durations of a ``StoreLock``.
///
/// ```swift
/// let locks = try StoreLock(bytes, prefix: "locks/", configuration: StoreLockConfiguration(lease: .seconds(30)))
/// ```
public struct StoreLockConfiguration: Sendable, Hashable {
  /// The time after which a waiter may take the lock of a holder whose heartbeat has not changed.
  ///
  /// A short one lets others take over quickly after a crash, and costs more renewals. It must be several times as long as
  /// the slowest commit of the store, or holders lose their locks under load.
  public var lease: Duration

  /// The time between two looks of a waiter at a store that does not report the commits of all programs.
  public var pollInterval: Duration

  /// Creates a configuration.
  ///
  /// - Parameters:
  ///   - lease: The time after which a waiter may take the lock of a dead holder, from 1 millisecond to 1 day. Defaults to
  ///     10 seconds.
  ///   - pollInterval: The time between two looks of a waiter, from 1 millisecond to 1 day. Defaults to 250 milliseconds.
  ///     If a store reports the commits of all programs, a waiter looks after a report instead.
  public init(lease: Duration = .seconds(10), pollInterval: Duration = .milliseconds(250)) {
    self.lease = lease
    self.pollInterval = pollInterval
  }

  /// The reason why the configuration is invalid, for an error message, or `nil` if it is valid.
  public var problem: String? {
    if !LockTerm.leases.contains(lease.wholeNanoseconds) {
      return "the lease of a lock must be between 1 millisecond and 1 day, not \(lease)"
    }
    if !LockTerm.leases.contains(pollInterval.wholeNanoseconds) {
      return "`pollInterval` must be between 1 millisecond and 1 day, not \(pollInterval)"
    }
    return nil
  }

  /// The time that a waiter has to take a lock when its turn has come.
  var turn: Duration { pollInterval * 3 }
}
