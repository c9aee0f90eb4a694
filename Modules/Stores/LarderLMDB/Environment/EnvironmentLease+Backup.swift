#if LMDB
import CLMDB
import Larder
import LarderFiles

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

#if canImport(Darwin)
import Darwin
#elseif canImport(Musl)
import Musl
#else
import Glibc
#endif

extension EnvironmentLease {
  /// Writes a copy of the environment; see ``LMDBEnvironment/backup(to:compacting:)``.
  func backup(to path: String, compacting: Bool) async throws {
    try await environment.maintenanceQueue.run {
      // Within a read, so that the environment is not closed meanwhile, and its map not replaced.
      try self.read(for: .backup, isBackup: true) { _ in try self.copy(to: path, compacting: compacting) }
    }
  }

  private func copy(to path: String, compacting: Bool) throws {
    guard !path.utf8.contains(0) else {
      throw StoreError(.invalidArgument, during: .backup, store: name, message: "the path has a NUL")
    }
    let (folder, lastComponent) = FilePaths.split(path)
    let path = FilePaths.join(folder, lastComponent)
    var status = stat()
    guard lstat(path, &status) != 0 else {
      throw StoreError(.invalidArgument, during: .backup, store: name, message: "something is there already")
    }
    let temporary = "\(path).larder-\(UUID().uuidString)"
    let layout = environment.files.layout
    let (data, lock) = EnvironmentFiles.paths(temporary, layout)
    do {
      if layout == .folder { guard mkdir(temporary, 0o700) == 0 else { throw LMDBError(code: errno) } }
      try writeCopy(to: data, compacting: compacting)
      // Readers that may not create files need it.
      _ = try LockFile.prepare(lock, for: data)
      if layout == .folder { try EnvironmentFiles.synchronizeFolder(temporary, during: .backup, store: name) }
      try EnvironmentLease.place(temporary, at: path, isFolder: layout == .folder)
      if layout == .singleFile {
        try EnvironmentLease.placeLockFile(lock, at: EnvironmentFiles.paths(path, layout).lock)
      }
    } catch {
      // What is left of the copy is of no use; why it failed matters more than whether it can be removed.
      for file in [data, lock] { unlink(file) }
      if layout == .folder { rmdir(temporary) }
      guard let error = error as? LMDBError else { throw error }
      throw StoreError(error, during: .backup, store: name, message: "the copy could not be written")
    }
    do {
      try POSIXFileSystem().synchronizeDirectory(at: folder)
    } catch {
      throw StoreError(
        error, during: .backup, store: name,
        message: "the copy is complete and in place, but its folder could not be synced, so power loss may remove it",
        outcome: .unknown)
    }
  }

  /// Gives a copy its name, unless something has come there meanwhile.
  private static func place(_ temporary: String, at path: String, isFolder: Bool) throws(LMDBError) {
    #if canImport(Darwin)
    if renamex_np(temporary, path, UInt32(RENAME_EXCL)) == 0 { return }
    guard [EINVAL, ENOTSUP].contains(errno) else { throw LMDBError(code: errno) }
    #elseif canImport(Glibc)
    if renameat2(AT_FDCWD, temporary, AT_FDCWD, path, UInt32(RENAME_NOREPLACE)) == 0 { return }
    guard [EINVAL, ENOSYS].contains(errno) else { throw LMDBError(code: errno) }
    #endif
    // A file system that cannot do that: an empty folder is replaced, and a file keeps two names if the process dies here.
    guard (isFolder ? rename(temporary, path) : link(temporary, path)) == 0 else {
      throw LMDBError(code: errno)
    }
    if !isFolder { guard unlink(temporary) == 0 else { throw LMDBError(code: errno) } }
  }

  /// Gives the lock file of a copy its name; one that is there already stays, as it may be in use.
  private static func placeLockFile(_ temporary: String, at path: String) throws(LMDBError) {
    do {
      try place(temporary, at: path, isFolder: false)
    } catch {
      guard error.code == EEXIST else { throw error }
      guard unlink(temporary) == 0 else { throw LMDBError(code: errno) }
    }
  }

  private func writeCopy(to path: String, compacting: Bool) throws(LMDBError) {
    let file = try NewFile(path)
    try LMDBError.check(
      mdb_env_copyfd2(environment.pointer.pointer, file.descriptor, compacting ? UInt32(MDB_CP_COMPACT) : 0))
    try file.finish()
  }
}
#endif
