/// A time with the precision of the file system, which neither a `Date` nor a `Double` has.
struct FileTime: Codable, Hashable, Sendable {
  /// The whole seconds since 1 January 1970, UTC; negative for earlier times.
  var seconds: Int64

  /// The nanoseconds beyond the whole seconds, 0 to 999,999,999.
  var nanoseconds: Int32
}
