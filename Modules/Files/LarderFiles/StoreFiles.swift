public import Larder

/// The files of a store, with the checks and error messages that all file-based stores share.
public protocol StoreFiles {
  /// The name of the store in error messages.
  var name: String { get }

  /// The file system that has the files.
  var fileSystem: any StoreFileSystem { get }
}

extension StoreFiles {
  /// Creates an error of the store.
  ///
  /// - Parameters:
  ///   - code: The kind of failure.
  ///   - operation: The operation that failed.
  ///   - key: The key concerned. Defaults to `nil`.
  ///   - message: A text for people that says what is wrong, without any key or value.
  ///   - underlying: The error that caused this one. Defaults to `nil`.
  ///   - isRetryable: A Boolean value that indicates whether a later retry can succeed. Defaults to `false`.
  public func error(
    _ code: StoreError.Code, during operation: StoreOperation, key: StoreKey? = nil, _ message: String,
    underlying: (any Error)? = nil, isRetryable: Bool = false
  ) -> StoreError {
    StoreError(
      code, during: operation, store: name, key: key, message: message, underlying: underlying, isRetryable: isRetryable
    )
  }

  /// Runs a closure that uses the files, and converts a file system error to a store error.
  ///
  /// - Parameters:
  ///   - operation: The operation.
  ///   - key: The key concerned. Defaults to `nil`.
  ///   - message: A text for people that says what is wrong, without any key or value.
  ///   - outcome: The outcome. It says whether the operation may have changed anything. Defaults to
  ///     `nothingChanged`.
  ///   - body: The closure.
  /// - Returns: The result of `body`.
  /// - Throws: `StoreError` for a ``FileError``, with its ``FileError/code(during:)``; any other error that `body`
  ///   throws.
  public func reportingFileErrors<Result>(
    during operation: StoreOperation, key: StoreKey? = nil, message: String,
    outcome: StoreError.Outcome = .nothingChanged, _ body: () throws -> Result
  ) throws -> Result {
    do {
      return try body()
    } catch let error as FileError {
      throw StoreError(error, during: operation, store: name, key: key, message: message, outcome: outcome)
    }
  }

  /// Throws an error if a file cannot be the file of a store, or must not be written.
  ///
  /// - Parameters:
  ///   - attributes: The attributes of the file.
  ///   - path: The path of the file.
  ///   - isWritten: A Boolean value that indicates whether the file is going to be written. If so, the file must have a
  ///     single hard link. Defaults to `true`.
  /// - Throws: `StoreError`: `unrecognizedFormat`; `unsupported` if the file has several hard links.
  public func checkKind(_ attributes: FileAttributes, of path: String, isWritten: Bool = true) throws {
    guard attributes.kind == .file else {
      throw error(.unrecognizedFormat, during: .open, "\(path) is not a regular file")
    }
    guard attributes.linkCount <= 1 || !isWritten else {
      throw error(
        .unsupported, during: .open,
        "\(path) has \(attributes.linkCount) hard links; only files with one are supported, because each path "
          + "would use its own lock file")
    }
  }

  /// Acquires the lock of a store.
  ///
  /// A reader acquires a shared lock if the lock file exists, and never creates it. With `StoreAccess.immutable`, no
  /// lock is acquired.
  ///
  /// - Parameters:
  ///   - lockPath: The path of the lock file.
  ///   - path: The path of the guarded file or folder. It may be missing.
  ///   - access: The access of the store to its file.
  /// - Returns: The lock, or `nil` if a reader needs no lock.
  /// - Throws: `StoreError`: `locked`; `notPermitted` if a reader may not open the lock file. ``FileError``.
  public func acquireLock(_ lockPath: String, of path: String, access: StoreAccess) throws -> FileLock? {
    switch access {
    case .readWrite: break
    case .readOnly: guard try fileSystem.attributes(at: lockPath) != nil else { return nil }
    case .immutable: return nil
    }
    let lock: FileLock?
    do throws(FileError) {
      lock = try FileLock.acquire(
        lockPath, access == .readWrite ? .exclusive : .shared, guarding: fileSystem.attributes(at: path), in: fileSystem
      )
    } catch {
      guard access == .readOnly, error.isAccessDenied else { throw error }
      throw self.error(
        .notPermitted, during: .open,
        "\(lockPath) cannot be opened, so it is unknown whether a writer has the store open; make the lock file "
          + "readable, or open the store with the access immutable if nothing writes to it",
        underlying: error)
    }
    guard let lock else {
      throw error(
        .locked, during: .open, "\(path) is open in another process, or already in this one; close it there first",
        isRetryable: true)
    }
    return lock
  }

  /// Throws an error if an open file of the store is no longer at its path.
  ///
  /// - Parameters:
  ///   - opened: The files.
  ///   - operation: The operation that is about to write, or that closes the store.
  /// - Throws: `StoreError`: `locked` if the lock file was moved, removed or replaced, because another process may
  ///   have opened the store then; `conflict` if another file was; `ioFailed`.
  public func check(_ opened: OpenedFiles, during operation: StoreOperation) throws {
    let mismatch = try reportingFileErrors(during: operation, message: "the files of the store could not be checked") {
      try opened.firstMismatch(in: fileSystem)
    }
    guard let mismatch else { return }
    switch mismatch.role {
    case .lock:
      throw error(
        .locked, during: operation,
        "\(mismatch) while the store was open, so another process may have opened it; close "
          + "it and open it again")
    case .data:
      throw error(
        .conflict, during: operation,
        "\(mismatch) while the store was open, so writing has stopped; close it and open it again"
      )
    }
  }
}

/// The options for opening the file of a store, and the name of the store in error messages.
public struct StoreFileConfiguration: StoreFiles, Sendable {
  /// The name of the store in error messages.
  public var name: String

  /// The path of the file.
  public var path: String

  /// The durability of a write when it returns.
  public var durability: Durability.File

  /// The access of the store to its file.
  public var access: StoreAccess

  /// A Boolean value that indicates whether to create the file if it is missing.
  public var createsIfMissing: Bool

  /// A Boolean value that indicates whether to create the folder of the file if it is missing.
  public var createsFolder: Bool

  /// The file system that has the file.
  public var fileSystem: any StoreFileSystem

  /// Creates a configuration.
  ///
  /// - Parameters:
  ///   - name: The name of the store in error messages. Defaults to the last component of the path.
  ///   - path: The path of the file.
  ///   - durability: The durability of a write when it returns.
  ///   - access: The access of the store to its file. Defaults to `StoreAccess.readWrite`.
  ///   - createsIfMissing: A Boolean value that indicates whether to create the file if it is missing. A reader never
  ///     creates it.
  ///   - createsFolder: A Boolean value that indicates whether to create the folder of the file if it is missing.
  ///     Defaults to `false`.
  ///   - fileSystem: The file system.
  public init(
    name: String? = nil, path: String, durability: Durability.File, access: StoreAccess = .readWrite,
    createsIfMissing: Bool, createsFolder: Bool = false, fileSystem: any StoreFileSystem
  ) {
    self.name = name ?? FilePaths.split(path).name
    self.path = path
    self.durability = durability
    self.access = access
    self.createsIfMissing = createsIfMissing && access == .readWrite
    self.createsFolder = createsFolder && access == .readWrite
    self.fileSystem = fileSystem
  }

  /// Creates a configuration for the file at the path in a URL, in the real file system.
  ///
  /// - Parameters:
  ///   - url: The URL of the store.
  ///   - options: The options for opening the store.
  /// - Throws: `StoreError` with `invalidArgument` if the path is empty.
  public init(_ url: StoreURL, _ options: StoreOptions) throws {
    self.init(
      path: try url.path, durability: options.durability, access: options.access,
      createsIfMissing: options.createsIfMissing, fileSystem: POSIXFileSystem())
  }

  // MARK: The lock

  /// Finds the file, acquires its lock, and removes temporary files that a crashed process left beside it.
  ///
  /// A reader acquires a shared lock on an existing lock file, and neither creates nor removes anything.
  ///
  /// - Parameter check: A closure that checks an existing file at a path before its lock file is created, because a
  ///   file that is not a store must not get one. Another process may be writing to the file. Defaults to no check.
  /// - Returns: The path of the file, with symbolic links resolved; the lock, if any; and the list of open files, which
  ///   contains the lock file.
  /// - Throws: `StoreError`: `notFound`; `unrecognizedFormat`; `unsupported` if the file has several hard links or is
  ///   a mount point; `locked`; `notPermitted`. ``FileError``. The error that `check` throws.
  public func takeLock(
    checking check: (_ path: String) throws -> Void = { _ in }
  ) throws -> (path: String, lock: FileLock?, opened: OpenedFiles) {
    let folder = FilePaths.split(path).directory
    if createsFolder { try fileSystem.createDirectories(at: folder) }
    guard try fileSystem.attributes(at: folder) != nil else {
      throw error(.notFound, during: .open, "the folder \(folder) does not exist; create it first")
    }
    let path = try fileSystem.canonicalPath(of: path)
    // Checked before a lock file is created: only a regular file may get one.
    let attributes = try fileSystem.attributes(at: path)
    guard createsIfMissing || attributes != nil else {
      throw error(.notFound, during: .open, "there is no store at \(path)")
    }
    if let attributes { try checkKind(attributes, of: path, isWritten: access == .readWrite) }
    if access == .readWrite, try fileSystem.isMountPoint(at: path) {
      throw error(
        .unsupported, during: .open,
        "\(path) is a mount point, so it cannot be replaced, and its journal and lock would be outside the "
          + "mount; mount its folder instead")
    }
    let lockPath = path + StoreFileSet.lockSuffix
    if access == .readWrite, attributes != nil, try fileSystem.attributes(at: lockPath) == nil { try check(path) }
    let lock = try acquireLock(lockPath, of: path, access: access)
    var opened = OpenedFiles()
    if let lock { opened.note(try lock.identity(), at: lockPath, as: .lock) }
    if access == .readWrite { try fileSystem.removeStaleTemporaryFiles(of: path) }
    return (path, lock, opened)
  }
}

extension StoreFileConfiguration {
  /// Opens the file of the store for reading, and lists it.
  ///
  /// For a writer, the name of the file is made durable first: a process that died may have put the file there, and what a
  /// reader has seen must survive a power failure.
  ///
  /// - Parameter opened: The list of open files.
  /// - Returns: The file, or `nil` if it is missing. Keep it open as long as it is listed.
  /// - Throws: ``FileError``.
  public func openFile(_ opened: inout OpenedFiles) throws(FileError) -> (any OpenStoreFile)? {
    guard try fileSystem.attributes(at: path) != nil else { return nil }
    if access == .readWrite { try fileSystem.synchronizeDirectory(at: FilePaths.split(path).directory) }
    let file = try fileSystem.open(path, .read)
    opened.note(try file.attributes().identity, at: path, as: .data)
    return file
  }

  /// Replaces the file of the store, and keeps the new one open and listed.
  ///
  /// The new file has permissions 0600.
  ///
  /// - Parameters:
  ///   - opened: The list of open files. It is compared with the files at their paths first.
  ///   - operation: The operation, for errors.
  ///   - write: A closure that writes the content.
  /// - Returns: The new file. Keep it open as long as it is listed.
  /// - Throws: `StoreError` with `locked` or `conflict` if another file is at a path; the code of the ``FileError``
  ///   otherwise. If its outcome is `unknown`, either of the two files may be at the path, also after a power failure,
  ///   and neither is listed. The errors of `write`.
  public func replaceFile(
    _ opened: inout OpenedFiles, during operation: StoreOperation, _ write: (inout BufferedFileWriter) throws -> Void
  ) throws -> any OpenStoreFile {
    try check(opened, during: operation)
    do {
      var replacement = try FileReplacement(of: path, like: nil, in: fileSystem)
      let identity = try replacement.prepare {
        try write(&$0.writer)
        return try $0.file.attributes().identity
      }
      let file = try replacement.commit()
      opened.note(identity, at: path, as: .data)
      return file
    } catch let error as FileError {
      if error.leavesReplacementInDoubt { opened.forget(path) }
      throw StoreError(
        error, during: operation, store: name, message: "\(path) could not be written",
        outcome: error.leavesReplacementInDoubt ? .unknown : .nothingChanged)
    }
  }
}

extension StoreURL {
  /// The location of a store whose location is a path.
  ///
  /// - Throws: `StoreError` with `invalidArgument` if the path is empty.
  public var path: String {
    get throws {
      guard !location.isEmpty else {
        throw StoreError(
          .invalidArgument, during: .open, store: description,
          message: "missing path: expected a path after the scheme, such as \(scheme):data")
      }
      return location
    }
  }
}
