public import Foundation
public import Larder

/// The settings of a ``BoundedStore`` beside its limit.
///
/// ```swift
/// var configuration = BoundedStoreConfiguration()
/// configuration.maximumShare = 0.1
/// configuration.onEviction = { eviction in print("evicted", eviction.byteCount, "bytes") }
/// let images = try await bytes.bounded(bytes: 100_000_000, configuration: configuration)
/// ```
public struct BoundedStoreConfiguration: Sendable {
  /// The share of the byte limit that one entry may have, greater than 0 and at most 1.
  ///
  /// Defaults to 0.05. A larger entry is not stored, and evicts no other entry.
  public var maximumShare = 0.05

  /// The time after which a further read of an entry persists its use again.
  ///
  /// Defaults to one minute. Uses within this time count in the process that reads, but are not persisted.
  public var useInterval: Duration = .seconds(60)

  /// The prefix of the keys of the values in the base.
  ///
  /// Defaults to `v/`. Values that a `TypedView` with this prefix has written become entries of the store.
  public var valuePrefix: StoreKey = "v/"

  /// The prefix of the keys of the accounting records in the base.
  ///
  /// Defaults to `b/`. Neither prefix may begin with the other one.
  public var recordPrefix: StoreKey = "b/"

  /// A closure that receives each entry that the limit has removed or has kept out.
  ///
  /// Defaults to `nil`. The store calls it after the commit, on the task of the writer, without holding a lock. It does
  /// not receive the evictions of other processes, nor those of a commit whose outcome is unknown.
  public var onEviction: (@Sendable (BoundedEviction) -> Void)?

  /// A closure that returns the current time.
  ///
  /// Defaults to the system time. It must not call the store. The time only decides how often uses are persisted. The
  /// order of eviction does not depend on it, so a clock that is set back does no harm.
  public var now: @Sendable () -> Date = { Date.now }

  /// Creates the default settings.
  public init() {}
}

/// An entry that a ``BoundedStore`` removed or did not store because of its limit.
///
/// ```swift
/// configuration.onEviction = { eviction in
///   logger.info("\(eviction.key) left the cache: \(eviction.reason)")
/// }
/// ```
public struct BoundedEviction: Sendable, Hashable {
  /// The reason why an entry is not in the store.
  public enum Reason: Sendable, Hashable {
    /// The entry was removed to make room for others.
    case limit
    /// The entry was not stored, because it exceeds its share of the limit.
    case share
  }

  /// The key of the entry.
  public let key: StoreKey

  /// The number of bytes of the key and the value.
  public let byteCount: Int

  /// The reason.
  public let reason: Reason
}

/// The number of bytes and of entries in a ``BoundedStore``, by its records.
public struct BoundedUsage: Sendable, Hashable {
  /// The number of bytes of all keys and values.
  public let bytes: Int

  /// The number of entries.
  public let entries: Int

  /// Creates a usage.
  ///
  /// - Parameters:
  ///   - bytes: The number of bytes of all keys and values.
  ///   - entries: The number of entries.
  public init(bytes: Int, entries: Int) {
    self.bytes = bytes
    self.entries = entries
  }
}

/// The events in a ``BoundedStore`` since it was opened, in this process.
public struct BoundedStatistics: Sendable {
  /// The number of entries that were removed to make room for others.
  public internal(set) var evictedCount = 0

  /// The number of bytes of these entries.
  public internal(set) var evictedBytes = 0

  /// The number of entries that were not stored, because they exceed their share of the limit.
  public internal(set) var refusedCount = 0

  /// The number of uses that were persisted.
  public internal(set) var persistedUseCount = 0

  /// The number of times that persisting uses in the background failed.
  public internal(set) var failureCount = 0

  /// The last error of persisting uses in the background, or `nil` if there was no failure.
  public internal(set) var lastError: (any Error)?
}
