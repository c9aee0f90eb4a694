import Foundation
import Larder

extension OpenStoreFile {
  /// Gives the file the permissions of another file and, if the process is allowed to, its owner.
  ///
  /// If root writes to a user's store, the files therefore still belong to that user.
  ///
  /// - Parameter existing: The attributes of the other file.
  /// - Throws: ``FileError``.
  public func adopt(_ existing: FileAttributes) throws(FileError) {
    if try attributes().owner != existing.owner {
      do throws(FileError) {
        try setOwner(existing.owner)
      } catch {
        guard error.errorNumber == EPERM else { throw error }
      }
    }
    // Permissions come last, because changing the owner may clear permission bits.
    try setPermissions(existing.permissions & 0o777)
  }
}

/// Atomic replacement of a whole file: after any failure, either the old file or the new one is in place.
///
/// Sources: rename(2) and fsync(2) of the Linux man-pages; `durable_rename` of PostgreSQL.
extension StoreFileSystem {
  /// The text between the name of a file and the random part of the names of its temporary files.
  public static var temporaryMark: String { ".larder-tmp-" }

  /// Replaces a file through a temporary file beside it that gets the name of the file once it is durable.
  ///
  /// ```swift
  /// try fileSystem.replaceFile(at: path) { writer in
  ///   for line in lines { try writer.write(Array((line + "\n").utf8)) }
  /// }
  /// ```
  ///
  /// - Parameters:
  ///   - path: The path of the file. It need not exist. It must be canonical; a symbolic link would be replaced by
  ///     the file.
  ///   - existing: The attributes of the file whose permissions the new file gets, and whose owner if the process is
  ///     allowed to change it. Defaults to `nil`, meaning 0600 and the owner of the process.
  ///   - write: A closure that writes the content.
  /// - Throws: The error that `write` throws; ``FileError``. If the operation of the error is
  ///   ``FileError/Operation/rename`` or ``FileError/Operation/synchronizeDirectory``, the new file may be in place, or
  ///   appear after power loss. Otherwise, the old file is unchanged. A temporary file may be left behind; see
  ///   ``removeStaleTemporaryFiles(of:)``.
  public func replaceFile(
    at path: String, like existing: FileAttributes? = nil, _ write: (inout BufferedFileWriter) throws -> Void
  ) throws {
    var replacement = try FileReplacement(of: path, like: existing, in: self)
    try replacement.prepare { try write(&$0.writer) }
    // Nothing is written after this, so an error on closing concerns the content.
    try replacement.commit { file throws(FileError) in try file.close() }
  }

  /// Removes the temporary files that crashed processes left beside a file.
  ///
  /// Call this only while no other process can be replacing the file, that is, while you hold its lock.
  ///
  /// - Parameter path: The path of the file.
  /// - Throws: ``FileError``.
  public func removeStaleTemporaryFiles(of path: String) throws(FileError) {
    let (directory, name) = FilePaths.split(path)
    // Compared byte by byte: two names that differ only in Unicode normalization belong to two files.
    let prefix = Array((name + Self.temporaryMark).utf8)
    for candidate in try contentsOfDirectory(at: directory) where candidate.utf8.starts(with: prefix) {
      let number: UInt64? = Hexadecimal.number(of: candidate.utf8.dropFirst(prefix.count))
      guard number != nil else { continue }
      let path = FilePaths.join(directory, candidate)
      guard try attributes(at: path)?.kind == .file else { continue }
      try removeFile(at: path)
    }
  }

  /// Creates a directory and its missing parents, durably, with permissions 0700.
  ///
  /// ```swift
  /// try fileSystem.createDirectories(at: folder + "/backups/2026")
  /// ```
  ///
  /// - Parameter path: The path of the directory. If it exists, only its entry in its parent is made durable, because a process
  ///   that died may have created it.
  /// - Throws: ``FileError``, with ENOTDIR if the path leads to something other than a directory.
  public func createDirectories(at path: String) throws(FileError) {
    let (parent, _) = FilePaths.split(path)
    if let existing = try attributes(at: path) {
      guard existing.kind == .directory else { throw FileError(.createDirectory, path: path, errorNumber: ENOTDIR) }
      do throws(FileError) {
        try synchronizeDirectory(at: parent)
      } catch {
        // The process may not open a parent that it did not create this directory in.
        guard error.isAccessDenied || error.errorNumber == EROFS else { throw error }
      }
      return
    }
    if parent != path { try createDirectories(at: parent) }
    do throws(FileError) {
      try createDirectory(at: path)
    } catch {
      // Another process may have created it first.
      guard error.errorNumber == EEXIST else { throw error }
    }
    try synchronizeDirectory(at: parent)
  }
}

/// A new file that is written beside another file and takes its name once it is durable.
///
/// ``StoreFileSystem/replaceFile(at:like:_:)`` does all of this in one call. Use this type if you have to do other work in
/// between, or if you keep using the new file.
public struct FileReplacement: Sendable {
  private let path: String
  private let temporaryPath: String
  /// The new file.
  public let file: any OpenStoreFile

  private let fileSystem: any StoreFileSystem

  /// The writer of the content.
  public var writer: BufferedFileWriter

  /// Creates the temporary file.
  ///
  /// - Parameters:
  ///   - path: The path of the file to replace. It need not exist. It must be canonical; a symbolic link would be
  ///     replaced by the file.
  ///   - existing: The attributes of the file whose permissions the new file gets, and whose owner if the process is
  ///     allowed to change it; `nil` for 0600 and the owner of the process.
  ///   - fileSystem: The file system.
  /// - Throws: ``FileError``.
  public init(of path: String, like existing: FileAttributes?, in fileSystem: some StoreFileSystem) throws(FileError) {
    self.path = path
    temporaryPath = path + type(of: fileSystem).temporaryMark + Hexadecimal.text(of: UInt64.random(in: .min ... .max))
    self.fileSystem = fileSystem
    file = try fileSystem.open(temporaryPath, .createNew)
    writer = BufferedFileWriter(file: file)
    do {
      if let existing { try file.adopt(existing) }
    } catch {
      abandon()
      throw error
    }
  }

  /// Runs a step before ``commit(closing:)``, such as writing the content, and removes the temporary file if it fails.
  ///
  /// - Parameter step: A closure that performs the step.
  /// - Returns: The result of `step`.
  /// - Throws: The error that `step` throws.
  public mutating func prepare<Result>(_ step: (inout FileReplacement) throws -> Result) throws -> Result {
    do {
      return try step(&self)
    } catch {
      abandon()
      throw error
    }
  }

  /// Flushes the content written so far to disk, so that ``commit(closing:)`` has to wait only for the rest.
  ///
  /// - Throws: ``FileError``. The file must not be committed afterward.
  public mutating func synchronize() throws(FileError) {
    try writer.flush()
    try file.synchronizeThroughInterruptions()
  }

  /// Sets the modification time of the new file, if the file system can set times.
  ///
  /// Call this last, immediately before ``commit(closing:)``.
  ///
  /// - Parameter time: The time, in nanoseconds since 1 January 1970, UTC.
  /// - Throws: ``FileError``.
  public mutating func setModificationTime(_ time: Int64) throws(FileError) {
    try writer.flush()
    do throws(FileError) {
      try file.setModificationTime(time)
    } catch {
      guard [EPERM, ENOSYS, EOPNOTSUPP].contains(error.errorNumber) else { throw error }
    }
  }

  /// Flushes the new file to disk, then durably renames it to the path of the old file.
  ///
  /// - Parameter close: A closure that receives the new file after it is durable and before it is renamed. It may close
  ///   the file.
  /// - Returns: The new file.
  /// - Throws: ``FileError``. If the operation of the error is ``FileError/Operation/rename`` or
  ///   ``FileError/Operation/synchronizeDirectory``, the new file may be in place, or appear after power loss.
  ///   Otherwise, the old file is unchanged.
  @discardableResult
  public mutating func commit(
    closing close: (any OpenStoreFile) throws(FileError) -> Void = { _ in }
  ) throws(FileError) -> any OpenStoreFile {
    do throws(FileError) {
      try synchronize()
      try close(file)
      try fileSystem.rename(temporaryPath, to: path)
    } catch {
      abandon()
      throw error
    }
    try fileSystem.synchronizeDirectory(at: FilePaths.split(path).directory)
    return file
  }

  /// Removes the temporary file.
  public func abandon() {
    // The caller must get the original error. A temporary file that cannot be removed now is removed later.
    try? fileSystem.removeFile(at: temporaryPath)
  }
}

/// A writer that fills a file from its beginning in large blocks.
public struct BufferedFileWriter: Sendable {
  private static let capacity = 64 * 1024

  private let file: any OpenStoreFile
  private var buffer: [UInt8] = []

  /// The number of bytes written so far, including those in the buffer.
  public private(set) var count: Int64 = 0

  init(file: any OpenStoreFile) {
    self.file = file
    buffer.reserveCapacity(BufferedFileWriter.capacity)
  }

  /// Appends bytes.
  ///
  /// - Parameter bytes: The bytes.
  /// - Throws: ``FileError``.
  public mutating func write(_ bytes: some Collection<UInt8>) throws(FileError) {
    if buffer.count + bytes.count > BufferedFileWriter.capacity { try flush() }
    buffer.append(contentsOf: bytes)
    count += Int64(bytes.count)
  }

  mutating func flush() throws(FileError) {
    try file.writeAll(buffer, at: count - Int64(buffer.count))
    buffer.removeAll(keepingCapacity: true)
  }
}
