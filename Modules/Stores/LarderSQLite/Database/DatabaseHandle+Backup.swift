#if SQLite
import CSQLite
import Larder
import LarderFiles

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

extension DatabaseHandle {
  /// Writes a copy of the database; see ``SQLiteDatabase/backup(to:compacting:)``.
  func backup(to path: String, compacting: Bool) async throws {
    try await database.maintenanceQueue.run {
      try self.read(for: .backup) { try self.copy($0, to: path, compacting: compacting) }
    }
  }

  private func copy(_ connection: SQLiteConnection, to path: String, compacting: Bool) throws {
    guard !path.utf8.contains(0) else {
      throw StoreError(.invalidArgument, during: .backup, store: name, message: "the path contains a NUL")
    }
    let fileSystem = POSIXFileSystem()
    let (folder, lastComponent) = FilePaths.split(path)
    let path = FilePaths.join(folder, lastComponent)
    let temporary = "\(path).larder-\(UUID().uuidString)"
    do {
      guard try fileSystem.attributes(at: path) == nil else {
        throw StoreError(
          .invalidArgument, during: .backup, store: name, message: "something already exists at the path")
      }
      // Created here, because SQLite would let everyone read it.
      try fileSystem.open(temporary, .createNew).close()
      if compacting {
        try compact(connection, into: temporary)
      } else {
        try copyPages(of: connection, to: temporary)
      }
      let file = try fileSystem.open(temporary, .readWrite)
      let synchronizing = Result { try file.synchronizeThroughInterruptions() }
      try file.close()
      try synchronizing.get()
      try fileSystem.renameExclusively(temporary, to: path, isFolder: false)
    } catch {
      // The partial copy is useless. The original error matters more than a failure to remove it.
      try? fileSystem.removeFile(at: temporary)
      switch error {
      case let error as FileError where error.isExisting:
        throw StoreError(
          .invalidArgument, during: .backup, store: name, message: "something already exists at the path")
      case let error as FileError:
        throw StoreError(error, during: .backup, store: name, message: "the copy could not be written")
      default: throw error
      }
    }
    do {
      try fileSystem.synchronizeDirectory(at: folder)
    } catch {
      throw StoreError(
        error, during: .backup, store: name,
        message: "the copy is complete and in place, but its folder could not be synced, so power loss may remove it",
        outcome: .unknown)
    }
  }

  private func compact(_ connection: SQLiteConnection, into path: String) throws {
    // `VACUUM INTO` writes to an empty file, and the copy's connection is its own, so it is allowed to.
    try connection.run("PRAGMA query_only = OFF")
    defer { try? connection.run("PRAGMA query_only = ON") }
    let bytes = Array(path.utf8)
    try connection.withStatement("VACUUM INTO ?1") { statement in
      try bytes.withUnsafeBytes {
        try statement.bind($0, at: 1, isText: true)
        _ = try statement.step()
      }
    }
  }

  private func copyPages(of connection: SQLiteConnection, to path: String) throws {
    let copy = try SQLiteConnection(path: path, flags: SQLITE_OPEN_READWRITE, busyTimeout: 0)
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
