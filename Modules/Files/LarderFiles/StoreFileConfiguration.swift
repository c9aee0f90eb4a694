package import Larder

/// How the file of a store is opened, and how the store names itself in errors.
package struct StoreFileConfiguration: StoreFiles, Sendable {
  /// The name of the store, in errors.
  package var name: String
  package var path: String
  package var durability: Durability
  package var access: StoreAccess
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
  ///   - access: Whether the store may write; defaults to ``StoreAccess/readWrite``.
  ///   - createsIfMissing: Whether the file is made where it is missing; a reader never creates it.
  ///   - createsFolder: Whether the folder of the file is made where it is missing; `false` unless said.
  ///   - fileSystem: Where the file is.
  package init(
    name: String, path: String, durability: Durability, access: StoreAccess = .readWrite, createsIfMissing: Bool,
    createsFolder: Bool = false, fileSystem: any FileSystem
  ) {
    self.name = name
    self.path = path
    self.durability = durability
    self.access = access
    self.createsIfMissing = createsIfMissing && access == .readWrite
    self.createsFolder = createsFolder && access == .readWrite
    self.fileSystem = fileSystem
  }

  // MARK: The lock

  /// Finds the file, takes its lock, and removes temporary files that a process which died has left beside it.
  ///
  /// A reader takes a shared lock on a lock file that exists, and neither creates nor removes anything.
  ///
  /// - Parameter check: Looks at a file that exists, by its path, before its lock file is created: a file that is no store
  ///   must not gain one. Another process may be writing to it. Defaults to no check.
  /// - Returns: The path of the file, with symbolic links resolved; the lock, if there is one; and the files that are open
  ///   now, which is the lock file.
  /// - Throws: ``StoreError``: `notFound`; `unrecognizedFormat`; `unsupported` for several hard links, or for a file that is
  ///   mounted by itself; `locked`; `notPermitted`. ``FileError``. What `check` throws.
  package func takeLock(
    checking check: (_ path: String) throws -> Void = { _ in }
  ) throws -> (path: String, lock: FileLock?, opened: OpenedFiles) {
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
    if let attributes { try checkKind(attributes, of: path, isWritten: access == .readWrite) }
    if access == .readWrite, try fileSystem.isMountPoint(at: path) {
      throw error(
        .unsupported, during: .open,
        "\(path) is mounted by itself, so it cannot be replaced, and its journal and lock would lie outside; mount its folder instead"
      )
    }
    let lockPath = path + ".lock"
    if access == .readWrite, attributes != nil, try fileSystem.attributes(at: lockPath) == nil { try check(path) }
    let lock = try acquireLock(lockPath, of: path, access: access)
    var opened = OpenedFiles()
    if let lock { opened.note(try lock.identity(), at: lockPath, as: .lock) }
    if access == .readWrite { try fileSystem.removeStaleTemporaryFiles(of: path) }
    return (path, lock, opened)
  }

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
