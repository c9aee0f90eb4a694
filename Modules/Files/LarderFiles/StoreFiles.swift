package import Larder

#if canImport(Darwin)
import Darwin
#elseif canImport(Musl)
import Musl
#else
import Glibc
#endif

/// The files of a store that names itself in errors: what every such store refuses, and how it says so.
package protocol StoreFiles {
  /// The name of the store, in errors.
  var name: String { get }
  var fileSystem: any FileSystem { get }
}

extension StoreFiles {
  /// An error of the store.
  package func error(
    _ code: StoreError.Code, during operation: StoreOperation, key: StoreKey? = nil, _ message: String,
    underlying: (any Error)? = nil, isRetryable: Bool = false
  ) -> StoreError {
    StoreError(
      code, during: operation, store: name, key: key, message: message, underlying: underlying, isRetryable: isRetryable
    )
  }

  /// Runs work on the files, and makes an error of the store of any that the file system throws.
  package func reportingFileErrors<Result>(
    during operation: StoreOperation, message: String, outcome: StoreError.Outcome = .nothingChanged,
    _ body: () throws -> Result
  ) throws -> Result {
    do {
      return try body()
    } catch let error as FileError {
      throw StoreError(error, during: operation, store: name, message: message, outcome: outcome)
    }
  }

  /// Refuses what cannot be a file of a store, or cannot be written.
  ///
  /// - Parameters:
  ///   - attributes: Those of the file.
  ///   - path: The file.
  ///   - isWritten: Whether it is going to be written; then it may have only one name. `true` unless said.
  /// - Throws: ``StoreError``: `unrecognizedFormat`; `unsupported` for several hard links.
  package func checkKind(_ attributes: FileAttributes, of path: String, isWritten: Bool = true) throws {
    guard attributes.kind == .file else {
      throw error(.unrecognizedFormat, during: .open, "\(path) is not a file")
    }
    guard attributes.linkCount <= 1 || !isWritten else {
      throw error(
        .unsupported, during: .open,
        "\(path) has \(attributes.linkCount) names (hard links), and each would have a lock of its own; leave it only one"
      )
    }
  }

  /// Takes the lock of a store.
  ///
  /// A reader takes a shared lock on a lock file that exists and creates none; with ``StoreAccess/immutable`` it takes none.
  ///
  /// - Parameters:
  ///   - lockPath: The file of the lock.
  ///   - path: The file or folder that it guards, which may be missing.
  ///   - access: Whether the store may write.
  /// - Returns: The lock, or `nil` if a reader takes none.
  /// - Throws: ``StoreError``: `locked`; `notPermitted` if a reader may not open the lock file. ``FileError``.
  package func acquireLock(_ lockPath: String, of path: String, access: StoreAccess) throws -> FileLock? {
    switch access {
    case .readWrite: break
    case .readOnly: guard try fileSystem.attributes(at: lockPath) != nil else { return nil }
    case .immutable: return nil
    }
    guard let lock = try lock(lockPath, of: path, access: access) else {
      throw error(
        .locked, during: .open, "\(path) is open in another process, or already in this one; close it there first",
        isRetryable: true)
    }
    return lock
  }

  private func lock(_ lockPath: String, of path: String, access: StoreAccess) throws -> FileLock? {
    do throws(FileError) {
      return try FileLock.acquire(
        lockPath, access == .readWrite ? .exclusive : .shared, guarding: fileSystem.attributes(at: path), in: fileSystem
      )
    } catch {
      guard access == .readOnly, error.errorNumber == EACCES else { throw error }
      throw self.error(
        .notPermitted, during: .open,
        "\(lockPath) cannot be opened, so whether a writer has the store open is not known; allow reading the lock file, "
          + "or open the store with the access immutable if no one writes to it",
        underlying: error)
    }
  }

  /// Makes sure that the files which the store has open are still at their paths.
  ///
  /// - Parameters:
  ///   - opened: The files.
  ///   - operation: The operation that is about to write, or closes the store.
  /// - Throws: ``StoreError``: `locked` if the lock file was moved, removed or replaced, because another may have opened the
  ///   store then; `conflict` if another file was; `ioFailed`.
  package func check(_ opened: OpenedFiles, during operation: StoreOperation) throws {
    let mismatch = try reportingFileErrors(during: operation, message: "the files of the store could not be checked") {
      try opened.firstMismatch(in: fileSystem)
    }
    guard let mismatch else { return }
    let event = mismatch.isMissing ? "moved or removed" : "replaced"
    switch mismatch.role {
    case .lock:
      throw error(
        .locked, during: operation,
        "\(mismatch.path) was \(event) while the store was open, so another may have opened the store; close it and open it again"
      )
    case .data:
      throw error(
        .conflict, during: operation,
        "\(mismatch.path) was \(event) while the store was open, so the store writes no more; close it and open it again"
      )
    }
  }
}
