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
      try self.read(for: .backup) { _ in try self.copy(to: path, compacting: compacting) }
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
      // The name was free; what came there meanwhile is replaced only where it is an empty folder.
      guard (isFolder ? rename(temporary, path) : link(temporary, path)) == 0 else { throw LMDBError(code: errno) }
      if !isFolder { guard unlink(temporary) == 0 else { throw LMDBError(code: errno) } }
      try EnvironmentFiles.synchronizeFolder(folder, during: .backup, store: name)
    } catch {
      // What is left of the copy is of no use; why it failed matters more than whether it can be removed.
      if isFolder { unlink(FilePaths.join(temporary, "data.mdb")) }
      if isFolder { rmdir(temporary) } else { unlink(temporary) }
      guard let error = error as? LMDBError else { throw error }
      throw StoreError(error, during: .backup, store: name, message: "the copy could not be written")
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
