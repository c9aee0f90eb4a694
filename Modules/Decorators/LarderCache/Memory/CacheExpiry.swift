/// How long a ``MemoryCache`` keeps an entry at most.
///
/// An entry whose time is over is absent for every reader at once. Its memory is given back when its key is used the
/// next time, by and by as other entries are written, or by ``MemoryCache/removeExpired()``.
public struct CacheExpiry: Sendable, Hashable {
  /// The time from the writing of an entry to its end; `nil` where that does not matter.
  public var afterWrite: Duration?

  /// The time from the last use of an entry, reading or writing, to its end; `nil` where that does not matter.
  public var afterAccess: Duration?

  /// Makes a rule; where both times are given, an entry ends with the earlier one.
  ///
  /// - Parameters:
  ///   - afterWrite: The time from the writing of an entry to its end; unlimited unless given.
  ///   - afterAccess: The time from the last use of an entry to its end; unlimited unless given.
  public init(afterWrite: Duration? = nil, afterAccess: Duration? = nil) {
    self.afterWrite = afterWrite
    self.afterAccess = afterAccess
  }

  /// Entries do not expire.
  public static let never = CacheExpiry()

  /// Entries expire so long after they were written.
  ///
  /// - Parameter duration: How long.
  public static func afterWrite(_ duration: Duration) -> CacheExpiry {
    CacheExpiry(afterWrite: duration)
  }

  /// Entries expire so long after they were last read or written.
  ///
  /// - Parameter duration: How long.
  public static func afterAccess(_ duration: Duration) -> CacheExpiry {
    CacheExpiry(afterAccess: duration)
  }
}
