import Larder

/// Purges an ``ExpiringStore`` every so often, as long as someone else holds that store.
///
/// ```swift
/// let purger = sessions.purger(every: .seconds(60))
/// let purging = Task { try await purger.run() }
/// …
/// purging.cancel()
/// ```
public struct ExpiryPurger: Sendable {
  private let storeName: String
  private let interval: Duration
  private let clock: any Clock<Duration>

  /// Purges the first entries of a range; gives `nil` once there is no store any more.
  private let purge: @Sendable (KeyRange) async throws -> PurgedSlice?

  init(
    storeName: String, interval: Duration, clock: any Clock<Duration>,
    purge: @escaping @Sendable (KeyRange) async throws -> PurgedSlice?
  ) {
    self.storeName = storeName
    self.interval = interval
    self.clock = clock
    self.purge = purge
  }

  /// Waits, purges, and so on.
  ///
  /// It returns when its task is cancelled, when the store is closed, and at the next purge when nobody else holds the
  /// store any more: it holds it only while it purges a slice. After an error it may be run again.
  ///
  /// - Throws: `StoreError` of a purge that failed; `invalidArgument` where the interval is not more than zero.
  public func run() async throws {
    guard interval > .zero else {
      throw StoreError(
        .invalidArgument, during: .purgeExpired, store: storeName, message: "an interval of \(interval) makes no sense")
    }
    do {
      while true {
        try await clock.sleep(for: interval)
        var remaining: KeyRange? = .all
        while let range = remaining {
          guard let purged = try await purge(range) else { return }
          remaining = purged.remaining
        }
      }
    } catch is CancellationError {
      return
    } catch StoreError.Code.closed {
      return
    }
  }
}
