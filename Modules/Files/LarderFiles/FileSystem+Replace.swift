import Larder

#if canImport(Darwin)
import Darwin
#elseif canImport(Musl)
import Musl
#else
import Glibc
#endif

extension OpenFile {
  /// Gives the file the permissions of another and, if the process may do that, its owner: root that writes to the store
  /// of another user leaves it with that user.
  ///
  /// - Parameter existing: The other file.
  /// - Throws: ``FileError``.
  package func adopt(_ existing: FileAttributes) throws(FileError) {
    if try attributes().owner != existing.owner {
      do throws(FileError) {
        try setOwner(existing.owner)
      } catch {
        guard error.errorNumber == EPERM else { throw error }
      }
    }
    // Last, since a new owner may take permission bits away.
    try setPermissions(existing.permissions & 0o777)
  }
}

/// Replacing a whole file so that, whatever happens, either the old or the new one is there.
///
/// Sources: rename(2) and fsync(2) of the Linux man-pages; `durable_rename` of PostgreSQL.
extension FileSystem {
  /// What stands between the name of a file and the random part of the names of its temporary files.
  package static var temporaryMark: String { ".larder-tmp-" }

  static var randomDigitCount: Int { 16 }

  /// Writes a file anew: into a temporary file beside it, which takes its name once all of it is durable.
  ///
  /// - Parameters:
  ///   - path: The file; it need not exist. Give a canonical path: a symbolic link would be replaced by the file.
  ///   - existing: The file whose permissions the new one gets, and whose owner if the process may give it away; defaults
  ///     to `nil`, for 0600 and the owner of the process.
  ///   - write: Writes the content.
  /// - Throws: What `write` throws; ``FileError``. Where its operation is ``FileError/Operation/rename`` or
  ///   ``FileError/Operation/synchronizeDirectory`` the new file may be in place, or come into place after power loss;
  ///   otherwise the old one stands as it was. A temporary file may be left behind: see
  ///   ``removeStaleTemporaryFiles(of:)``.
  public func replaceFile(
    at path: String, like existing: FileAttributes? = nil, _ write: (inout BufferedFileWriter) throws -> Void
  ) throws {
    var replacement = try FileReplacement(of: path, like: existing, in: self)
    do {
      try write(&replacement.writer)
    } catch {
      replacement.abandon()
      throw error
    }
    // No one writes to it any more, so what closing it reports belongs to the content.
    try replacement.commit { file throws(FileError) in try file.close() }
  }

  /// Removes the temporary files that processes which died have left beside a file.
  ///
  /// Call it only while no one else can be replacing the file, that is, with its lock taken.
  ///
  /// - Parameter path: The file.
  /// - Throws: ``FileError``.
  public func removeStaleTemporaryFiles(of path: String) throws(FileError) {
    let (directory, name) = FilePaths.split(path)
    // Byte by byte: two names that differ only in how an accent is written belong to two files.
    let prefix = Array((name + Self.temporaryMark).utf8)
    for candidate in try contentsOfDirectory(at: directory) where candidate.utf8.starts(with: prefix) {
      let digits = candidate.utf8.dropFirst(prefix.count)
      guard digits.count == Self.randomDigitCount, Hexadecimal.bytes(of: Array(digits)) != nil else { continue }
      let path = FilePaths.join(directory, candidate)
      guard try attributes(at: path)?.kind == .file else { continue }
      try removeFile(at: path)
    }
  }

  /// Makes a directory, and those above it that are missing, with permissions 0700, durably.
  ///
  /// - Parameter path: The directory; that it exists is fine.
  /// - Throws: ``FileError``, with ENOTDIR where something else is there.
  public func createDirectories(at path: String) throws(FileError) {
    if let existing = try attributes(at: path) {
      guard existing.kind == .directory else { throw FileError(.createDirectory, path: path, errorNumber: ENOTDIR) }
      return
    }
    let (parent, _) = FilePaths.split(path)
    if parent != path { try createDirectories(at: parent) }
    do throws(FileError) {
      try createDirectory(at: path)
    } catch {
      // Another process may have been faster.
      guard error.errorNumber == EEXIST else { throw error }
    }
    try synchronizeDirectory(at: parent)
  }
}
