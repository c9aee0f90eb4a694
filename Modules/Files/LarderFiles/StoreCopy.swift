import Foundation
public import Larder

/// A new file or folder of a store, such as a backup, that gets its name once it is complete and durable.
///
/// It is written inside a temporary folder beside its path, together with everything that a library writes beside it. A
/// lock in that folder shows that the copy is still being written. The next copy in the same folder removes what a killed
/// process left. On a file system without locks, a copy is written too, but what a killed process left stays.
///
/// All methods block.
///
/// ```swift
/// let copy = try StoreCopy(StoreFileSet(at: path), store: "users")
/// try copy.write { path in try fileSystem.replaceFile(at: path) { try $0.write(document) } }
/// ```
public struct StoreCopy: Sendable {
  private static let lockName = "lock"
  private static let unlockedName = "unlocked"
  private static let contentName = "store"

  /// The files of the copy.
  public let files: StoreFileSet

  /// The path where the copy is written, inside the temporary folder.
  public let temporaryPath: String

  private let source: StoreFileSet?
  private let operation: StoreOperation
  private let store: String
  private let fileSystem: any StoreFileSystem
  private let folder: TemporaryFolder

  /// A temporary folder, and the lock in it; `nil` on a file system without locks.
  private struct TemporaryFolder {
    let path: String
    let lock: FileLock?
  }

  /// Checks that the copy can be written, removes the temporary folders of killed processes, and creates a new one.
  ///
  /// - Parameters:
  ///   - files: The files of the copy, which must not exist.
  ///   - source: The files of the store that is copied, whose compression dictionaries the copy gets. Defaults to `nil`,
  ///     for a new store, or one that is only in memory.
  ///   - operation: The operation, for errors. Defaults to a backup.
  ///   - store: The name of the store in errors.
  ///   - fileSystem: The file system. Defaults to the real one.
  /// - Throws: `StoreError`: `invalidArgument` if a file of the copy exists, or the path is one of the store itself;
  ///   `locked` if a program has the store open that was at the path; an error of the file system.
  public init(
    _ files: StoreFileSet, of source: StoreFileSet? = nil, during operation: StoreOperation = .backup,
    store: String, in fileSystem: some StoreFileSystem = POSIXFileSystem()
  ) throws {
    guard !files.path.utf8.contains(0) else {
      throw StoreError(.invalidArgument, during: operation, store: store, message: "the path contains a NUL")
    }
    let folder: TemporaryFolder
    do {
      try StoreCopy.check(files, of: source, during: operation, store: store, in: fileSystem)
      try StoreCopy.removeLeftovers(in: FilePaths.split(files.path).directory, of: fileSystem)
      folder = try StoreCopy.makeFolder(for: files.path, in: fileSystem)
    } catch let error as FileError {
      throw StoreError(
        error, during: operation, store: store, message: "the new store at \(files.path) cannot be begun")
    }
    self.files = files
    self.source = source
    self.operation = operation
    self.store = store
    self.fileSystem = fileSystem
    self.folder = folder
    temporaryPath = FilePaths.join(folder.path, StoreCopy.contentName)
  }

  /// Throws an error if the copy cannot be written.
  private static func check(
    _ files: StoreFileSet, of source: StoreFileSet?, during operation: StoreOperation, store: String,
    in fileSystem: some StoreFileSystem
  ) throws {
    let path = try fileSystem.canonicalPath(of: files.path)
    if let source, source.contains(path), !path.utf8.elementsEqual(source.path.utf8) {
      throw StoreError(
        .invalidArgument, during: operation, store: store,
        message: "\(path) belongs to the store itself; choose another path")
    }
    try files.checkFree(during: operation, store: store, in: fileSystem)
    guard let dictionaries = try source?.dictionaries(during: operation, store: store, in: fileSystem),
      let existing = try files.dictionaries(during: operation, store: store, in: fileSystem), dictionaries != existing
    else { return }
    throw StoreError(
      .invalidArgument, during: operation, store: store,
      message: "\(files.dictionariesPath) holds other compression dictionaries than the store; move it away, "
        + "together with the store that it belongs to")
  }

  /// Writes the copy, and gives it its name once it is durable.
  ///
  /// A new file is created empty before the closure runs, so only the user can read it. The dictionaries of the source
  /// follow. Companions that the closure writes beside ``temporaryPath`` are renamed too. If an error is thrown before
  /// the copy has its name, everything is removed.
  ///
  /// - Parameters:
  ///   - isFolder: A Boolean value that indicates whether the copy is a folder, whose files the closure must
  ///     synchronize. Defaults to `false`.
  ///   - write: A closure that writes the file or the content of the folder at the path that it receives.
  /// - Throws: The error that `write` throws, except that a ``FileError`` becomes a `StoreError`; `StoreError`, with
  ///   `invalidArgument` if something exists at the path by now, and with an unknown outcome if the copy has its name, which
  ///   may not be durable, or a companion has not.
  public func write(asFolder isFolder: Bool = false, _ write: (_ path: String) throws -> Void) throws {
    do {
      try create(temporaryPath, asFolder: isFolder)
      try write(temporaryPath)
      try synchronize(temporaryPath, asFolder: isFolder)
      // After the content: a dictionary is added to the file before any value needs it.
      try placeDictionaries()
      try fileSystem.renameExclusively(temporaryPath, to: files.path, isFolder: isFolder)
    } catch {
      removeFolder()
      throw storeError(error)
    }
    defer { removeFolder() }
    do {
      try placeCompanions()
    } catch {
      throw StoreError(
        error, during: operation, store: store,
        message: "\(files.path) is in place, but a file that belongs to it could not be put beside it",
        outcome: .unknown)
    }
    do {
      try fileSystem.synchronizeDirectory(at: FilePaths.split(files.path).directory)
    } catch {
      throw StoreError(
        error, during: operation, store: store,
        message: "\(files.path) is complete and in place, but its folder could not be synced, so power loss may "
          + "remove it",
        outcome: .unknown)
    }
  }

  /// Returns the error of a copy that was not written.
  private func storeError(_ error: any Error) -> any Error {
    guard let error = error as? FileError else { return error }
    if error.operation == .rename, error.isExisting { return files.existsError(during: operation, store: store) }
    return StoreError(error, during: operation, store: store, message: "\(files.path) could not be written")
  }

  private func create(_ path: String, asFolder isFolder: Bool) throws(FileError) {
    if isFolder { return try fileSystem.createDirectory(at: path) }
    let file = try fileSystem.open(path, .createNew)
    try file.close()
  }

  private func synchronize(_ path: String, asFolder isFolder: Bool = false) throws(FileError) {
    if isFolder { return try fileSystem.synchronizeDirectory(at: path) }
    let file = try fileSystem.open(path, .read)
    try file.synchronizeThroughInterruptions()
    try file.close()
  }

  /// Copies the dictionaries of the source, unless the same ones are in place.
  private func placeDictionaries() throws {
    guard let bytes = try source?.dictionaries(during: operation, store: store, in: fileSystem) else { return }
    guard try files.dictionaries(during: operation, store: store, in: fileSystem) != bytes else { return }
    let path = temporaryPath + StoreFileSet.dictionariesSuffix
    let file = try fileSystem.open(path, .createNew)
    try file.writeAll(bytes, at: 0)
    try file.synchronizeThroughInterruptions()
    try file.close()
    try fileSystem.renameExclusively(path, to: files.dictionariesPath, isFolder: false)
  }

  /// Renames the companions that the closure wrote.
  private func placeCompanions() throws(FileError) {
    for companion in files.companions {
      let path = temporaryPath + companion.suffix
      guard let attributes = try fileSystem.attributes(at: path) else { continue }
      try synchronize(path)
      do throws(FileError) {
        try fileSystem.renameExclusively(path, to: files.path + companion.suffix, isFolder: false)
      } catch {
        // A program that has opened the store in the meantime has created its own, and an empty file says nothing.
        guard error.isExisting, attributes.size == 0 else { throw error }
      }
    }
  }

  // MARK: Temporary folders

  private static var temporaryMark: String { POSIXFileSystem.temporaryMark }

  /// Creates a temporary folder, and acquires its lock.
  private static func makeFolder(for path: String, in fileSystem: some StoreFileSystem) throws(FileError)
    -> TemporaryFolder
  {
    while true {
      let folder = path + temporaryMark + Hexadecimal.text(of: UInt64.random(in: .min ... .max))
      try fileSystem.createDirectory(at: folder)
      let acquired: FileLock?
      do throws(FileError) {
        acquired = try acquireLock(of: folder, in: fileSystem)
      } catch {
        if error.lacksLocks, try disclaimLock(of: folder, in: fileSystem) {
          return TemporaryFolder(path: folder, lock: nil)
        }
        discard(folder, in: fileSystem)
        throw error
      }
      if let lock = acquired { return TemporaryFolder(path: folder, lock: lock) }
      // Another process took the folder, whose lock was free for a moment, for that of a killed process.
    }
  }

  /// Acquires the lock of a temporary folder.
  ///
  /// - Returns: The lock, or `nil` if another process holds it or has removed the folder.
  private static func acquireLock(of folder: String, in fileSystem: some StoreFileSystem) throws(FileError) -> FileLock?
  {
    do throws(FileError) {
      return try FileLock.acquire(FilePaths.join(folder, lockName), in: fileSystem)
    } catch {
      guard error.isMissing else { throw error }
      return nil
    }
  }

  /// Marks a temporary folder on a file system without locks, so no process that finds no lock in it removes it.
  ///
  /// - Returns: A Boolean value that indicates whether there was a lock file to turn into the mark.
  private static func disclaimLock(of folder: String, in fileSystem: some StoreFileSystem) throws(FileError) -> Bool {
    do throws(FileError) {
      try fileSystem.rename(FilePaths.join(folder, lockName), to: FilePaths.join(folder, unlockedName))
      return true
    } catch {
      guard error.isMissing else { throw error }
      return false
    }
  }

  /// Removes the temporary folders whose processes were killed.
  private static func removeLeftovers(in directory: String, of fileSystem: some StoreFileSystem) throws(FileError) {
    let names: [String]
    do throws(FileError) {
      names = try fileSystem.contentsOfDirectory(at: directory)
    } catch {
      // A folder that can only be written to shows no names.
      guard error.isAccessDenied else { throw error }
      return
    }
    for name in names where isTemporary(name) {
      // A folder that cannot be removed does not concern the new copy.
      do throws(FileError) {
        try removeLeftover(FilePaths.join(directory, name), in: fileSystem)
      } catch {}
    }
  }

  /// Removes a temporary folder, unless its process is still writing.
  ///
  /// In a folder that several users share, another user could put a folder or a symbolic link there, to have files of this
  /// user removed. Therefore it must be a folder that belongs to the user of this process.
  private static func removeLeftover(_ folder: String, in fileSystem: some StoreFileSystem) throws(FileError) {
    guard let attributes = try fileSystem.attributesWithoutFollowing(at: folder), attributes.kind == .directory,
      attributes.owner.user == geteuid()
    else { return }
    guard try fileSystem.attributes(at: FilePaths.join(folder, lockName)) != nil else {
      // Succeeds only if the folder is empty. Its process, if it is alive, then chooses another one.
      return try fileSystem.removeFile(at: folder)
    }
    guard let lock = try acquireLock(of: folder, in: fileSystem) else { return }
    try remove(folder, in: fileSystem)
    try lock.release()
  }

  /// A Boolean value that indicates whether a name is that of a temporary file or folder.
  private static func isTemporary(_ name: String) -> Bool {
    let digits = 2 * MemoryLayout<UInt64>.size
    let (bytes, mark) = (Array(name.utf8), Array(temporaryMark.utf8))
    guard bytes.count > mark.count + digits else { return false }
    let number: UInt64? = Hexadecimal.number(of: bytes.suffix(digits))
    return number != nil && bytes.dropLast(digits).suffix(mark.count).elementsEqual(mark)
  }

  /// Removes the temporary folder.
  ///
  /// Its lock is released with the last reference to it.
  private func removeFolder() {
    StoreCopy.discard(folder.path, in: fileSystem)
    withExtendedLifetime(folder.lock) {}
  }

  /// Removes a temporary folder as far as possible.
  ///
  /// The result of the copy matters more than a failure. The next copy removes the remains.
  private static func discard(_ folder: String, in fileSystem: some StoreFileSystem) {
    do throws(FileError) {
      try remove(folder, in: fileSystem)
    } catch {}
  }

  /// Removes a temporary folder: its files, and those of one folder in it.
  ///
  /// Symbolic links are removed and not followed. The lock goes last.
  private static func remove(_ folder: String, in fileSystem: some StoreFileSystem) throws(FileError) {
    for name in try fileSystem.contentsOfDirectory(at: folder) where name != lockName {
      let path = FilePaths.join(folder, name)
      if try fileSystem.attributesWithoutFollowing(at: path)?.kind == .directory {
        for name in try fileSystem.contentsOfDirectory(at: path) {
          try fileSystem.removeFile(at: FilePaths.join(path, name))
        }
      }
      try fileSystem.removeFile(at: path)
    }
    let lockPath = FilePaths.join(folder, lockName)
    if try fileSystem.attributes(at: lockPath) != nil { try fileSystem.removeFile(at: lockPath) }
    try fileSystem.removeFile(at: folder)
  }
}
