#if SQLite
import CSQLite
public import Larder
import LarderFiles
import LarderSQLiteFormat

extension SQLiteStore: MaintainableStore {
  /// Returns statistics about the store; see `MaintainableStore/storeStatistics()`.
  public func storeStatistics() async throws -> StoreStatistics {
    let (handle, table) = (handle, table)
    return try await handle.database.maintenanceQueue.run {
      try handle.read(for: .statistics) { connection in
        try connection.reading {
          let count = try RawTable(connection: connection, table: table).count(in: .all)
          let database = try handle.database.statistics(on: connection, store: handle.name)
          let details = [
            ("pageBytes", database.pageSize), ("databasePages", database.pageCount),
            ("databaseFreePages", database.freePageCount), ("logBytes", database.logSize),
          ]
          return StoreStatistics(
            entryCount: count, bytesOnDisk: Int64(database.pageCount * database.pageSize + database.logSize),
            details: details.map { StoreStatistics.Detail(name: $0, value: Int64($1)) })
        }
      }
    }
  }

  /// Checks the structure of the whole database file with `PRAGMA integrity_check`, then reads and checks all entries of
  /// the store; see `MaintainableStore/verify()`.
  ///
  /// SQLite has no checksums, so a bit that was flipped inside a value is found only if the codec finds it, as with
  /// `.checksummed()`. If a column or an index needs a collation or a function of the application that this process does
  /// not have, every table is checked by itself as far as that is possible: the index is not compared with its table, and
  /// another table with a constraint that calls the function is not checked.
  public func verify() async throws -> VerificationReport {
    let (handle, table) = (handle, table)
    let problems = try await handle.database.maintenanceQueue.run {
      try handle.read(for: .verify) { try SQLiteStore.problems(on: $0, ofStore: table) }
    }
    return try await VerificationReport(ofStore: handle.name, integrityCheck: problems) { [self] in
      try await verifiedEntries(in: $0, limit: $1)
    }
  }

  /// Returns the problems that SQLite finds in the structure of the file, among lines with `ok`.
  private static func problems(on connection: SQLiteConnection, ofStore store: StoreTable) throws -> [String] {
    func lines(_ pragma: String) throws -> [String] { try connection.rows("PRAGMA main.\(pragma)").map { $0.joined() } }
    do {
      return try lines("integrity_check")
    } catch let error as SQLiteError where error.primaryCode == SQLITE_ERROR {
      // Something of the application's is missing.
    }
    // Tables without a page, such as virtual ones, keep their rows in others.
    let tables = try connection.rows("SELECT name FROM main.sqlite_schema WHERE type = 'table' AND rootpage > 0")
    return try tables.flatMap { table in
      let name = StoreTable.quoted(table[0])
      do {
        return try lines("integrity_check(\(name))")
      } catch let error as SQLiteError where error.primaryCode == SQLITE_ERROR {
        // Without comparing its indexes.
      }
      do {
        return try lines("quick_check(\(name))")
      } catch let error as SQLiteError
        where error.primaryCode == SQLITE_ERROR && !table[0].utf8.elementsEqual(store.name.utf8)
      {
        return []
      }
    }
  }

  /// Returns the first keys of a range, each with the problem of its entry, if any.
  private func verifiedEntries(in range: KeyRange, limit: Int) async throws -> [(key: StoreKey, problem: String?)] {
    let (handle, table, coder) = (handle, table, coder)
    return try await handle.database.maintenanceQueue.run {
      try handle.read(for: .verify) { connection in
        var entries: [(key: StoreKey, problem: String?)] = []
        try RawTable(connection: connection, table: table).scan(
          .entries, in: range, limit: limit, order: .ascending
        ) { row in
          let key = StoreKey(copying: try row.bytes(at: 0))
          let value = try row.bytes(at: 1)
          entries.append((key, coder.problem(in: value, forStoredKey: key)))
        }
        return entries
      }
    }
  }

  /// Rewrites the database file without free pages (`VACUUM`); see `MaintainableStore/compact()`.
  ///
  /// It takes as much free space as the database has, and other writers wait.
  ///
  /// - Throws: `StoreError`: `unsupported` if the database holds anything but stores; `timedOut`; `full`; `closed`.
  public func compact() async throws {
    try await handle.running(.compact) { try await handle.database.writer.compact(handle, until: handle.deadline) }
  }

  /// Writes a complete copy of the database; see `MaintainableStore/backup(to:compacting:)`.
  public func backup(to path: String, compacting: Bool) async throws {
    try await handle.backup(to: path, compacting: compacting)
  }
}
#endif
