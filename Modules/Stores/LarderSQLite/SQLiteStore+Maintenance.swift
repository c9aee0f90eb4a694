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
  /// `.checksummed()`.
  public func verify() async throws -> VerificationReport {
    var report = VerificationReport(entryCount: 0)
    let handle = handle
    let problems = try await handle.database.maintenanceQueue.run {
      try handle.read(for: .verify) { try $0.rows("PRAGMA integrity_check").map { $0.joined() } }
    }
    for problem in problems where problem != "ok" {
      report.findings.append(VerificationReport.Finding(key: nil, place: handle.name, message: problem))
    }
    do {
      try await report.addEntries(of: handle.name) { [self] in try await verifiedEntries(in: $0, limit: $1) }
    } catch let error as StoreError where error.code == .corrupted && !report.findings.isEmpty {
      // The damage that the check of the structure found also stops the scan.
      report.findings.append(
        VerificationReport.Finding(
          key: nil, place: handle.name, message: "the entries after \(report.entryCount) cannot be read"))
    }
    return report
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
    try await handle.run(.compact) { try await handle.database.writer.compact(handle) }
  }

  /// Writes a complete copy of the database; see `MaintainableStore/backup(to:compacting:)`.
  public func backup(to path: String, compacting: Bool) async throws {
    try await handle.backup(to: path, compacting: compacting)
  }
}
#endif
