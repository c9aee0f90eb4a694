/// What stores ask of a file system: a seam, so that tests can put another in the place of the real one.
///
/// Its operations are those of POSIX, one call each. They block, so call them off the cooperative pool. They may fail
/// with EINTR, and a read or write may do less than was asked for: the methods of the extensions go on where that
/// happens.
///
/// Paths are those of the operating system; a relative one starts at the working directory.
public protocol FileSystem: Sendable {
  /// Opens a file.
  ///
  /// - Parameters:
  ///   - path: The file.
  ///   - mode: What to open it for. A file that is created has permissions 0600.
  func open(_ path: String, _ mode: FileOpenMode) throws(FileError) -> any OpenFile

  /// Gives a file another name, in place of any file that has that name.
  ///
  /// At every moment the new name stands for a whole file, the old one or the new. It is durable once
  /// ``synchronizeDirectory(at:)`` has returned.
  func rename(_ path: String, to newPath: String) throws(FileError)

  /// Removes a file, or a directory in which nothing is.
  ///
  /// It is durable once ``synchronizeDirectory(at:)`` has returned.
  func removeFile(at path: String) throws(FileError)

  /// Makes a directory with permissions 0700, in one that exists.
  func createDirectory(at path: String) throws(FileError)

  /// Makes creations, renames and removals in a directory durable.
  func synchronizeDirectory(at path: String) throws(FileError)

  /// The names in a directory, without "." and "..", in any order.
  func contentsOfDirectory(at path: String) throws(FileError) -> [String]

  /// What stands at a path, symbolic links followed; `nil` where nothing does.
  func attributes(at path: String) throws(FileError) -> FileAttributes?

  /// Which file is at a path, symbolic links followed; `nil` where nothing is.
  ///
  /// The same as the identity in ``attributes(at:)``, which it is unless the file system has a faster way to find it.
  func identity(at path: String) throws(FileError) -> FileAttributes.Identity?

  /// Returns whether a file system is mounted on a file, as containers do with single files: it cannot be replaced then.
  ///
  /// Returns `false` where the operating system cannot tell.
  func isMountPoint(at path: String) throws(FileError) -> Bool

  /// The absolute path of what stands at a path, with every symbolic link resolved.
  ///
  /// The last component need not exist; where it is a symbolic link to nothing, the result is where that link leads.
  func canonicalPath(of path: String) throws(FileError) -> String
}

extension FileSystem {
  /// The identity in ``attributes(at:)``.
  public func identity(at path: String) throws(FileError) -> FileAttributes.Identity? {
    try attributes(at: path)?.identity
  }
}
