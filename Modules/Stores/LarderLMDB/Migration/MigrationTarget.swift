#if LMDB
import CLMDB
import Larder

/// A new environment that only the migration uses, at a temporary path.
///
/// It is synchronized once, at the end, because its files are removed after an error.
struct MigrationTarget {
  private let opened: OpenedEnvironment
  private var pointer: OpaquePointer { opened.pointer.pointer }

  /// Creates the environment in an empty folder or file.
  ///
  /// - Throws: ``StoreError``; `LMDBError`.
  init(path: String) throws {
    let configuration = EnvironmentConfiguration(path: path, durability: .buffered)
    opened = try configuration.open(configuration.findFiles())
    do {
      try LMDBError.check(mdb_env_set_flags(pointer, UInt32(MDB_NOSYNC), 1))
    } catch {
      mdb_env_close(pointer)
      throw error
    }
  }

  /// Adds entries to a database, which is created if it is missing, in one transaction.
  ///
  /// - Parameters:
  ///   - entries: The entries, in order, with keys above all of the named database.
  ///   - name: The name of the database, or `nil` for the main database.
  /// - Throws: `LMDBError`.
  func append(_ entries: [StoreEntry<[UInt8]>], to name: [UInt8]?) throws {
    while true {
      do {
        return try appendOnce(entries, to: name)
      } catch let error as LMDBError {
        guard error.code == MDB_MAP_FULL else { throw opened.named(error) }
        try enlargeMap()
      }
    }
  }

  private func appendOnce(_ entries: [StoreEntry<[UInt8]>], to name: [UInt8]?) throws {
    var begun: OpaquePointer?
    try LMDBError.check(mdb_txn_begin(pointer, nil, 0, &begun))
    guard let transaction = begun else { throw LMDBError(code: MDB_PANIC) }
    var database: MDB_dbi = 0
    do {
      if let name {
        let terminated = name.map { CChar(bitPattern: $0) } + [0]
        try LMDBError.check(mdb_dbi_open(transaction, terminated, UInt32(MDB_CREATE), &database))
      } else {
        // The main database has no order of keys before it is opened.
        try LMDBError.check(mdb_dbi_open(transaction, nil, 0, &database))
      }
      try write(entries, to: RawDatabase(transaction: transaction, identifier: database), isSorted: name != nil)
    } catch {
      mdb_txn_abort(transaction)
      throw error
    }
    try LMDBError.check(mdb_txn_commit(transaction))
    // An environment has room for a fixed number of open databases.
    if name != nil { mdb_dbi_close(pointer, database) }
  }

  private func write(_ entries: [StoreEntry<[UInt8]>], to database: RawDatabase, isSorted: Bool) throws {
    let cursor = try RawCursor(database)
    defer { cursor.close() }
    for entry in entries {
      try entry.key.withUnsafeBytes { key in
        try entry.value.withUnsafeBytes { value in try cursor.setValue(value, forKey: key, isLast: isSorted) }
      }
    }
  }

  /// Enlarges the memory map, which is smaller than usual if the address space is limited.
  private func enlargeMap() throws(LMDBError) {
    var information = MDB_envinfo()
    mdb_env_info(pointer, &information)
    let size = information.me_mapsize
    let larger = MapSize.withinFileSizeLimit(2 * size)
    guard larger > size, MapSize.isFree(larger) else { throw LMDBError(code: MDB_MAP_FULL) }
    try LMDBError.check(mdb_env_set_mapsize(pointer, larger))
  }

  /// Writes the entries to the disk.
  ///
  /// - Throws: `LMDBError`.
  func synchronize() throws(LMDBError) {
    do {
      try LMDBError.check(mdb_env_sync(pointer, 1))
    } catch {
      throw opened.named(error)
    }
  }

  func close() {
    mdb_env_close(pointer)
  }
}
#endif
