package import Larder

/// How the file of a store is opened, and how the store names itself in errors.
package struct StoreFileConfiguration: StoreFiles, Sendable {
  /// The name of the store, in errors.
  package var name: String
  package var path: String
  package var durability: Durability
  package var createsIfMissing: Bool
  /// Whether the folder of the file is made where it is missing.
  package var createsFolder: Bool
  package var fileSystem: any FileSystem

  /// Says how a file is opened.
  ///
  /// - Parameters:
  ///   - name: The name of the store, in errors.
  ///   - path: The file.
  ///   - durability: What happens before a write returns.
  ///   - createsIfMissing: Whether the file is made where it is missing.
  ///   - createsFolder: Whether the folder of the file is made where it is missing; `false` unless said.
  ///   - fileSystem: Where the file is.
  package init(
    name: String, path: String, durability: Durability, createsIfMissing: Bool, createsFolder: Bool = false,
    fileSystem: any FileSystem
  ) {
    self.name = name
    self.path = path
    self.durability = durability
    self.createsIfMissing = createsIfMissing
    self.createsFolder = createsFolder
    self.fileSystem = fileSystem
  }

  // MARK: The lock

  /// Finds the file, takes its lock, and removes temporary files that a process which died has left beside it.
  ///
  /// - Returns: The path of the file, with symbolic links resolved, and the lock.
  /// - Throws: ``StoreError``: `notFound`; `unrecognizedFormat`; `unsupported` for several hard links; `locked`.
  ///   ``FileError``.
  package func takeLock() throws -> (path: String, lock: FileLock) {
    let folder = FilePaths.split(path).directory
    if createsFolder { try fileSystem.createDirectories(at: folder) }
    guard try fileSystem.attributes(at: folder) != nil else {
      throw error(.notFound, during: .open, "the folder \(folder) does not exist; make it first")
    }
    let path = try fileSystem.canonicalPath(of: path)
    // What is no file must not gain a lock either.
    let attributes = try fileSystem.attributes(at: path)
    guard createsIfMissing || attributes != nil else {
      throw error(.notFound, during: .open, "there is no store at \(path)")
    }
    if let attributes { try checkKind(attributes, of: path) }
    let lock = try acquireLock(lockPath(of: path), of: path)
    try fileSystem.removeStaleTemporaryFiles(of: path)
    return (path, lock)
  }

  /// Makes sure that no one has removed the file of the lock: another may have opened the store then.
  ///
  /// - Parameters:
  ///   - lock: The lock.
  ///   - path: The path of the file that it guards.
  ///   - operation: What was asked for.
  /// - Throws: ``StoreError``: `locked`; `ioFailed`.
  package func check(_ lock: FileLock, of path: String, during operation: StoreOperation) throws {
    try check(lock, at: lockPath(of: path), during: operation)
  }

  private func lockPath(of path: String) -> String { path + ".lock" }

  // MARK: The codec

  /// Refuses a file that was written with another codec.
  package func checkCodec(_ found: String, of path: String, is codecName: String) throws {
    guard found == codecName else {
      throw error(
        .versionMismatch, during: .open,
        "\(path) was written with the codec \(found), not with \(codecName); open it with that one")
    }
  }
}
