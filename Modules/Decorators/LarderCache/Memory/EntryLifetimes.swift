/// When an entry was written and used last, in nanoseconds since its cache was made.
@usableFromInline
struct EntryTimes: BitwiseCopyable, Sendable {
  @usableFromInline var written: Int64
  @usableFromInline var used: Int64

  /// The times of an entry that was written just now.
  @inlinable
  init(at time: Int64) {
    written = time
    used = time
  }
}

/// When entries end, by a ``CacheExpiry``.
@usableFromInline
struct EntryLifetimes: Sendable {
  @usableFromInline let afterWrite: Int64?
  @usableFromInline let afterAccess: Int64?

  @usableFromInline
  init(_ expiry: CacheExpiry) {
    afterWrite = expiry.afterWrite.map(EntryLifetimes.nanoseconds)
    afterAccess = expiry.afterAccess.map(EntryLifetimes.nanoseconds)
  }

  /// Whether entries end at all.
  @inlinable var areLimited: Bool { afterWrite != nil || afterAccess != nil }

  /// Whether the time of an entry is over; it is from the end of its lifetime on.
  @inlinable
  func isOver(_ times: EntryTimes, at time: Int64) -> Bool {
    if let afterWrite, time - times.written >= afterWrite { return true }
    if let afterAccess, time - times.used >= afterAccess { return true }
    return false
  }

  /// A duration in nanoseconds: rounded down, and no more than there are in 146 years.
  @usableFromInline
  static func nanoseconds(_ duration: Duration) -> Int64 {
    let (seconds, attoseconds) = duration.components
    let limit = Int64.max / 2_000_000_000
    return max(-limit, min(limit, seconds)) * 1_000_000_000 + attoseconds / 1_000_000_000
  }
}
