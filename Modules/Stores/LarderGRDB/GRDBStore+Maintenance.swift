#if GRDB
import GRDB
public import Larder
import LarderFiles
import LarderSQLiteFormat

extension GRDBStore: MaintainableStore {
  /// Returns statistics about the store; see `MaintainableStore/storeStatistics()`.
  public func storeStatistics() async throws -> StoreStatistics {
    try await read(.statistics) { [self] db in
      func pragma(_ name: String) throws -> Int { try Int.fetchOne(db, sql: "PRAGMA \(name)") ?? 0 }
      let (pageSize, pageCount) = (try pragma("page_size"), try pragma("page_count"))
      let details = [
        ("pageBytes", pageSize), ("databasePages", pageCount), ("databaseFreePages", try pragma("freelist_count")),
      ]
      return StoreStatistics(
        entryCount: try rawTable(in: db).count(in: .all),
        bytesOnDisk: try settings.isInMemory
          ? nil : Int64(pageCount * pageSize) + settings.logSize(store: information.name),
        details: details.map { StoreStatistics.Detail(name: $0, value: Int64($1)) })
    }
  }

  /// Checks the structure of the whole database with `PRAGMA integrity_check`, then reads and checks all entries of the
  /// store; see `MaintainableStore/verify()`.
  ///
  /// SQLite has no checksums, so a bit that was flipped inside a value is found only if the codec finds it, as with
  /// `.checksummed()`.
  public func verify() async throws -> VerificationReport {
    let problems = try await read(.verify) { db in try String.fetchAll(db, sql: "PRAGMA integrity_check") }
    return try await VerificationReport(ofStore: information.name, integrityCheck: problems) { [self] range, limit in
      try await read(.verify) { [self] db in
        var entries: [(key: StoreKey, problem: String?)] = []
        try rawTable(in: db).scan(.entries, in: range, limit: limit, order: .ascending) { key, bytes in
          entries.append((key, coder.problem(in: bytes, forStoredKey: key)))
        }
        return entries
      }
    }
  }

  /// Rewrites the database without free pages (`VACUUM`); see `MaintainableStore/compact()`.
  ///
  /// - Throws: `StoreError`: `unsupported` if the database holds anything but stores; `timedOut`; `full`; `closed`.
  public func compact() async throws {
    try await running(.compact) {
      try information.checkWritable(for: .compact)
      let name = information.name
      do {
        try await writer.barrierWriteWithoutTransaction { [self] db in
          try checkFiles(for: .compact)
          try StoreCatalog(store: name, operation: .compact).checkCompactable(on: GRDBConnection(db: db))
          try db.execute(sql: "VACUUM")
          // The file shrinks once the log, if there is one, is moved into it. It holds the whole copy.
          _ = try db.checkpoint(.truncate)
        }
      } catch {
        throw StoreError.replacing(
          error, during: .compact, store: name, "the database could not be compacted", isWrite: true)
      }
    }
  }

  /// Writes a complete copy of the database; see `MaintainableStore/backup(to:compacting:)`.
  ///
  /// It holds all tables, also those of your program. The configuration of the database is used for the copy too, so an
  /// encrypted database stays encrypted. With `compacting`, writes wait until the copy is made.
  public func backup(to path: String, compacting: Bool) async throws {
    try await running(.backup) {
      let (writer, name) = (writer, information.name)
      let source = settings.isInMemory ? nil : DatabaseFiles.all(at: settings.file)
      try await DispatchQueueExecutor(label: "Larder.GRDBStore.backup").run {
        try GRDBStore.copy(writer, of: source, to: path, compacting: compacting, store: name)
      }
    }
  }

  private static func copy(
    _ writer: any DatabaseWriter, of source: StoreFileSet?, to path: String, compacting: Bool, store: String
  ) throws {
    let copy = try StoreCopy(DatabaseFiles.all(at: path), of: source, store: store)
    do {
      try copy.write { path in
        if compacting {
          try writer.writeWithoutTransaction { db in
            try db.execute(sql: "VACUUM INTO ?", arguments: [path])
          }
        } else {
          var configuration = writer.configuration
          configuration.readonly = false
          let queue = try DatabaseQueue(path: path, configuration: configuration)
          try writer.backup(to: queue)
          try queue.close()
        }
      }
    } catch {
      throw StoreError.replacing(error, during: .backup, store: store, "the copy could not be written")
    }
  }
}
#endif
