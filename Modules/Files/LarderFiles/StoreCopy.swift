import Larder

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// A new file or folder that a backup writes under a temporary name, and that gets its name once it is complete and
/// durable.
package struct StoreCopy: Sendable {
  private let name: String
  private let folder: String

  /// The path that the copy gets.
  package let path: String

  /// The path at which the copy is written.
  package let temporaryPath: String

  /// Chooses the paths.
  ///
  /// - Parameters:
  ///   - path: The path of the copy.
  ///   - name: The name of the store in errors.
  /// - Throws: `StoreError`, with `invalidArgument` if something exists at the path.
  package init(at path: String, ofStore name: String) throws {
    guard !path.utf8.contains(0) else {
      throw StoreError(.invalidArgument, during: .backup, store: name, message: "the path contains a NUL")
    }
    let lastComponent: String
    (folder, lastComponent) = FilePaths.split(path)
    self.path = FilePaths.join(folder, lastComponent)
    self.name = name
    temporaryPath = "\(self.path).larder-\(UUID().uuidString)"
    do {
      guard try POSIXFileSystem().attributes(at: self.path) == nil else { throw existsError }
    } catch let error as FileError {
      throw StoreError(error, during: .backup, store: name, message: "the path of the copy cannot be examined")
    }
  }

  private var existsError: StoreError {
    StoreError(.invalidArgument, during: .backup, store: name, message: "something already exists at the path")
  }

  /// Writes a copy that is one file, and gives it its name once it is durable.
  ///
  /// The file is created empty, so that only the user can read it, whatever `write` does. It is removed if an error is
  /// thrown before it has its name.
  ///
  /// - Parameter write: A closure that writes the file at ``temporaryPath``.
  /// - Throws: The error that `write` throws, except that a `FileError` becomes a `StoreError`; `StoreError`, with
  ///   `invalidArgument` if something exists at the path by now.
  package func writeFile(_ write: () throws -> Void) throws {
    let fileSystem = POSIXFileSystem()
    do {
      try fileSystem.open(temporaryPath, .createNew).close()
      try write()
      try fileSystem.synchronizeFile(at: temporaryPath)
      try place(isFolder: false)
    } catch {
      // The partial copy is useless. The original error matters more than a failure to remove it.
      try? fileSystem.removeFile(at: temporaryPath)
      guard let error = error as? FileError else { throw error }
      throw StoreError(error, during: .backup, store: name, message: "the copy could not be written")
    }
    try synchronizeName()
  }

  /// Gives the copy its name.
  ///
  /// - Parameter isFolder: Whether the copy is a folder.
  /// - Throws: `FileError`; `StoreError` with `invalidArgument` if something exists at the path by now.
  package func place(isFolder: Bool) throws {
    do {
      try POSIXFileSystem().renameExclusively(temporaryPath, to: path, isFolder: isFolder)
    } catch let error where error.isExisting {
      throw existsError
    }
  }

  /// Syncs the name of the copy to disk.
  ///
  /// - Throws: `StoreError`, with an unknown outcome.
  package func synchronizeName() throws {
    do {
      try POSIXFileSystem().synchronizeDirectory(at: folder)
    } catch {
      throw StoreError(
        error, during: .backup, store: name,
        message: "the copy is complete and in place, but its folder could not be synced, so power loss may remove it",
        outcome: .unknown)
    }
  }
}
