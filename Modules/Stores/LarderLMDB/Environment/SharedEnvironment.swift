#if LMDB
import CLMDB
import Foundation
import Larder
import LarderFiles

/// An open environment: the single object of this process for a data file, shared by all its users.
final class SharedEnvironment: Sendable {
  /// The maximum number of named databases that can be open at the same time.
  ///
  /// Each costs some 60 bytes in every pooled transaction.
  static let maximumStoreCount = 1024

  /// The maximum number of simultaneous reads of all processes together.
  ///
  /// Each takes 64 bytes in the lock file.
  static let maximumReaderCount = 1022

  /// The maximum size of an encoded value: 2 GiB less 64 KiB and the longest header of a page.
  ///
  /// LMDB writes the pages of a value with one system call. The operating system limits such a call to just below 2
  /// GiB, at a multiple of its page size, and the largest pages have 64 KiB.
  static let maximumValueSize = 1 << 31 - DataFileHeader.maximumPageSize - DataFileFormat.version3.pageHeaderSize

  let opened: OpenedEnvironment
  let durability: Durability.File
  let access: StoreAccess
  let readers: ReaderPool
  let writer = EnvironmentWriter()
  let observers = EnvironmentObservers()
  private let lockWaits: LockWaits

  /// The files that must be at their paths whenever something is written.
  let openedFiles: OpenedFiles

  /// The check of readers that the data file is still the one that others write.
  let dataFileCheck: DataFileCheck

  /// The named databases that the stores of this process have open.
  private let databases = Locked<[StoreKey: OpenedDatabase]>([:])

  /// Held while a write transaction is open, the memory map is replaced, or the environment is closed.
  private let writeLock = Locked(())

  /// A new executor for blocking work other than writes.
  ///
  /// Each call gets its own, because no call may wait for another's backup.
  var maintenanceQueue: DispatchQueueExecutor { DispatchQueueExecutor(label: "Larder.LMDBEnvironment.maintenance") }

  /// Opens the files.
  ///
  /// - Parameters:
  ///   - configuration: The options.
  ///   - found: The files, or `nil` if nothing exists at the path.
  /// - Throws: ``StoreError``.
  init(_ configuration: EnvironmentConfiguration, files found: EnvironmentFiles?) throws {
    opened = try configuration.open(found)
    durability = configuration.durability
    access = configuration.access
    var openedFiles = OpenedFiles()
    openedFiles.note(opened.identity, at: opened.files.dataFile, as: .data)
    if let lock = opened.lockIdentity { openedFiles.note(lock, at: opened.files.lockFile, as: .lock) }
    self.openedFiles = openedFiles
    dataFileCheck = DataFileCheck(opened)
    var slotCount: UInt32 = 0
    mdb_env_get_maxreaders(opened.pointer.pointer, &slotCount)
    lockWaits = LockWaits(lockFile: opened.files.lockFile)
    readers = ReaderPool(environment: opened.pointer, slotCount: Int(slotCount), lockWaits: lockWaits)
    do throws(LMDBError) {
      try readers.clearStaleSlots()
      // The first read takes a lock on the process id. Doing it here reports a failure when the environment is opened.
      readers.end(try begin(ActiveRead(handle: ObjectIdentifier(self), root: ObjectIdentifier(self))))
      // This slot is useless, because other threads will read.
      readers.abortIdleTransactions()
    } catch {
      close()
      guard error.code == EAGAIN else {
        throw StoreError(
          error, during: .open, store: configuration.name, message: "the table of readers cannot be used")
      }
      throw StoreError(
        .locked, during: .open, store: configuration.name,
        message: "another process with the process id \(getpid()), in another PID namespace, has the environment open; "
          + "run the containers in one PID namespace, or open the environment in only one of them",
        underlying: error, isRetryable: true)
    }
  }

  /// LMDB's pointer to the environment.
  var pointer: OpaquePointer { opened.pointer.pointer }

  /// Closes the environment.
  ///
  /// It must not be used any more.
  func close() {
    // Under the lock, because a read that has not begun yet may be about to replace the memory map.
    withWriteLock {
      readers.close()
      mdb_env_close(pointer)
    }
  }

  // MARK: Reading

  /// The number of times that the map is enlarged before an operation fails, because another process can write beyond it
  /// again before the operation begins.
  private static let maximumAdoptions = 100

  /// Begins a read of the latest snapshot.
  ///
  /// If another process has written beyond the memory map, the map is enlarged first.
  func begin(_ read: ActiveRead) throws(LMDBError) -> ReaderPool.Reader {
    for _ in 0..<SharedEnvironment.maximumAdoptions {
      do {
        return try readers.begin(read)
      } catch  where error.code == MDB_MAP_RESIZED {
        // The map cannot be replaced inside a read, because the replacement would wait for that read.
        guard !readers.isReading(where: { $0.thread == read.thread }) else { throw error }
      }
      try withWriteLock { () throws(LMDBError) in try adoptMapSize() }
    }
    return try readers.begin(read)
  }

  /// Runs a closure in a read transaction that is not pooled.
  ///
  /// It holds the write lock.
  ///
  /// - Parameter keepsHandles: A Boolean value that indicates whether the handles of named databases that the closure
  ///   opens stay open.
  func readOnce<Result: Sendable>(
    keepingHandles keepsHandles: Bool = true, _ body: (OpaquePointer) throws -> Result
  ) throws -> Result {
    try withWriteLock { () throws in
      let transaction = try begin(MDB_RDONLY)
      let result = Swift.Result { try body(transaction) }
      if keepsHandles, case .success = result {
        try LMDBError.check(mdb_txn_commit(transaction))
      } else {
        mdb_txn_abort(transaction)
      }
      return try result.get()
    }
  }

  // MARK: Observing

  /// Reports commits of other processes to the observers.
  ///
  /// Blocks, but never for a writer, which may wait long for the lock of another process.
  ///
  /// - Returns: A Boolean value that indicates whether a store of the environment is still observed.
  func reportOtherCommits() -> Bool {
    do {
      guard try openedFiles.firstMismatch(in: POSIXFileSystem()) == nil else {
        // Nothing is committed to these files any more.
        observers.endAll()
        return false
      }
      return observers.reportOthers(upTo: try latestSnapshot())
    } catch {
      // No reader slot is free, the memory map is too small while a writer holds the lock, or the environment was
      // closed, which has ended its observers. The next poll finds more.
      return observers.reportOthers(upTo: 0)
    }
  }

  /// Returns the number of the latest transaction that a read finds.
  ///
  /// It is that of a new reader. While LMDB waits for the disk to write a meta page, the page already has the number of
  /// a transaction that readers do not get yet. After a report by that number, they would find the state before.
  private func latestSnapshot() throws(LMDBError) -> Int {
    let read = ActiveRead(handle: ObjectIdentifier(observers), root: ObjectIdentifier(self))
    let reader: ReaderPool.Reader
    do {
      reader = try readers.begin(read)
    } catch  where error.code == MDB_MAP_RESIZED {
      // A writer that holds the lock follows the map when its transaction begins. No read of this process finds the
      // commit before.
      let adopted: Void? = try withWriteLockIfAvailable { () throws(LMDBError) in try adoptMapSize() }
      guard adopted != nil else { throw error }
      reader = try readers.begin(read)
    }
    defer { readers.end(reader) }
    return mdb_txn_id(reader.transaction.pointer)
  }

  // MARK: Writing

  /// Runs a closure while holding the write lock.
  func withWriteLock<Result: Sendable, Failure: Error>(
    _ body: () throws(Failure) -> Result
  ) throws(Failure) -> Result {
    try writeLock.withLock { (_: inout Void) throws(Failure) -> Result in try body() }
  }

  /// Runs a closure while holding the write lock, unless another thread holds it.
  ///
  /// - Returns: The result of the closure, or `nil` if another thread holds the lock.
  func withWriteLockIfAvailable<Result: Sendable, Failure: Error>(
    _ body: () throws(Failure) -> Result
  ) throws(Failure) -> Result? {
    try writeLock.withLockIfAvailable { (_: inout Void) throws(Failure) -> Result in try body() }
  }

  /// The number of the latest transaction of any process.
  ///
  /// The write lock must be held, because the number is in the memory map.
  var lastTransaction: Int {
    var information = MDB_envinfo()
    mdb_env_info(pointer, &information)
    return information.me_last_txnid
  }

  /// Begins a transaction that is not pooled.
  ///
  /// The write lock must be held.
  func begin(_ flags: Int32) throws(LMDBError) -> OpaquePointer {
    try readers.checkGate()
    var transaction: OpaquePointer?
    func begin() throws(LMDBError) -> Int32 {
      try readers.freeingSlots { lockWaits.waiting { mdb_txn_begin(pointer, nil, UInt32(flags), &transaction) } }
    }
    var code = try begin()
    for _ in 0..<SharedEnvironment.maximumAdoptions where code == MDB_MAP_RESIZED {
      try adoptMapSize()
      code = try begin()
    }
    try LMDBError.check(code)
    guard let transaction else { throw LMDBError(code: MDB_PANIC) }
    return transaction
  }

  // MARK: The memory map

  /// Enlarges the memory map to hold what another process has written.
  ///
  /// The write lock must be held.
  private func adoptMapSize() throws(LMDBError) {
    // The environment may have been closed in the meantime.
    try readers.checkGate()
    let information = environmentInformation()
    try readers.exclusively { () throws(LMDBError) in
      let preferred = MapSize.withinFileSizeLimit(max(2 * information.usedSize, information.mapSize))
      try setMapSize(preferring: max(preferred, information.usedSize), atLeast: information.usedSize)
    }
  }

  /// Enlarges the memory map after it was found full.
  ///
  /// The write lock must be held.
  func enlargeMap() throws(LMDBError) {
    let size = environmentInformation().mapSize
    let preferred = MapSize.withinFileSizeLimit(2 * size)
    guard preferred > size else { throw LMDBError(code: MDB_MAP_FULL) }
    try readers.exclusively { () throws(LMDBError) in
      try setMapSize(preferring: preferred, atLeast: min(preferred, size + size / 8))
    }
  }

  /// Sets the size of the map to the largest size within bounds that the system accepts.
  ///
  /// LMDB unmaps the old map before it creates the new one. If that fails, there is no map. This method therefore only
  /// requests a size that the system has just been seen to grant.
  ///
  /// - Throws: `LMDBError` with `MDB_MAP_FULL`, and leaves the map unchanged.
  private func setMapSize(preferring preferred: Int, atLeast minimum: Int) throws(LMDBError) {
    var size = preferred
    while !MapSize.isFree(size) {
      guard size > minimum else { throw LMDBError(code: MDB_MAP_FULL) }
      size = max(minimum, size / 2)
    }
    do {
      try LMDBError.check(mdb_env_set_mapsize(pointer, size))
    } catch {
      // Another thread took the address space first. Nothing can be read or written any more.
      readers.shut(error)
      throw error
    }
  }

  /// Returns the size of the map and the size of its used part.
  private func environmentInformation() -> (mapSize: Int, usedSize: Int) {
    var information = MDB_envinfo()
    mdb_env_info(pointer, &information)
    var statistics = MDB_stat()
    mdb_env_stat(pointer, &statistics)
    return (information.me_mapsize, (information.me_last_pgno + 1) * Int(statistics.ms_psize))
  }

  // MARK: Named databases

  /// Ensures that there is room for one more named database.
  ///
  /// The write lock must be held.
  ///
  /// Each transaction looks at every open database, and an environment has room for a fixed number of them. A database
  /// that no store uses any more is therefore closed before the next one is opened, and its identifier is reused.
  func makeRoomForDatabase(named name: StoreKey) throws(LMDBError) {
    // An identifier must not be reused while a transaction that began earlier may use it: it would read the entries of
    // another database.
    if !readers.isReading(where: { $0.usesAnyStore }) { closeUnusedDatabases() }
    if !hasRoomForDatabase(named: name) { readers.exclusively { closeUnusedDatabases() } }
    if !hasRoomForDatabase(named: name) { throw LMDBError(code: MDB_DBS_FULL) }
  }

  private func hasRoomForDatabase(named name: StoreKey) -> Bool {
    databases.withLock { $0[name] != nil || $0.count < SharedEnvironment.maximumStoreCount }
  }

  private func closeUnusedDatabases() {
    databases.withLock { databases in
      for (name, database) in databases where database.storeCount == 0 {
        mdb_dbi_close(pointer, database.identifier)
        databases[name] = nil
      }
    }
  }

  /// Closes a named database if no store has it open.
  ///
  /// The write lock must be held.
  ///
  /// - Returns: A Boolean value that indicates whether the database is closed.
  func closeDatabase(named name: StoreKey) -> Bool {
    guard databases.withLock({ $0[name]?.storeCount ?? 0 }) == 0 else { return false }
    readers.exclusively { closeUnusedDatabases() }
    return true
  }

  /// Increments the number of stores that have a named database open.
  ///
  /// - Parameters:
  ///   - name: The name. It is a key because LMDB distinguishes names that are equal strings in Swift.
  ///   - identifier: LMDB's identifier of the database.
  func retainDatabase(named name: StoreKey, _ identifier: MDB_dbi) {
    databases.withLock { $0[name, default: OpenedDatabase(identifier: identifier, storeCount: 0)].storeCount += 1 }
  }

  /// Notes that a store has a named database open with values of a type.
  ///
  /// - Throws: ``StoreError`` with `invalidArgument` if this process has it open with another type.
  func claimDatabase(named name: StoreKey, for type: Any.Type, store: String) throws {
    try databases.withLock { try $0[name]?.claim.claim(for: type, store: store) }
  }

  /// Decrements the number of stores that have a named database open.
  ///
  /// - Parameters:
  ///   - name: The name.
  ///   - isClaimed: A Boolean value that indicates whether the store has claimed the database for a type.
  func releaseDatabase(named name: StoreKey, isClaimed: Bool) {
    databases.withLock { databases in
      databases[name]?.storeCount -= 1
      if isClaimed { databases[name]?.claim.release() }
    }
  }
}

/// A named database that stores of this process have open.
private struct OpenedDatabase {
  let identifier: MDB_dbi
  var storeCount: Int
  var claim = TypeClaim()
}

/// The library's pointer to an environment.
struct LMDBEnvironmentPointer: @unchecked Sendable {
  // Proof for @unchecked: an open MDB_env may be used from any thread ("lmdb.h": only transactions and cursors belong
  // to threads). Closing it and replacing its map are the exceptions. One thread does them while `ReaderPool` keeps all
  // reads out and the write lock is held.
  let pointer: OpaquePointer
}
#endif
