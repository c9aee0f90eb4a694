#if LMDB
import Larder
import LarderFiles

#if canImport(Darwin)
import Darwin
#elseif canImport(Musl)
import Musl
#else
import Glibc
#endif

/// The locations and identities of the files of an environment.
struct EnvironmentFiles: Equatable {
  /// The layout of the files.
  enum Layout: Equatable {
    /// A folder with `data.mdb` and `lock.mdb`, LMDB's usual layout.
    case folder
    /// A data file, and a lock file with the same name followed by `-lock` (`MDB_NOSUBDIR`).
    case singleFile
  }

  /// The path of the folder or data file, without symbolic links.
  let path: String
  let layout: Layout
  /// The identity of the data file, or `nil` if it does not exist yet.
  let identity: FileAttributes.Identity?
  /// The number of hard links of the data file.
  let linkCount: Int
  /// Whether the data file is not empty.
  let hasData: Bool
  /// The identity of the lock file, or `nil` if it did not exist before the data file was examined.
  let lockIdentity: FileAttributes.Identity?

  /// Whether the data file was emptied after use.
  ///
  /// The lock file is created after the data file's first pages.
  var isEmptied: Bool { identity != nil && !hasData && lockIdentity != nil }

  /// The path of the data file.
  var dataFile: String { EnvironmentFiles.paths(path, layout).data }

  /// The path of the lock file.
  var lockFile: String { EnvironmentFiles.paths(path, layout).lock }

  /// The folder that holds the data file.
  var folder: String {
    layout == .folder ? path : FilePaths.split(path).directory
  }

  /// Finds the files at a path.
  ///
  /// - Returns: The files, or `nil` if nothing exists at the path.
  /// - Throws: ``StoreError``.
  static func find(_ path: String, store: String) throws -> EnvironmentFiles? {
    guard !path.utf8.contains(0) else {
      throw EnvironmentFiles.error(EINVAL, "the path contains a NUL", store: store)
    }
    guard let resolved = realpath(path, nil) else {
      if errno == ENOENT {
        guard try status(path, store: store) == nil else {
          throw StoreError(
            .invalidArgument, during: .open, store: store, message: "the path is a symbolic link to a missing file")
        }
        return nil
      }
      throw EnvironmentFiles.error(errno, "the path cannot be resolved", store: store)
    }
    defer { free(resolved) }
    return try EnvironmentFiles(resolvedPath: String(cString: resolved), store: store)
  }

  private init(resolvedPath: String, store: String) throws {
    let status = try EnvironmentFiles.status(resolvedPath, store: store)
    switch status?.kind {
    case .folder?:
      try self.init(path: resolvedPath, layout: .folder, store: store)
    case .file?:
      // A `data.mdb` without a lock file of its own belongs to a folder. Processes that open the folder use another
      // lock.
      let (folder, name) = FilePaths.split(resolvedPath)
      let hasOwnLock = try EnvironmentFiles.status(resolvedPath + "-lock", store: store) != nil
      if name == "data.mdb" && !hasOwnLock {
        try self.init(path: folder, layout: .folder, store: store)
      } else {
        try self.init(path: resolvedPath, layout: .singleFile, store: store)
      }
    default:
      throw StoreError(
        .unrecognizedFormat, during: .open, store: store, message: "the path must lead to a folder or a regular file"
      )
    }
  }

  private init(path: String, layout: Layout, store: String) throws {
    let (data, lock) = EnvironmentFiles.paths(path, layout)
    // The lock file is examined first; see `isEmptied`.
    lockIdentity = try EnvironmentFiles.status(lock, store: store)?.identity
    let status = try EnvironmentFiles.status(data, store: store)
    guard status == nil || status?.kind == .file else {
      throw StoreError(
        .unsupported, during: .open, store: store,
        message: "the data file data.mdb is not a regular file; if it is a symbolic link, open its target instead")
    }
    self.path = path
    self.layout = layout
    identity = status?.identity
    linkCount = status?.linkCount ?? 0
    hasData = status?.hasData ?? false
  }

  /// Returns the paths of the data file and of the lock file of an environment.
  static func paths(_ path: String, _ layout: Layout) -> (data: String, lock: String) {
    layout == .folder
      ? (FilePaths.join(path, "data.mdb"), FilePaths.join(path, "lock.mdb")) : (path, path + "-lock")
  }

  /// Syncs the folders so that the names of new files are durable.
  ///
  /// LMDB itself does not.
  func synchronizeFolders(store: String) throws {
    for folder in [folder, FilePaths.split(folder).directory] {
      try EnvironmentFiles.synchronizeFolder(folder, during: .open, store: store)
    }
  }

  /// Syncs a folder so that the names in it are durable.
  ///
  /// - Parameters:
  ///   - path: The path of the folder.
  ///   - operation: The operation, for errors.
  ///   - store: The name of the environment, for errors.
  /// - Throws: ``StoreError``.
  static func synchronizeFolder(_ path: String, during operation: StoreOperation, store: String) throws {
    do {
      try POSIXFileSystem().synchronizeDirectory(at: path)
    } catch {
      throw StoreError(error, during: operation, store: store, message: "the folder cannot be synced")
    }
  }

  private enum Kind {
    case file
    case folder
    case other
  }

  private typealias Status = (kind: Kind, identity: FileAttributes.Identity, linkCount: Int, hasData: Bool)

  /// Returns the status of the item at a path without following a symbolic link, or `nil` if there is no item.
  private static func status(_ path: String, store: String) throws -> Status? {
    var status = stat()
    guard lstat(path, &status) == 0 else {
      if errno == ENOENT { return nil }
      throw error(errno, "\(FilePaths.split(path).name) cannot be examined", store: store)
    }
    let kind: Kind =
      switch status.st_mode & S_IFMT {
      case S_IFREG: .file
      case S_IFDIR: .folder
      default: .other
      }
    return (kind, FileAttributes.Identity(status), Int(status.st_nlink), status.st_size > 0)
  }

  /// Creates the error for a failed system call.
  static func error(_ number: Int32, _ message: String, store: String) -> StoreError {
    let error = LMDBError(code: number)
    let code: StoreError.Code =
      [ENOTDIR, ENAMETOOLONG, ELOOP, EINVAL].contains(number)
      ? .invalidArgument : error.storeErrorCode(during: .open)
    return StoreError(
      code, during: .open, store: store, message: message, underlying: error, isRetryable: error.isTransient)
  }
}
#endif
