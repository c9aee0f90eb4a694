package import Larder

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
  /// - Parameters:
  ///   - lockPath: The file of the lock.
  ///   - path: What it guards.
  /// - Throws: ``StoreError``: `locked`. ``FileError``.
  package func acquireLock(_ lockPath: String, of path: String) throws -> FileLock {
    guard let lock = try FileLock.acquire(lockPath, in: fileSystem) else {
      throw error(
        .locked, during: .open, "\(path) is open in another process, or already in this one; close it there first",
        isRetryable: true)
    }
    return lock
  }

  /// Makes sure that no one has removed the file of the lock: another may have opened the store then.
  ///
  /// - Parameters:
  ///   - lock: The lock.
  ///   - lockPath: Its file.
  ///   - operation: What was asked for.
  /// - Throws: ``StoreError``: `locked`; `ioFailed`.
  package func check(_ lock: FileLock, at lockPath: String, during operation: StoreOperation) throws {
    let isInPlace = try reportingFileErrors(during: operation, message: "the lock could not be checked") {
      try lock.isInPlace
    }
    guard isInPlace else {
      throw error(
        .locked, during: operation,
        "\(lockPath) was removed while the store was open, so another may have opened it; close it, and open it again")
    }
  }
}
