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

/// Where the files of an environment are.
struct EnvironmentFiles: Equatable {
  /// How the files are laid out.
  enum Layout: Equatable {
    /// A folder with `data.mdb` and `lock.mdb`, LMDB's usual layout.
    case folder
    /// A data file, and a lock file of the same name with `-lock` behind it (`MDB_NOSUBDIR`).
    case singleFile
  }

  /// The folder, or the data file, without symbolic links.
  let path: String
  let layout: Layout
  /// Which file the data file is; `nil` where it is not there yet.
  let identity: FileAttributes.Identity?
  /// How many names the data file has.
  let linkCount: Int
  /// Whether something is in the data file.
  let hasData: Bool
  /// Which file the lock file is; `nil` if it was not there before the data file was looked at.
  let lockIdentity: FileAttributes.Identity?

  /// Whether someone has emptied the data file: the lock file is made after its first pages.
  var isEmptied: Bool { identity != nil && !hasData && lockIdentity != nil }

  /// The path of the data file.
  var dataFile: String { EnvironmentFiles.paths(path, layout).data }

  /// The path of the lock file.
  var lockFile: String { EnvironmentFiles.paths(path, layout).lock }

  /// The folder that holds the data file.
  var folder: String {
    layout == .folder ? path : FilePaths.split(path).directory
  }

  /// Finds the files that a path leads to.
  ///
  /// - Returns: The files, or `nil` where nothing is at the path.
  /// - Throws: ``StoreError``.
  static func find(_ path: String, store: String) throws -> EnvironmentFiles? {
    guard !path.utf8.contains(0) else {
      throw EnvironmentFiles.error(EINVAL, "the path has a NUL, behind which the system does not look", store: store)
    }
    guard let resolved = realpath(path, nil) else {
      if errno == ENOENT {
        guard try status(path, store: store) == nil else {
          throw StoreError(
            .invalidArgument, during: .open, store: store, message: "the path is a symbolic link that leads nowhere")
        }
        return nil
      }
      throw EnvironmentFiles.error(errno, "the path cannot be followed", store: store)
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
      // The data file of a folder, named itself: the processes that open the folder have another lock.
      let (folder, name) = FilePaths.split(resolvedPath)
      let hasOwnLock = try EnvironmentFiles.status(resolvedPath + "-lock", store: store) != nil
      if name == "data.mdb" && !hasOwnLock {
        try self.init(path: folder, layout: .folder, store: store)
      } else {
        try self.init(path: resolvedPath, layout: .singleFile, store: store)
      }
    default:
      throw StoreError(
        .unrecognizedFormat, during: .open, store: store, message: "an LMDB environment is a folder or a file, not this"
      )
    }
  }

  private init(path: String, layout: Layout, store: String) throws {
    let (data, lock) = EnvironmentFiles.paths(path, layout)
    // The lock file first; see `isEmptied`.
    lockIdentity = try EnvironmentFiles.status(lock, store: store)?.identity
    let status = try EnvironmentFiles.status(data, store: store)
    guard status == nil || status?.kind == .file else {
      throw StoreError(
        .unsupported, during: .open, store: store,
        message: "the data file data.mdb is a symbolic link or no file; name the place where it really is")
    }
    self.path = path
    self.layout = layout
    identity = status?.identity
    linkCount = status?.linkCount ?? 0
    hasData = status?.hasData ?? false
  }

  /// The paths of the data file and of the lock file of an environment.
  static func paths(_ path: String, _ layout: Layout) -> (data: String, lock: String) {
    layout == .folder
      ? (FilePaths.join(path, "data.mdb"), FilePaths.join(path, "lock.mdb")) : (path, path + "-lock")
  }

  /// Makes the names of new files durable, which LMDB leaves to others.
  func synchronizeFolders(store: String) throws {
    for folder in [folder, FilePaths.split(folder).directory] {
      try EnvironmentFiles.synchronizeFolder(folder, during: .open, store: store)
    }
  }

  /// Makes the names in a folder durable.
  ///
  /// - Parameters:
  ///   - path: The folder.
  ///   - operation: What was asked of the environment.
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

  /// What stands at a path, itself and not what it leads to; `nil` where nothing does.
  private static func status(_ path: String, store: String) throws -> Status? {
    var status = stat()
    guard lstat(path, &status) == 0 else {
      if errno == ENOENT { return nil }
      throw error(errno, "\(FilePaths.split(path).name) cannot be looked at", store: store)
    }
    let kind: Kind =
      switch status.st_mode & S_IFMT {
      case S_IFREG: .file
      case S_IFDIR: .folder
      default: .other
      }
    return (kind, FileAttributes.Identity(status), Int(status.st_nlink), status.st_size > 0)
  }

  /// The error of a failed call to the operating system.
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
