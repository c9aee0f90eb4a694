#if LMDB
import CLMDB
import Larder
import LarderFiles

#if canImport(Darwin)
import Darwin
#elseif canImport(Musl)
import Musl
#else
import Glibc
#endif

/// Opens the files of an environment, after checking what LMDB trusts.
///
/// Nothing in this process may have the environment open.
struct EnvironmentOpening {
  /// The files of an environment that LMDB has open.
  struct Opened {
    let pointer: OpaquePointer
    let files: EnvironmentFiles
    /// The identity of the data file.
    let identity: FileAttributes.Identity
    /// The identity of the lock file, or `nil` if LMDB uses none.
    let lockIdentity: FileAttributes.Identity?
  }

  private let configuration: EnvironmentConfiguration
  private let openCount: Int

  private var name: String { configuration.name }

  /// Creates an opening.
  ///
  /// - Parameters:
  ///   - configuration: The configuration of the environment.
  ///   - openCount: The number of other environments that this process has open.
  init(_ configuration: EnvironmentConfiguration, besides openCount: Int) {
    self.configuration = configuration
    self.openCount = openCount
  }

  /// Opens the files.
  ///
  /// Blocks.
  ///
  /// - Parameter found: The files, or `nil` if nothing exists at the path.
  /// - Throws: ``StoreError``.
  func open(_ found: EnvironmentFiles?) throws -> Opened {
    if let found { try checkLinks(of: found) }
    if found?.hasData != true {
      if let found, found.isEmptied {
        throw StoreError(
          .corrupted, during: .open, store: name,
          message: "the data file is empty although it was in use; restore a backup, or remove the lock file "
            + "\(FilePaths.split(found.lockFile).name) to create a new environment")
      }
      guard configuration.access == .readWrite, configuration.createsIfMissing else {
        throw StoreError(.notFound, during: .open, store: name, message: "there is no LMDB environment at this path")
      }
      return try openForWriting(create(found))
    }
    guard let found, configuration.access != .readWrite else { return try openForWriting(found) }
    try DataFileInspection.check(found.dataFile, store: name)
    let lock = try lockForReading(found)
    return try open(found, lock: lock, flags: lock == nil ? MDB_RDONLY | MDB_NOLOCK : MDB_RDONLY)
  }

  private func checkLinks(of files: EnvironmentFiles) throws {
    guard files.linkCount > 1, configuration.access != .immutable else { return }
    throw StoreError(
      .unsupported, during: .open, store: name,
      message: "the data file has \(files.linkCount) hard links; only files with one are supported, because each path "
        + "would use its own lock file")
  }

  // MARK: Writing

  private func create(_ found: EnvironmentFiles?) throws -> EnvironmentFiles? {
    let files = try found ?? makeFolder()
    try DataFileCreation.create(files.dataFile, store: name)
    // Before the lock file is created and anything is written.
    try files.synchronizeFolders(store: name)
    return try configuration.findFiles()
  }

  private func makeFolder() throws -> EnvironmentFiles {
    guard mkdir(configuration.path, 0o700) == 0 || errno == EEXIST else {
      throw EnvironmentFiles.error(errno, "the folder cannot be created", store: name)
    }
    guard let files = try configuration.findFiles() else { throw movedWhileOpening() }
    return files
  }

  private func openForWriting(_ files: EnvironmentFiles?) throws -> Opened {
    guard let files else { throw movedWhileOpening() }
    try DataFileInspection.check(files.dataFile, store: name)
    let lock: FileAttributes.Identity
    do {
      lock = try LockFile.prepare(files.lockFile, for: files.dataFile)
    } catch {
      throw EnvironmentFiles.error(error.code, "the lock file cannot be opened", store: name)
    }
    return try open(files, lock: lock, flags: 0)
  }

  // MARK: Reading

  /// Prepares the lock file for a read-only environment.
  ///
  /// - Returns: The identity of the lock file, or `nil` if the environment cannot be written to and needs none.
  private func lockForReading(_ files: EnvironmentFiles) throws -> FileAttributes.Identity? {
    if configuration.access == .immutable { return nil }
    do {
      return try LockFile.prepare(files.lockFile, for: nil)
    } catch {
      guard [ENOENT, EACCES, EPERM, EROFS].contains(error.code) else {
        throw EnvironmentFiles.error(error.code, "the lock file cannot be opened", store: name)
      }
      if isReadOnlyMount(files.dataFile) { return nil }
      let lock = FilePaths.split(files.lockFile).name
      throw StoreError(
        .notPermitted, during: .open, store: name,
        message:
          "the lock file \(lock) \(error.code == ENOENT ? "is missing" : "cannot be written"), so writers could "
          + "reuse pages that are being read; make it writable, or open the environment with the access immutable "
          + "if nothing writes to it",
        underlying: error)
    }
  }

  private func isReadOnlyMount(_ path: String) -> Bool {
    var status = statvfs()
    return statvfs(path, &status) == 0 && UInt(status.f_flag) & UInt(ST_RDONLY) != 0
  }

  // MARK: LMDB

  /// Opens the environment with the largest map that the system accepts, up to the configured size.
  private func open(_ files: EnvironmentFiles, lock: FileAttributes.Identity?, flags: Int32) throws -> Opened {
    var mapSize = InitialMapSize.size(preferring: configuration.initialMapSize, besides: openCount)
    // If address space is scarce, as under a sanitizer, most of it is left to the program.
    while !AddressSpace.isFree(InitialMapSize.reserve(for: mapSize)),
      let smaller = InitialMapSize.size(afterRefusalOf: mapSize)
    {
      mapSize = smaller
    }
    while true {
      do {
        return try open(files, lock: lock, flags: flags, mapSize: InitialMapSize.withinFileSizeLimit(mapSize))
      } catch let error as LMDBError {
        if [ENOMEM, EINVAL, EFBIG, EOVERFLOW].contains(error.code),
          let smaller = InitialMapSize.size(afterRefusalOf: mapSize)
        {
          mapSize = smaller
          continue
        }
        throw EnvironmentFiles.error(error.code, "the environment cannot be opened", store: name)
      }
    }
  }

  private func open(
    _ files: EnvironmentFiles, lock: FileAttributes.Identity?, flags: Int32, mapSize: Int
  ) throws -> Opened {
    var created: OpaquePointer?
    try LMDBError.check(mdb_env_create(&created))
    guard let pointer = created else { throw LMDBError(code: MDB_PANIC) }
    do {
      try LMDBError.check(mdb_env_set_mapsize(pointer, mapSize))
      try LMDBError.check(mdb_env_set_maxreaders(pointer, UInt32(SharedEnvironment.maximumReaderCount)))
      // One more for Larder's own records, and one for examining the names of other databases.
      try LMDBError.check(mdb_env_set_maxdbs(pointer, MDB_dbi(SharedEnvironment.maximumStoreCount + 2)))
      var flags = UInt32(MDB_NOTLS | flags)
      if files.layout == .singleFile { flags |= UInt32(MDB_NOSUBDIR) }
      // Not MDB_NOSYNC, with which power loss could corrupt the file. MDB_NOMETASYNC loses the latest transaction at
      // most.
      if configuration.durability == .buffered { flags |= UInt32(MDB_NOMETASYNC) }
      try LMDBError.check(mdb_env_open(pointer, files.path, flags, 0o600))
      // By default, LMDB lets child processes inherit the descriptor of the data file.
      var descriptor: Int32 = -1
      try LMDBError.check(mdb_env_get_fd(pointer, &descriptor))
      guard fcntl(descriptor, F_SETFD, FD_CLOEXEC) == 0 else { throw LMDBError(code: errno) }
      let identity = try FileAttributes.Identity(ofDescriptor: descriptor)
      // If another process replaced a file during opening, this process would have a different data file or lock.
      guard
        let now = try configuration.findFiles(), now.path == files.path, now.identity == identity,
        lock == nil || now.lockIdentity == lock
      else { throw movedWhileOpening() }
      return Opened(pointer: pointer, files: now, identity: identity, lockIdentity: lock)
    } catch {
      mdb_env_close(pointer)
      throw error
    }
  }

  private func movedWhileOpening() -> StoreError {
    StoreError(
      .conflict, during: .open, store: name,
      message: "the files were moved, removed or replaced while they were being opened; try again",
      isRetryable: true)
  }
}

/// The options for opening an environment.
struct EnvironmentConfiguration: Sendable {
  /// The name of the environment in error messages.
  var name: String
  /// The path of the environment.
  var path: String
  var durability: FileDurability
  var access: StoreAccess
  var createsIfMissing: Bool
  /// The initial size of the memory map in bytes, if the system accepts it.
  var initialMapSize: Int

  /// The default initial size of the memory map.
  ///
  /// Reserved address space costs nothing until it is used, and a large map never has to grow.
  static let defaultMapSize = 1 << 40

  /// Finds the files of the environment, or returns `nil` if nothing exists at the path.
  ///
  /// - Throws: ``StoreError``.
  func findFiles() throws -> EnvironmentFiles? {
    try EnvironmentFiles.find(path, store: name)
  }
}
#endif
