#if LMDB
import CLMDB
import Foundation
import Larder
import LarderFiles

extension EnvironmentHandle {
  /// Writes a copy of the environment; see ``LMDBEnvironment/backup(to:compacting:)``.
  func backup(to path: String, compacting: Bool) async throws {
    try await environment.maintenanceQueue.run {
      // Inside a read, so that the environment is not closed and its map is not replaced in the meantime.
      try self.read(for: .backup, isBackup: true) { _ in try self.copy(to: path, compacting: compacting) }
    }
  }

  private func copy(to path: String, compacting: Bool) throws {
    let opened = environment.opened.files
    let layout = opened.layout
    let copy = try StoreCopy(EnvironmentFiles.all(at: path, layout), of: opened.all, store: name)
    do {
      try copy.write(asFolder: layout == .folder) { path in
        let (data, lock) = EnvironmentFiles.paths(path, layout)
        try writeCopy(to: data, compacting: compacting)
        // Readers without permission to create files need the lock file.
        _ = try LockFile.prepare(lock, for: data)
      }
    } catch let error as LMDBError {
      throw StoreError(error, during: .backup, store: name, message: "the copy could not be written")
    }
  }

  private func writeCopy(to path: String, compacting: Bool) throws(LMDBError) {
    let descriptor = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0o600)
    guard descriptor >= 0 else { throw LMDBError(code: errno) }
    defer { closeDescriptor(descriptor) }
    // The copy is a read of LMDB's own, which writes nothing without a slot.
    let code = try environment.readers.freeingSlots {
      mdb_env_copyfd2(environment.pointer, descriptor, compacting ? UInt32(MDB_CP_COMPACT) : 0)
    }
    try LMDBError.check(code)
    guard fsync(descriptor) == 0 else { throw LMDBError(code: errno) }
  }
}

// Inside the type, the plain name refers to its own method.
private func closeDescriptor(_ descriptor: Int32) {
  close(descriptor)
}
#endif
