#if LMDB
import CLMDB
import Larder
import LarderFiles

#if canImport(Darwin)
import Darwin
#elseif canImport(Musl)
import Musl
#else
import Glibc
#endif

extension EnvironmentHandle {
  /// Writes a copy of the environment; see ``LMDBEnvironment/backup(to:compacting:)``.
  func backup(to path: String, compacting: Bool) async throws {
    try await environment.maintenanceQueue.run {
      // Inside a read, so that the environment is not closed and its map is not replaced in the meantime.
      try self.read(for: .backup, isBackup: true) { _ in try self.copy(to: path, compacting: compacting) }
    }
  }

  private func copy(to path: String, compacting: Bool) throws {
    let copy = try StoreCopy(at: path, ofStore: name)
    let temporary = copy.temporaryPath
    let layout = environment.opened.files.layout
    let (data, lock) = EnvironmentFiles.paths(temporary, layout)
    do {
      if layout == .folder { guard mkdir(temporary, 0o700) == 0 else { throw LMDBError(code: errno) } }
      try writeCopy(to: data, compacting: compacting)
      // Readers without permission to create files need the lock file.
      _ = try LockFile.prepare(lock, for: data)
      if layout == .folder { try POSIXFileSystem().synchronizeDirectory(at: temporary) }
      try copy.place(isFolder: layout == .folder)
      if layout == .singleFile {
        try EnvironmentHandle.placeLockFile(lock, at: EnvironmentFiles.paths(copy.path, layout).lock)
      }
    } catch {
      // The partial copy is useless. The original error matters more than a failure to remove it.
      for file in [data, lock] { unlink(file) }
      if layout == .folder { rmdir(temporary) }
      let message = "the copy could not be written"
      switch error {
      case let error as LMDBError: throw StoreError(error, during: .backup, store: name, message: message)
      case let error as FileError: throw StoreError(error, during: .backup, store: name, message: message)
      default: throw error
      }
    }
    try copy.synchronizeName()
  }

  /// Renames the lock file of a copy to its final path.
  ///
  /// An existing lock file stays, because it may be in use.
  private static func placeLockFile(_ temporary: String, at path: String) throws(FileError) {
    do {
      try POSIXFileSystem().renameExclusively(temporary, to: path, isFolder: false)
    } catch {
      guard error.isExisting else { throw error }
      try POSIXFileSystem().removeFile(at: temporary)
    }
  }

  private func writeCopy(to path: String, compacting: Bool) throws(LMDBError) {
    let descriptor = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
    guard descriptor >= 0 else { throw LMDBError(code: errno) }
    defer { closeDescriptor(descriptor) }
    try LMDBError.check(
      mdb_env_copyfd2(environment.pointer, descriptor, compacting ? UInt32(MDB_CP_COMPACT) : 0))
    guard fsync(descriptor) == 0 else { throw LMDBError(code: errno) }
  }
}

// Inside the type, the plain name refers to its own method.
private func closeDescriptor(_ descriptor: Int32) {
  close(descriptor)
}
#endif
