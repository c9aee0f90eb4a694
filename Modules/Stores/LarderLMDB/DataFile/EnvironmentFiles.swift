#if LMDB
import Larder
import LarderFiles

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
  /// A Boolean value that indicates whether the data file is not empty.
  let hasData: Bool
  /// The identity of the lock file, or `nil` if it did not exist before the data file was examined.
  let lockIdentity: FileAttributes.Identity?

  /// A Boolean value that indicates whether the data file was emptied or removed after use.
  ///
  /// The lock file is created after the data file's first pages. A new data file would share it with the programs that
  /// have the old one open.
  var isEmptied: Bool { !hasData && lockIdentity != nil }

  /// The path of the data file.
  var dataFile: String { EnvironmentFiles.paths(path, layout).data }

  /// The path of the lock file.
  var lockFile: String { EnvironmentFiles.paths(path, layout).lock }

  /// Finds the files at a path.
  ///
  /// It does not open them.
  ///
  /// - Returns: The files, or `nil` if nothing exists at the path.
  /// - Throws: ``StoreError``.
  static func find(_ path: String, store: String) throws -> EnvironmentFiles? {
    let fileSystem = POSIXFileSystem()
    do {
      guard let attributes = try fileSystem.attributes(at: path) else {
        let (folder, name) = FilePaths.split(path)
        let place = try FilePaths.join(fileSystem.canonicalPath(of: folder), name)
        guard try name.isEmpty || fileSystem.canonicalPath(of: path) == place else {
          throw StoreError(
            .invalidArgument, during: .open, store: store, message: "the path is a symbolic link to a missing file")
        }
        return nil
      }
      let path = try fileSystem.canonicalPath(of: path)
      switch attributes.kind {
      case .directory:
        return try EnvironmentFiles(path: path, layout: .folder, store: store)
      case .file:
        // A `data.mdb` without a lock file of its own belongs to a folder. Processes that open the folder use another
        // lock.
        let (folder, name) = FilePaths.split(path)
        let isInFolder = try name == dataName && fileSystem.identity(at: path + singleFileLock.suffix) == nil
        return try EnvironmentFiles(
          path: isInFolder ? folder : path, layout: isInFolder ? .folder : .singleFile, store: store)
      case .other:
        throw StoreError(
          .unrecognizedFormat, during: .open, store: store,
          message: "the path must lead to a folder or a regular file")
      }
    } catch let error as FileError {
      throw StoreError(error, during: .open, store: store, message: "the path cannot be examined")
    }
  }

  private init(path: String, layout: Layout, store: String) throws {
    let fileSystem = POSIXFileSystem()
    let (data, lock) = EnvironmentFiles.paths(path, layout)
    // The lock file is examined first; see `isEmptied`.
    lockIdentity = try fileSystem.identity(at: lock)
    let attributes = try fileSystem.attributes(at: data)
    guard attributes.map({ $0.kind == .file }) != false, try fileSystem.canonicalPath(of: data) == data else {
      throw StoreError(
        .unsupported, during: .open, store: store,
        message: "the data file data.mdb is not a regular file; if it is a symbolic link, open its target instead")
    }
    self.path = path
    self.layout = layout
    identity = attributes?.identity
    linkCount = attributes?.linkCount ?? 0
    hasData = attributes.map { $0.size > 0 } ?? false
  }

  /// All files of the environment.
  var all: StoreFileSet { EnvironmentFiles.all(at: path, layout) }

  /// Returns all files of an environment.
  static func all(at path: String, _ layout: Layout) -> StoreFileSet {
    layout == .folder
      ? StoreFileSet(at: path, contents: [dataName, lockName]) : StoreFileSet(at: path, companions: [singleFileLock])
  }

  private static let (dataName, lockName) = ("data.mdb", "lock.mdb")

  private static let singleFileLock = StoreFileSet.Companion(
    suffix: "-lock", role: .content, summary: "the lock file of an LMDB environment")

  /// Returns the paths of the data file and of the lock file of an environment.
  static func paths(_ path: String, _ layout: Layout) -> (data: String, lock: String) {
    layout == .folder
      ? (FilePaths.join(path, dataName), FilePaths.join(path, lockName))
      : (path, path + singleFileLock.suffix)
  }

  /// Syncs the folder of the data file and the folder above so that the names of new files are durable.
  ///
  /// LMDB itself does not.
  ///
  /// - Throws: ``StoreError``.
  func synchronizeFolders(store: String) throws {
    let folder = FilePaths.split(dataFile).directory
    do {
      for folder in [folder, FilePaths.split(folder).directory] {
        try POSIXFileSystem().synchronizeDirectory(at: folder)
      }
    } catch {
      throw StoreError(error, during: .open, store: store, message: "the folder cannot be synced")
    }
  }
}
#endif
