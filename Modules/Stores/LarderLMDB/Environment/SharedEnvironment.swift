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
  static let maximumReaderCount = 1022

  let name: String
  let files: EnvironmentFiles
  let identity: FileAttributes.Identity
  let lockIdentity: FileAttributes.Identity?
  let durability: Durability
  let access: StoreAccess
  let pointer: LMDBEnvironmentPointer
  let readers: ReaderPool
  let writer: EnvironmentWriter
  let handles = DatabaseHandles()

  /// The files that must be at their paths whenever something is written.
  private let openedFiles: OpenedFiles

  /// Held while a write transaction is open, the memory map is replaced, or the environment is closed.
  private let writeLock = Mutex(())

  /// A thread for work that blocks and is no write; one for each call, since none may wait for a backup of another.
  var maintenanceQueue: DispatchQueueExecutor { DispatchQueueExecutor(label: "Larder.LMDBEnvironment.maintenance") }

  /// Opens the files.
  ///
  /// - Parameters:
  ///   - found: The files, if anything is at the path.
  ///   - openCount: How many other environments the process has open.
  /// - Throws: ``StoreError``.
  init(_ configuration: EnvironmentConfiguration, files found: EnvironmentFiles?, besides openCount: Int) throws {
    let opened = try EnvironmentOpening(configuration, besides: openCount).open(found)
    name = configuration.name
    durability = configuration.durability
    access = configuration.access
    files = opened.files
    identity = opened.identity
    lockIdentity = opened.lockIdentity
    var openedFiles = OpenedFiles()
    openedFiles.note(opened.identity, at: opened.files.dataFile, as: .data)
    if let lock = opened.lockIdentity { openedFiles.note(lock, at: opened.files.lockFile, as: .lock) }
    self.openedFiles = openedFiles
    pointer = LMDBEnvironmentPointer(pointer: opened.pointer)
    var slotCount: UInt32 = 0
    mdb_env_get_maxreaders(opened.pointer, &slotCount)
    readers = ReaderPool(environment: pointer, slotCount: Int(slotCount))
    writer = EnvironmentWriter()
    do throws(LMDBError) {
      try readers.clearStaleSlots()
      // The first read takes a lock that has the number of the process: here, so that opening tells if it cannot.
      readers.end(try beginRead(for: ReaderIdentity(lease: 0, root: 0)))
      // Its slot is of no use: other threads read.
      readers.abortIdleTransactions()
    } catch {
      close()
      guard error.code == EAGAIN else {
        throw StoreError(error, during: .open, store: name, message: "the table of readers cannot be used")
      }
      throw StoreError(
        .locked, during: .open, store: name,
        message: "another process with the process id \(getpid()), in another PID namespace, has the environment open; "
          + "let the containers share a PID namespace, or open the environment in only one of them",
        underlying: error, isRetryable: true)
    }
  }

  /// Ends everything; nobody uses the environment any more.
  func close() {
    // Under the lock: a read that has not begun yet may be about to replace the memory map.
    withWriteLock {
      readers.close()
      mdb_env_close(pointer.pointer)
    }
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
    try withWriteLock { () throws(LMDBError) in
      // It may have been closed meanwhile.
      try readers.checkGate()
      try adoptMapSize()
    }
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
  /// The write lock is held. If the memory map is too small it is enlarged, and the closure runs again.
  ///
  /// - Returns: What `body` returns, and the number of the transaction, which LMDB uses again if nothing was changed.
  /// - Throws: What `body` throws; `LMDBError`, `FileError` and `MovedFiles`, with nothing changed; `FailedCommit`.
  func write<Result: Sendable>(_ body: (OpaquePointer) throws -> Result) throws -> (result: Result, identifier: Int) {
    while true {
      let transaction = try begin(0)
      let identifier = mdb_txn_id(transaction)
      do {
        let result: Result
        do {
          // Before the body, because a large transaction writes pages before it is committed.
          try checkFiles()
          result = try body(transaction)
          try checkFiles()
        } catch {
          mdb_txn_abort(transaction)
          throw error
        }
        // Whether it succeeds or fails, the transaction is over.
        let code = mdb_txn_commit(transaction)
        if code == MDB_SUCCESS { return (result, identifier) }
        guard code == MDB_MAP_FULL else { throw failure(ofCommit: LMDBError(code: code), identifier: identifier) }
      } catch let error as LMDBError {
        guard error.code == MDB_MAP_FULL else { throw named(error) }
      }
      try enlargeMap()
    }
  }

  /// Makes sure that the files which are open are still at their paths.
  ///
  /// It only looks at them: to open and close one would give up the process's locks on it.
  ///
  /// - Throws: `MovedFiles`; `FileError`.
  func checkFiles() throws {
    if let mismatch = try openedFiles.firstMismatch(in: POSIXFileSystem()) { throw MovedFiles(mismatch: mismatch) }
  }

  /// The number of the latest transaction of any process.
  var lastTransaction: Int {
    var information = MDB_envinfo()
    mdb_env_info(pointer.pointer, &information)
    return information.me_last_txnid
  }

  /// Makes room for the handle of a named database, while the write lock is held.
  func makeRoomForHandle(of name: StoreKey) throws(LMDBError) {
    // A transaction that began while a handle was another's would find that one's entries.
    if !readers.isReading(where: { $0.usesAnyStore }) { handles.closeUnused(in: pointer) }
    if handles.areFull(for: name) { readers.exclusively { handles.closeUnused(in: pointer) } }
    if handles.areFull(for: name) { throw LMDBError(code: MDB_DBS_FULL) }
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

  /// Returns an error under its right name: LMDB reports EIO for a write that was cut short, as a full disk, a quota or a
  /// limit does.
  private func named(_ error: LMDBError) -> LMDBError {
    guard error.code == EIO else { return error }
    var descriptor: Int32 = -1
    var status = stat()
    guard mdb_env_get_fd(pointer.pointer, &descriptor) == MDB_SUCCESS, fstat(descriptor, &status) == 0 else {
      return error
    }
    // A write is cut short at the limit, and leaves the file as large as that.
    if let limit = InitialMapSize.fileSizeLimit, Int(status.st_size) + Int(status.st_blksize) > limit {
      return LMDBError(code: EFBIG)
    }
    #if os(Linux)
    // Reserving space behind the end changes no content; only this tells of a quota.
    if fallocate(descriptor, FALLOC_FL_KEEP_SIZE, status.st_size, 1 << 20) != 0, [ENOSPC, EDQUOT].contains(errno) {
      return LMDBError(code: errno)
    }
    #endif
    var space = statvfs()
    guard fstatvfs(descriptor, &space) == 0 else { return error }
    // What was written of the transaction has taken the rest.
    let isFull = UInt64(space.f_bavail) * UInt64(space.f_frsize) < 1 << 20
    return isFull ? LMDBError(code: ENOSPC) : error
  }

  // MARK: The memory map

  /// Enlarges the memory map so that it holds what another process has written.
  ///
  /// The write lock is held.
  private func adoptMapSize() throws(LMDBError) {
    let information = environmentInformation()
    try readers.exclusively { () throws(LMDBError) in
      let preferred = InitialMapSize.withinFileSizeLimit(max(2 * information.usedSize, information.mapSize))
      try setMapSize(preferring: max(preferred, information.usedSize), atLeast: information.usedSize)
    }
  }

  /// Enlarges the memory map after it was found full.
  ///
  /// The write lock is held.
  private func enlargeMap() throws(LMDBError) {
    let size = environmentInformation().mapSize
    let (doubled, overflow) = size.multipliedReportingOverflow(by: 2)
    let preferred = InitialMapSize.withinFileSizeLimit(overflow ? size : doubled)
    guard preferred > size else { throw LMDBError(code: MDB_MAP_FULL) }
    try readers.exclusively { () throws(LMDBError) in
      try setMapSize(preferring: preferred, atLeast: min(preferred, size + size / 8))
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
    while !AddressSpace.isFree(size) {
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
