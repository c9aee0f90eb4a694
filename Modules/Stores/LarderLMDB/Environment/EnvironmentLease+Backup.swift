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
    let isFolder = environment.files.layout == .folder
    do {
      if isFolder {
        guard mkdir(temporary, 0o700) == 0 else { throw LMDBError(code: errno) }
        try writeCopy(to: FilePaths.join(temporary, "data.mdb"), compacting: compacting)
        try EnvironmentFiles.synchronizeFolder(temporary, during: .backup, store: name)
      } else {
        try writeCopy(to: temporary, compacting: compacting)
      }
      try EnvironmentLease.place(temporary, at: path, isFolder: isFolder)
    } catch {
      // What is left of the copy is of no use; why it failed matters more than whether it can be removed.
      if isFolder { unlink(FilePaths.join(temporary, "data.mdb")) }
      if isFolder { rmdir(temporary) } else { unlink(temporary) }
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

  private func writeCopy(to path: String, compacting: Bool) throws(LMDBError) {
    let file = try NewFile(path)
    try LMDBError.check(
      mdb_env_copyfd2(environment.pointer.pointer, file.descriptor, compacting ? UInt32(MDB_CP_COMPACT) : 0))
    try file.finish()
  }
}
#endif
