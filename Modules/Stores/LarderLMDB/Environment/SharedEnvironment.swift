#if LMDB
import CLMDB
import Larder
import LarderFiles
import Synchronization

#if canImport(Darwin)
import Darwin
#elseif canImport(Musl)
import Musl
#else
import Glibc
#endif

/// An open environment: the one object of this process for a data file, shared by all that use it.
final class SharedEnvironment: Sendable {
  /// How many named databases can be open at a time.
  ///
  /// Each costs some 60 bytes in every transaction that is kept.
  static let maximumStoreCount = 1024

  /// How many reads can go on in all processes together, at 64 bytes in the lock file each.
  private static let maximumReaderCount = 1022

  let name: String
  let files: EnvironmentFiles
  let identity: FileAttributes.Identity
  let durability: Durability
  let pointer: LMDBEnvironmentPointer
  let readers: ReaderPool
  let writer: EnvironmentWriter

  /// For work that blocks and is no write, so that writes need not wait for it.
  let maintenanceQueue = DispatchQueueExecutor(label: "Larder.LMDBEnvironment.maintenance")

  /// Held while a write transaction is open, or the memory map is replaced.
  private let writeLock = Mutex(())

  /// Opens the files.
  ///
  /// - Parameters:
  ///   - found: The files, where there are some already.
  ///   - openCount: How many other environments the process has open.
  /// - Throws: ``StoreError``.
  init(_ configuration: EnvironmentConfiguration, files found: EnvironmentFiles?, besides openCount: Int) throws {
    name = configuration.name
    durability = configuration.durability
    let isNew = found?.hasData != true
    if isNew && !configuration.createsIfMissing {
      throw StoreError(.notFound, during: .open, store: name, message: "there is no LMDB environment here")
    }
    if let found, found.linkCount > 1 {
      throw StoreError(
        .unsupported, during: .open, store: name,
        message: "the data file has \(found.linkCount) names (hard links), and each of them another lock")
    }
    let files = try found ?? SharedEnvironment.makeFolder(configuration)
    if !isNew { try DataFileInspection.check(files.dataFile, store: name) }
    try LockFile.allocate(files.lockFile, store: name)
    let pointer = try SharedEnvironment.open(files, configuration, besides: openCount)
    do {
      if isNew { try files.synchronizeFolders(store: name) }
      let opened = try configuration.findFiles()
      guard let opened, let identity = opened.identity else {
        throw StoreError(
          .conflict, during: .open, store: name, message: "the data file was removed while it was opened")
      }
      self.files = opened
      self.identity = identity
    } catch {
      mdb_env_close(pointer)
      throw error
    }
    self.pointer = LMDBEnvironmentPointer(pointer: pointer)
    readers = ReaderPool(environment: self.pointer)
    writer = EnvironmentWriter()
    do {
      try readers.clearStaleSlots()
    } catch {
      mdb_env_close(pointer)
      throw StoreError(error, during: .open, store: name, message: "the table of readers cannot be checked")
    }
  }

  private static func makeFolder(_ configuration: EnvironmentConfiguration) throws -> EnvironmentFiles {
    guard mkdir(configuration.path, 0o700) == 0 || errno == EEXIST else {
      throw EnvironmentFiles.error(errno, "the folder cannot be made", store: configuration.name)
    }
    guard let files = try configuration.findFiles() else {
      throw StoreError(
        .conflict, during: .open, store: configuration.name, message: "the folder was removed while it was opened")
    }
    return files
  }

  /// Opens the environment with the largest map, up to what is asked for, that the system accepts.
  private static func open(
    _ files: EnvironmentFiles, _ configuration: EnvironmentConfiguration, besides openCount: Int
  ) throws -> OpaquePointer {
    var mapSize = InitialMapSize.size(preferring: configuration.initialMapSize, besides: openCount)
    // Where there is little, as under a sanitizer, most of it is left to the program.
    while !isAddressSpaceFree(InitialMapSize.reserve(for: mapSize)),
      let smaller = InitialMapSize.size(afterRefusalOf: mapSize)
    {
      mapSize = smaller
    }
    while true {
      do {
        return try open(files, configuration.durability, mapSize: mapSize)
      } catch {
        if [ENOMEM, EINVAL, EFBIG, EOVERFLOW].contains(error.code),
          let smaller = InitialMapSize.size(afterRefusalOf: mapSize)
        {
          mapSize = smaller
          continue
        }
        throw EnvironmentFiles.error(error.code, "the environment cannot be opened", store: configuration.name)
      }
    }
  }

  /// Whether the process could map so many bytes in one piece.
  private static func isAddressSpaceFree(_ size: Int) -> Bool {
    let place = mmap(nil, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)
    guard let place, place != MAP_FAILED else { return false }
    munmap(place, size)
    return true
  }

  private static func open(
    _ files: EnvironmentFiles, _ durability: Durability, mapSize: Int
  ) throws(LMDBError) -> OpaquePointer {
    var created: OpaquePointer?
    try LMDBError.check(mdb_env_create(&created))
    guard let pointer = created else { throw LMDBError(code: MDB_PANIC) }
    do throws(LMDBError) {
      try LMDBError.check(mdb_env_set_mapsize(pointer, mapSize))
      try LMDBError.check(mdb_env_set_maxreaders(pointer, UInt32(maximumReaderCount)))
      // One more for the records of Larder's own.
      try LMDBError.check(mdb_env_set_maxdbs(pointer, MDB_dbi(maximumStoreCount + 1)))
      var flags = UInt32(MDB_NOTLS)
      if files.layout == .singleFile { flags |= UInt32(MDB_NOSUBDIR) }
      // Not MDB_NOSYNC: power loss could corrupt the file. This loses the latest transaction at most.
      if durability == .buffered { flags |= UInt32(MDB_NOMETASYNC) }
      try LMDBError.check(mdb_env_open(pointer, files.path, flags, 0o600))
      // LMDB lets programs that this one starts inherit the data file.
      var descriptor: Int32 = -1
      try LMDBError.check(mdb_env_get_fd(pointer, &descriptor))
      guard fcntl(descriptor, F_SETFD, FD_CLOEXEC) == 0 else { throw LMDBError(code: errno) }
      return pointer
    } catch {
      mdb_env_close(pointer)
      throw error
    }
  }

  /// Ends everything; nobody uses the environment any more.
  func close() {
    readers.close()
    mdb_env_close(pointer.pointer)
  }

  // MARK: Reading

  /// Begins a read of the latest snapshot, after enlarging the memory map where another process has written beyond it.
  func beginRead(for reader: ReaderIdentity) throws(LMDBError) -> ReaderPool.Reader {
    do {
      return try readers.begin(for: reader)
    } catch  where error.code == MDB_MAP_RESIZED {
      // Inside a read the map cannot be replaced: it would wait for itself.
      guard !readers.isReading(.current) else { throw error }
    }
    try withWriteLock { () throws(LMDBError) in try adoptMapSize() }
    return try readers.begin(for: reader)
  }

  /// Runs a closure in a read transaction that is not kept, while the write lock is held.
  ///
  /// - Parameter keepsHandles: Whether the handles of named databases that the closure opens stay open.
  func readOnce<Result>(
    keepingHandles keepsHandles: Bool = true, _ body: (OpaquePointer) throws -> Result
  ) throws -> Result {
    let transaction = try begin(MDB_RDONLY)
    let result: Result
    do {
      result = try body(transaction)
    } catch {
      mdb_txn_abort(transaction)
      throw error
    }
    if keepsHandles {
      try LMDBError.check(mdb_txn_commit(transaction))
    } else {
      mdb_txn_abort(transaction)
    }
    return result
  }

  // MARK: Writing

  /// Runs a closure while this thread may begin a write transaction.
  func withWriteLock<Result: Sendable, Failure: Error>(
    _ body: () throws(Failure) -> Result
  ) throws(Failure) -> Result {
    try writeLock.withLock { (_: inout Void) throws(Failure) -> Result in try body() }
  }

  /// Runs a closure in a write transaction and commits it; blocks.
  ///
  /// The write lock is held. Where the memory map is too small it is enlarged, and the closure runs again.
  ///
  /// - Throws: What `body` throws; `LMDBError`, with nothing changed; `FailedCommit`.
  func write<Result: Sendable>(_ body: (OpaquePointer) throws -> Result) throws -> Result {
    while true {
      let transaction = try begin(0)
      let identifier = mdb_txn_id(transaction)
      do {
        let result: Result
        do {
          result = try body(transaction)
        } catch {
          mdb_txn_abort(transaction)
          throw error
        }
        // Whether it succeeds or fails, the transaction is over.
        let code = mdb_txn_commit(transaction)
        if code == MDB_SUCCESS { return result }
        guard code == MDB_MAP_FULL else { throw failure(ofCommit: LMDBError(code: code), identifier: identifier) }
      } catch let error as LMDBError {
        guard error.code == MDB_MAP_FULL else { throw named(error) }
      }
      try enlargeMap()
    }
  }

  /// Begins a transaction that is not kept, while the write lock is held.
  private func begin(_ flags: Int32) throws(LMDBError) -> OpaquePointer {
    try readers.checkGate()
    var transaction: OpaquePointer?
    var code = mdb_txn_begin(pointer.pointer, nil, UInt32(flags), &transaction)
    if code == MDB_MAP_RESIZED {
      try adoptMapSize()
      code = mdb_txn_begin(pointer.pointer, nil, UInt32(flags), &transaction)
    }
    try LMDBError.check(code)
    guard let transaction else { throw LMDBError(code: MDB_PANIC) }
    return transaction
  }

  /// Finds out what became of a transaction whose commit failed.
  private func failure(ofCommit error: LMDBError, identifier: Int) -> FailedCommit {
    var transaction: OpaquePointer?
    guard mdb_txn_begin(pointer.pointer, nil, UInt32(MDB_RDONLY), &transaction) == MDB_SUCCESS, let transaction else {
      return FailedCommit(error: error, outcome: .unknown)
    }
    let isVisible = mdb_txn_id(transaction) >= identifier
    mdb_txn_abort(transaction)
    return FailedCommit(error: named(error), outcome: isVisible ? .unknown : .nothingChanged)
  }

  /// An error under its right name: LMDB reports a write that the disk had room for only in part as EIO.
  private func named(_ error: LMDBError) -> LMDBError {
    guard error.code == EIO else { return error }
    var status = statvfs()
    guard statvfs(files.dataFile, &status) == 0 else { return error }
    // Less than the pages of a small transaction.
    let isFull = UInt64(status.f_bavail) * UInt64(status.f_frsize) < 1 << 20
    return isFull ? LMDBError(code: ENOSPC) : error
  }

  // MARK: The memory map

  /// Enlarges the memory map so that it holds what another process has written.
  ///
  /// The write lock is held.
  private func adoptMapSize() throws(LMDBError) {
    let information = environmentInformation()
    try readers.exclusively { () throws(LMDBError) in
      try setMapSize(preferring: max(2 * information.usedSize, information.mapSize), atLeast: information.usedSize)
    }
  }

  /// Enlarges the memory map after it was found full.
  ///
  /// The write lock is held.
  private func enlargeMap() throws(LMDBError) {
    let size = environmentInformation().mapSize
    let (doubled, overflow) = size.multipliedReportingOverflow(by: 2)
    try readers.exclusively { () throws(LMDBError) in
      try setMapSize(preferring: overflow ? size : doubled, atLeast: size + size / 8)
    }
  }

  /// Gives the map the largest size, from one down to another, that the system accepts.
  ///
  /// LMDB gives up the old map before it makes the new one, and where that fails there is none: so it is asked only for
  /// what the system has been seen to give.
  ///
  /// - Throws: `LMDBError` with `MDB_MAP_FULL`, and the map is as it was.
  private func setMapSize(preferring preferred: Int, atLeast minimum: Int) throws(LMDBError) {
    var size = preferred
    while !SharedEnvironment.isAddressSpaceFree(size) {
      guard size > minimum else { throw LMDBError(code: MDB_MAP_FULL) }
      size = max(minimum, size / 2)
    }
    do {
      try LMDBError.check(mdb_env_set_mapsize(pointer.pointer, size))
    } catch {
      // Another thread was faster. Nothing can be read or written any more.
      readers.shut(error)
      throw error
    }
  }

  /// The size of the map, and how much of it is in use.
  private func environmentInformation() -> (mapSize: Int, usedSize: Int) {
    var information = MDB_envinfo()
    mdb_env_info(pointer.pointer, &information)
    var statistics = MDB_stat()
    mdb_env_stat(pointer.pointer, &statistics)
    return (information.me_mapsize, (information.me_last_pgno + 1) * Int(statistics.ms_psize))
  }
}
#endif
