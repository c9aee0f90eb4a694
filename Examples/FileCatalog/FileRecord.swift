/// What the catalogue keeps of a file, a folder, a symbolic link or anything else that has a path.
struct FileRecord: Codable, Hashable, Sendable {
  var kind: FileKind

  /// The content's size in bytes, as the file system tells it; for a symbolic link, the length of its target.
  var size: Int64

  /// The permission bits, set-user-ID and the like included, without the kind.
  var mode: UInt32

  /// When the content last changed.
  var modified: FileTime

  /// When the content or any attribute last changed.
  var changed: FileTime
}
