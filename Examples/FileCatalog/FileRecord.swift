/// The record of a file, a folder, a symbolic link or any other item with a path.
struct FileRecord: Codable, Hashable, Sendable {
  var kind: FileKind

  /// The content's size in bytes, as the file system reports it.
  ///
  /// For a symbolic link, the length of its target.
  var size: Int64

  /// The permission bits, including set-user-ID and the like, without the kind.
  var mode: UInt32

  /// The time of the last change of the content.
  var modified: FileTime

  /// The time of the last change of the content or any attribute.
  var changed: FileTime
}
