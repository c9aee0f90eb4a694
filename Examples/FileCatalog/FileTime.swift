/// A moment as the file system keeps it: exactly, which neither a `Date` nor a `Double` would.
struct FileTime: Codable, Hashable, Sendable {
  /// The whole seconds since 1 January 1970, UTC; negative before.
  var seconds: Int64

  /// The nanoseconds beyond the whole seconds, 0 to 999,999,999.
  var nanoseconds: Int32
}
