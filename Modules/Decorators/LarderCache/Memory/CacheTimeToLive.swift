import Larder

/// The time to live of the entries of a ``MemoryCache``.
///
/// An expired entry is immediately absent for every reader. Its memory is freed when its key is next used, gradually as
/// other entries are written, or by ``MemoryCache/removeExpired()``.
///
/// ```swift
/// let cache = MemoryCache<String, Page>(entryLimit: 1000, timeToLive: .afterWrite(.seconds(60)))
/// ```
public struct CacheTimeToLive: Sendable, Hashable {
  /// The time after which an entry expires once it was written, or `nil` for no limit.
  public var afterWrite: Duration?

  /// The time after which an entry expires once it was last read or written, or `nil` for no limit.
  public var afterAccess: Duration?

  /// Creates a time to live.
  ///
  /// If both times are given, an entry expires at the earlier deadline.
  ///
  /// - Parameters:
  ///   - afterWrite: The time after which an entry expires once it was written. Defaults to no limit.
  ///   - afterAccess: The time after which an entry expires once it was last read or written. Defaults to no limit.
  public init(afterWrite: Duration? = nil, afterAccess: Duration? = nil) {
    self.afterWrite = afterWrite
    self.afterAccess = afterAccess
  }

  /// A time to live of entries that do not expire.
  public static let unlimited = CacheTimeToLive()

  /// Returns a time to live that is measured from the last write of an entry.
  ///
  /// - Parameter duration: The time to live.
  public static func afterWrite(_ duration: Duration) -> CacheTimeToLive {
    CacheTimeToLive(afterWrite: duration)
  }

  /// Returns a time to live that is measured from the last read or write of an entry.
  ///
  /// - Parameter duration: The time to live.
  public static func afterAccess(_ duration: Duration) -> CacheTimeToLive {
    CacheTimeToLive(afterAccess: duration)
  }
}

/// The times at which an entry was last written and used, in nanoseconds since its cache was created.
@usableFromInline
struct EntryTimes: BitwiseCopyable, Sendable {
  @usableFromInline var written: Int64
  @usableFromInline var used: Int64

  /// Creates the times of an entry that is written now.
  @inlinable
  init(at time: Int64) {
    written = time
    used = time
  }
}

/// A ``CacheTimeToLive`` in nanoseconds.
@usableFromInline
struct EntryTimesToLive: Sendable {
  @usableFromInline let afterWrite: Int64?
  @usableFromInline let afterAccess: Int64?

  @usableFromInline
  init(_ timeToLive: CacheTimeToLive) {
    afterWrite = timeToLive.afterWrite.map(\.wholeNanoseconds)
    afterAccess = timeToLive.afterAccess.map(\.wholeNanoseconds)
  }

  /// A Boolean value that indicates whether entries expire at all.
  @inlinable var areLimited: Bool { afterWrite != nil || afterAccess != nil }

  /// Returns whether an entry has expired, which it has from its deadline on.
  @inlinable
  func hasExpired(_ times: EntryTimes, at time: Int64) -> Bool {
    if let afterWrite, time - times.written >= afterWrite { return true }
    if let afterAccess, time - times.used >= afterAccess { return true }
    return false
  }
}
