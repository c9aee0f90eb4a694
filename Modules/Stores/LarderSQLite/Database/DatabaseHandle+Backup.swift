#if SQLite
import CSQLite
import Larder
import LarderFiles
import LarderSQLiteFormat

extension DatabaseHandle {
  /// Writes a copy of the database; see ``SQLiteDatabase/backup(to:compacting:)``.
  func backup(to path: String, compacting: Bool) async throws {
    try await running(.backup) {
      try await database.maintenanceQueue.run { try self.copy(to: path, compacting: compacting) }
    }
  }

  private func copy(to path: String, compacting: Bool) throws {
    let copy = try StoreCopy(DatabaseFiles.all(at: path), of: database.file.files, store: name)
    do {
      try copy.write { path in
        // A connection of its own, because `VACUUM INTO` is refused by those that only read.
        let connection = try database.file.connect(writes: false, waits: true, store: name)
        if compacting {
          try connection.run("PRAGMA query_only = OFF")
          _ = try connection.rows("VACUUM INTO ?1", path)
        } else {
          try copyPages(of: connection, to: path)
        }
      }
    } catch let error as SQLiteError where compacting && error.primaryCode == SQLITE_ERROR {
      throw StoreError(
        .unsupported, during: .backup, store: name,
        message: "the database needs a function or a collation of its application to be rewritten; back it up without "
          + "compacting, or open it with a closure that registers them", underlying: error)
    } catch let error as SQLiteError {
      throw StoreError(error, during: .backup, store: name, message: "the copy could not be written")
    }
  }

  private func copyPages(of connection: SQLiteConnection, to path: String) throws {
    let copy = try SQLiteConnection(path: path, flags: SQLITE_OPEN_READWRITE)
    guard let backup = sqlite3_backup_init(copy.pointer, "main", connection.pointer, "main") else {
      throw copy.latestError(sqlite3_extended_errcode(copy.pointer))
    }
    // All pages in one step, so that they are of one snapshot. Writers do not wait, because they write to the log.
    let code = sqlite3_backup_step(backup, -1)
    let finished = sqlite3_backup_finish(backup)
    guard code == SQLITE_DONE, finished == SQLITE_OK else {
      throw SQLiteError(code: finished == SQLITE_OK ? code : finished)
    }
  }
}
#endif
