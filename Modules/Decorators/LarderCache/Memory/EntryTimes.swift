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
