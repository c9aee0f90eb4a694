#if LMDB
import CLMDB
import Foundation
import Larder
import LarderFiles

/// The options for opening an environment.
struct EnvironmentConfiguration: Sendable {
  /// The path of the environment.
  var path: String
  var durability = Durability.File.synced
  var access = StoreAccess.readWrite
  var createsIfMissing = true
  /// The time that a call waits for its turn to write, or `nil` for no limit.
  var busyTimeout: Duration?
  /// The initial size of the memory map in bytes, if the system accepts it.
  ///
  /// Reserved address space costs nothing until it is used, and a large map never has to grow.
  var initialMapSize = 1 << 40

  /// The name of the environment in error messages.
  var name: String { FilePaths.split(path).name }

  /// Finds the files of the environment, or returns `nil` if nothing exists at the path.
  ///
  /// - Throws: ``StoreError``.
  func findFiles() throws -> EnvironmentFiles? {
    try EnvironmentFiles.find(path, store: name)
  }
}

/// The files of an environment that LMDB has open.
struct OpenedEnvironment {
  let pointer: LMDBEnvironmentPointer
  let files: EnvironmentFiles
  /// The identity of the data file.
  let identity: FileAttributes.Identity
  /// The identity of the lock file, or `nil` if LMDB uses none.
  let lockIdentity: FileAttributes.Identity?

  /// Returns a more precise error of a write.
  ///
  /// LMDB reports one code for any incomplete write, such as one caused by a full disk, a quota or a file size limit.
  func named(_ error: LMDBError) -> LMDBError {
    guard error.code == EIO || error.code == LMDBError.shortWrite else { return error }
    var descriptor: Int32 = -1
    var space = statvfs()
    guard mdb_env_get_fd(pointer.pointer, &descriptor) == MDB_SUCCESS, fstatvfs(descriptor, &space) == 0,
      // The error is already known, so a second one only makes it less precise.
      let size = try? POSIXFileSystem().attributes(at: files.dataFile)?.size
    else { return error }
    // A write is cut off at the limit, which leaves the file at that size.
    if let limit = MapSize.fileSizeLimit, Int(size) + Int(space.f_bsize) > limit { return LMDBError(code: EFBIG) }
    #if os(Linux)
    // Reserving space beyond the end changes no content, and only this reveals a quota.
    if fallocate(descriptor, FALLOC_FL_KEEP_SIZE, off_t(size), 1 << 20) != 0, [ENOSPC, EDQUOT].contains(errno) {
      return LMDBError(code: errno)
    }
    #endif
    // The incomplete write of the transaction has taken the remaining space.
    let isFull = UInt64(space.f_bavail) * UInt64(space.f_frsize) < 1 << 20
    return isFull ? LMDBError(code: ENOSPC) : error
  }
}

extension EnvironmentConfiguration {
  /// Opens the files, after checking what LMDB trusts.
  ///
  /// Blocks. Nothing in this process may have the environment open, because closing any descriptor of a file releases the
  /// process's locks on that file.
  ///
  /// - Parameter found: The files, or `nil` if nothing exists at the path.
  /// - Throws: ``StoreError``.
  func open(_ found: EnvironmentFiles?) throws -> OpenedEnvironment {
    guard DataFileFormat.supported != nil else {
      throw StoreError(
        .unsupported, during: .open, store: name,
        message:
          "this program runs with LMDB \(LMDBEnvironment.libraryVersion); only LMDB 0.9 and LMDB 1.0 are supported, so "
          + "install one of them")
    }
    if let found, found.linkCount > 1, access != .immutable {
      throw StoreError(
        .unsupported, during: .open, store: name,
        message:
          "the data file has \(found.linkCount) hard links; only files with one are supported, because each path "
          + "would use its own lock file")
    }
    if let found, found.isEmptied {
      throw StoreError(
        .corrupted, during: .open, store: name,
        message: "the data file is \(found.identity == nil ? "missing" : "empty") although it was in use; end the "
          + "programs that have it open, move the lock file \(FilePaths.split(found.lockFile).name) away too, then "
          + "restore a backup or create a new environment")
    }
    var files = found
    if found?.hasData != true {
      guard access == .readWrite, createsIfMissing else {
        throw StoreError(.notFound, during: .open, store: name, message: "there is no LMDB environment at this path")
      }
      files = try create(found)
    }
    guard let files else { throw movedWhileOpening() }
    // The lock file is created last. Without it, the process that created the data file may have died before it synced.
    if access == .readWrite, files.lockIdentity == nil { try files.synchronizeFolders(store: name) }
    if access == .readOnly { copyUp(files.dataFile) }
    try checkData(of: files)
    let lock = try prepareLock(of: files)
    var flags = access == .readWrite ? 0 : MDB_RDONLY
    if lock == nil { flags |= MDB_NOLOCK }
    return try open(files, lock: lock, flags: flags)
  }

  private func create(_ found: EnvironmentFiles?) throws -> EnvironmentFiles? {
    if found == nil, mkdir(path, 0o700) != 0, errno != EEXIST { throw error(errno, "the folder cannot be created") }
    guard let files = try found ?? findFiles() else { throw movedWhileOpening() }
    do {
      try DataFileCreation.create(files.dataFile)
    } catch {
      throw self.error(error.code, "the data file cannot be created")
    }
    return try findFiles()
  }

  /// Copies a data file of a lower layer to the upper one, if it is on an overlay file system, as in most containers.
  ///
  /// The first process that opens a file for writing has it copied. A process that has opened it for reading before keeps
  /// the old file, but shares the lock file, and would read the old file with the transaction numbers of the new one.
  ///
  /// If the file must not be written, `SharedEnvironment` notices such numbers.
  private func copyUp(_ path: String) {
    // Opening a file of another file system for writing changes nothing.
    let descriptor = openFile(path, O_RDWR | O_CLOEXEC)
    if descriptor >= 0 { close(descriptor) }
  }

  /// Throws an error if LMDB cannot open the data file safely, because LMDB trusts its content.
  private func checkData(of files: EnvironmentFiles) throws {
    do {
      let file = try POSIXFileSystem().open(files.dataFile, .read)
      let checking = Result { try check(file) }
      try file.close()
      try checking.get()
    } catch let error as FileError {
      throw StoreError(error, during: .open, store: name, message: "the data file cannot be read")
    }
  }

  private func check(_ file: any OpenStoreFile) throws {
    var previous: DataFileHeader?
    while true {
      let beginning = try file.readAll(from: 0, upTo: Int64(DataFileHeader.maximumSize))
      if beginning.isEmpty { return }
      let header = try DataFileHeader(beginning, store: name)
      let size = try file.attributes().size
      let roots = DataFileRoots(header: header, fileSize: size) { offset, count in
        try file.readAll(from: offset, upTo: offset + Int64(count))
      }
      guard let missing = try roots.firstMissing() else { return }
      // If another process has written in the meantime, the check is repeated.
      if header == previous {
        throw StoreError(
          .corrupted, during: .open, store: name,
          message:
            "the data file is truncated or damaged: it has \(size) bytes and lacks the root of a tree, page \(missing) "
            + "of \(header.lastPage), at \(header.pageSize) bytes per page; restore a backup")
      }
      previous = header
    }
  }

  /// Prepares the lock file.
  ///
  /// - Returns: The identity of the lock file, or `nil` if the environment cannot be written to and needs none.
  private func prepareLock(of files: EnvironmentFiles) throws -> FileAttributes.Identity? {
    if access == .immutable { return nil }
    do {
      return try LockFile.prepare(files.lockFile, for: access == .readWrite ? files.dataFile : nil)
    } catch {
      guard access == .readOnly, [ENOENT, EACCES, EPERM, EROFS].contains(error.code) else {
        throw self.error(error.code, "the lock file cannot be opened")
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
  private func open(
    _ files: EnvironmentFiles, lock: FileAttributes.Identity?, flags: Int32
  ) throws -> OpenedEnvironment {
    var mapSize = initialMapSize
    while true {
      let isSmallest = mapSize <= MapSize.minimum
      if isSmallest || MapSize.leavesEnoughAddressSpace(mapSize) {
        do {
          return try open(files, lock: lock, flags: flags, mapSize: MapSize.withinFileSizeLimit(mapSize))
        } catch let error as LMDBError {
          guard !isSmallest, [ENOMEM, EINVAL, EFBIG, EOVERFLOW].contains(error.code) else {
            throw self.error(error.code, "the environment cannot be opened")
          }
        }
      }
      // Half of the refused size might take most of the address space and leave the program without memory.
      mapSize = max(MapSize.minimum, mapSize / 16)
    }
  }

  private func open(
    _ files: EnvironmentFiles, lock: FileAttributes.Identity?, flags: Int32, mapSize: Int
  ) throws -> OpenedEnvironment {
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
      if durability == .buffered { flags |= UInt32(MDB_NOMETASYNC) }
      try LMDBError.check(mdb_env_open(pointer, files.path, flags, 0o600))
      // By default, LMDB lets child processes inherit the descriptor of the data file.
      var descriptor: Int32 = -1
      try LMDBError.check(mdb_env_get_fd(pointer, &descriptor))
      guard fcntl(descriptor, F_SETFD, FD_CLOEXEC) == 0 else { throw LMDBError(code: errno) }
      let identity = try FileAttributes.Identity(ofDescriptor: descriptor)
      // If another process replaced a file during opening, this process would have a different data file or lock.
      guard
        let now = try findFiles(), now.path == files.path, now.identity == identity,
        lock == nil || now.lockIdentity == lock
      else { throw movedWhileOpening() }
      return OpenedEnvironment(
        pointer: LMDBEnvironmentPointer(pointer: pointer), files: now, identity: identity, lockIdentity: lock)
    } catch {
      mdb_env_close(pointer)
      throw error
    }
  }

  private func error(_ code: Int32, _ message: String) -> StoreError {
    StoreError(LMDBError(code: code), during: .open, store: name, message: message)
  }

  /// Returns the error of files that another program exchanges during opening.
  func movedWhileOpening() -> StoreError {
    StoreError(
      .conflict, during: .open, store: name,
      message: "the files were moved, removed or replaced while they were being opened; try again",
      isRetryable: true)
  }
}

// Inside the type, the plain name refers to its own method.
private func openFile(_ path: String, _ flags: Int32) -> Int32 {
  open(path, flags)
}

/// The limits of the system for the memory map.
enum MapSize {
  /// The size in bytes that is tried last.
  static let minimum = 1 << 20

  /// The address space that a map leaves to the program, unless it has the minimum size.
  private static let programReserve = 1 << 33

  /// Returns whether a map of a size would take at most a sixteenth of the free address space.
  ///
  /// A process has 128 TiB on most 64-bit machines, and much less under a sanitizer or `ulimit -v`. The maps of many
  /// environments therefore get smaller one after another, and always leave address space to the program.
  static func leavesEnoughAddressSpace(_ size: Int) -> Bool {
    isFree(max(16 * size, programReserve))
  }

  /// Returns whether the process could map this number of bytes in one piece.
  static func isFree(_ size: Int) -> Bool {
    let place = mmap(nil, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)
    guard let place, place != MAP_FAILED else { return false }
    munmap(place, size)
    return true
  }

  /// The maximum file size in bytes that the system allows the process to write (`ulimit -f`), or `nil` if there is no
  /// limit.
  static var fileSizeLimit: Int? {
    var limit = rlimit()
    #if canImport(Glibc)
    let isKnown = getrlimit(__rlimit_resource_t(RLIMIT_FSIZE.rawValue), &limit) == 0
    #else
    let isKnown = getrlimit(RLIMIT_FSIZE, &limit) == 0
    #endif
    // Values that do not fit, including the one that means infinity, are no limit.
    return isKnown ? Int(exactly: limit.rlim_cur) : nil
  }

  /// Returns a size, reduced to the file size limit if necessary.
  ///
  /// A full map is detected before anything is written, but a write beyond the limit ends the process.
  static func withinFileSizeLimit(_ size: Int) -> Int {
    min(size, fileSizeLimit ?? size)
  }
}
#endif
