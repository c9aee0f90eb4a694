import CFileSystem
import Foundation

/// The real file system, implemented with POSIX calls.
public struct POSIXFileSystem: StoreFileSystem {
  /// Creates the file system.
  public init() {}

  /// Opens a file with `open`.
  ///
  /// Child processes do not inherit it.
  public func open(_ path: String, _ mode: FileOpenMode) throws(FileError) -> any OpenStoreFile {
    try check(path, for: .open)
    let flags: Int32 =
      switch mode {
      case .read: O_RDONLY
      case .readWrite: O_RDWR
      case .createIfMissing: O_RDWR | O_CREAT
      case .createNew: O_RDWR | O_CREAT | O_EXCL
      }
    // Without O_NONBLOCK, opening a FIFO would wait for another process. The flag has no effect on regular files.
    let descriptor = posixOpen(path, flags | O_CLOEXEC | O_NONBLOCK, 0o600)
    guard descriptor >= 0 else { throw FileError(.open, path: path, errorNumber: errno) }
    return POSIXFile(descriptor: descriptor, path: path)
  }

  /// Renames a file with `rename`.
  public func rename(_ path: String, to newPath: String) throws(FileError) {
    try check(path, for: .rename)
    try check(newPath, for: .rename)
    guard posixRename(path, newPath) == 0 else { throw FileError(.rename, path: newPath, errorNumber: errno) }
  }

  /// Renames a file or folder, unless something exists at the new path.
  ///
  /// If the file system has no such call, an existing empty folder is replaced, and a file keeps both names if the
  /// process is killed in between. If it has no hard links either, such as exFAT through FUSE, an empty file stands at the
  /// new path for a moment, or stays there if the process is killed.
  ///
  /// - Throws: ``FileError``, with `EEXIST` or `ENOTEMPTY` if something exists at the new path.
  public func renameExclusively(_ path: String, to newPath: String, isFolder: Bool) throws(FileError) {
    try check(path, for: .rename)
    try check(newPath, for: .rename)
    #if canImport(Darwin)
    if renamex_np(path, newPath, UInt32(RENAME_EXCL)) == 0 { return }
    guard [EINVAL, ENOTSUP].contains(errno) else { throw FileError(.rename, path: newPath, errorNumber: errno) }
    #elseif canImport(Glibc)
    if renameat2(AT_FDCWD, path, AT_FDCWD, newPath, UInt32(RENAME_NOREPLACE)) == 0 { return }
    guard [EINVAL, ENOSYS].contains(errno) else { throw FileError(.rename, path: newPath, errorNumber: errno) }
    #endif
    if isFolder { return try rename(path, to: newPath) }
    if link(path, newPath) == 0 { return try removeFile(at: path) }
    guard [EPERM, ENOTSUP, EOPNOTSUPP, ENOSYS].contains(errno) else {
      throw FileError(.rename, path: newPath, errorNumber: errno)
    }
    try renameOverNewFile(path, to: newPath)
  }

  /// Renames a file over an empty one that is created at the new path unless something exists there.
  func renameOverNewFile(_ path: String, to newPath: String) throws(FileError) {
    try open(newPath, .createNew).close()
    do throws(FileError) {
      try rename(path, to: newPath)
    } catch {
      // The original error matters more than a failure to remove the empty file.
      try? removeFile(at: newPath)
      throw error
    }
  }

  /// Removes a file with `unlink`, or an empty directory with `rmdir`.
  public func removeFile(at path: String) throws(FileError) {
    try check(path, for: .removeFile)
    guard unlink(path) != 0 else { return }
    // Systems other than Linux return EPERM for a directory. All systems also return it for other reasons.
    let errorNumber = errno
    guard errorNumber == EISDIR || errorNumber == EPERM, rmdir(path) == 0 else {
      throw FileError(.removeFile, path: path, errorNumber: errno == ENOTDIR ? errorNumber : errno)
    }
  }

  /// Creates a directory with `mkdir`.
  public func createDirectory(at path: String) throws(FileError) {
    try check(path, for: .createDirectory)
    guard mkdir(path, 0o700) == 0 else { throw FileError(.createDirectory, path: path, errorNumber: errno) }
  }

  /// Syncs the names in a directory with `fsync` (`F_FULLFSYNC` on Apple platforms).
  public func synchronizeDirectory(at path: String) throws(FileError) {
    try check(path, for: .synchronizeDirectory)
    let descriptor = posixOpen(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0)
    guard descriptor >= 0 else { throw FileError(.synchronizeDirectory, path: path, errorNumber: errno) }
    // Not `fdatasync`, which may omit a new name that does not change the size of the directory.
    #if canImport(Darwin)
    let result = fcntl(descriptor, F_FULLFSYNC)
    #else
    let result = fsync(descriptor)
    #endif
    let errorNumber = errno
    posixClose(descriptor)
    guard result == 0 else { throw FileError(.synchronizeDirectory, path: path, errorNumber: errorNumber) }
  }

  /// Syncs the content of a file that others have written.
  ///
  /// Closing it again releases all locks that the process has on the file.
  ///
  /// - Throws: ``FileError``.
  public func synchronizeFile(at path: String) throws(FileError) {
    let file = try open(path, .read)
    try file.synchronizeThroughInterruptions()
    try file.close()
  }

  /// Returns the names in a directory with `readdir`.
  ///
  /// A name that is not UTF-8 contains replacement characters.
  public func contentsOfDirectory(at path: String) throws(FileError) -> [String] {
    try check(path, for: .contentsOfDirectory)
    guard let directory = opendir(path) else {
      throw FileError(.contentsOfDirectory, path: path, errorNumber: errno)
    }
    defer { closedir(directory) }
    // The names are read in place. An entry may be shorter than its declared type, so copying one at the end of its
    // memory would read beyond that memory.
    guard let nameOffset = MemoryLayout<dirent>.offset(of: \.d_name) else {
      throw FileError(.contentsOfDirectory, path: path, errorNumber: ENOTSUP)
    }
    var names: [String] = []
    while true {
      // For `readdir`, only `errno` distinguishes the end of the directory from a failure.
      errno = 0
      guard let entry = readdir(directory) else { break }
      let name = String(cString: UnsafeRawPointer(entry).advanced(by: nameOffset).assumingMemoryBound(to: CChar.self))
      if name != ".", name != ".." { names.append(name) }
    }
    guard errno == 0 else { throw FileError(.contentsOfDirectory, path: path, errorNumber: errno) }
    return names
  }

  /// Returns the attributes of a path with `stat`.
  public func attributes(at path: String) throws(FileError) -> FileAttributes? {
    try attributes(at: path, by: stat)
  }

  /// Returns the attributes of a path with `lstat`.
  public func attributesWithoutFollowing(at path: String) throws(FileError) -> FileAttributes? {
    try attributes(at: path, by: lstat)
  }

  private func attributes(
    at path: String, by read: (UnsafePointer<CChar>, UnsafeMutablePointer<stat>) -> Int32
  ) throws(FileError) -> FileAttributes? {
    try check(path, for: .attributes)
    var status = stat()
    guard read(path, &status) == 0 else {
      if errno == ENOENT { return nil }
      throw FileError(.attributes, path: path, errorNumber: errno)
    }
    return FileAttributes(status)
  }

  /// Returns the identity of a path, with `statx` if available, because `stat` would slow down the next synchronization
  /// of the file.
  public func identity(at path: String) throws(FileError) -> FileAttributes.Identity? {
    try check(path, for: .attributes)
    var identity = FileAttributes.Identity(device: 0, inode: 0)
    guard larder_file_identity(path, &identity.device, &identity.inode) == 0 else {
      if errno == ENOENT { return nil }
      throw FileError(.attributes, path: path, errorNumber: errno)
    }
    return identity
  }

  /// Searches for the path in `/proc/self/mountinfo` on Linux.
  ///
  /// On other systems, a file cannot be a mount point.
  ///
  /// Source of the format: proc(5) of the Linux man-pages. The fifth field is the mount point, in which a space, a tab,
  /// a line feed and a backslash are written as a backslash and three octal digits.
  public func isMountPoint(at path: String) throws(FileError) -> Bool {
    #if os(Linux)
    guard let mounts = try mountTable() else { return false }
    let escaped = path.utf8.flatMap { byte -> [UInt8] in
      switch byte {
      case UInt8(ascii: " "), UInt8(ascii: "\t"), UInt8(ascii: "\n"), UInt8(ascii: "\\"):
        [UInt8(ascii: "\\"), 0x30 + byte >> 6, 0x30 + byte >> 3 & 7, 0x30 + byte & 7]
      default: [byte]
      }
    }
    return mounts.split(separator: UInt8(ascii: "\n")).contains { line in
      line.split(separator: UInt8(ascii: " "), maxSplits: 5).dropFirst(4).first?.elementsEqual(escaped) ?? false
    }
    #else
    return false
    #endif
  }

  #if os(Linux)
  /// Returns the mount table of the process, or `nil` if the system does not provide it.
  private func mountTable() throws(FileError) -> [UInt8]? {
    let path = "/proc/self/mountinfo"
    do throws(FileError) {
      // Its size reads as 0, so it is read in blocks until there are no more bytes.
      let file = try open(path, .read)
      var bytes: [UInt8] = []
      while true {
        let piece = try file.readAll(from: Int64(bytes.count), upTo: Int64(bytes.count) + 65_536)
        guard !piece.isEmpty else { return bytes }
        bytes += piece
      }
    } catch {
      guard error.errorNumber == ENOENT else { throw error }
      return nil
    }
  }
  #endif

  /// Resolves a path with `realpath`, and with `readlink` if it leads to a missing item.
  public func canonicalPath(of path: String) throws(FileError) -> String {
    try check(path, for: .canonicalPath)
    var path = path
    // The kernel also follows at most 40 links.
    for _ in 0..<40 {
      if let resolved = realpath(path, nil) {
        defer { free(resolved) }
        return String(cString: resolved)
      }
      guard errno == ENOENT else { throw FileError(.canonicalPath, path: path, errorNumber: errno) }
      let (directory, name) = FilePaths.split(path)
      guard let parent = realpath(directory, nil) else {
        throw FileError(.canonicalPath, path: directory, errorNumber: errno)
      }
      defer { free(parent) }
      let missing = FilePaths.join(String(cString: parent), name)
      var buffer = [CChar](repeating: 0, count: Int(PATH_MAX))
      let count = readlink(missing, &buffer, buffer.count)
      if count >= 0 {
        let link = String(decoding: buffer.prefix(count).lazy.map(UInt8.init(bitPattern:)), as: UTF8.self)
        path = link.utf8.first == UInt8(ascii: "/") ? link : FilePaths.join(String(cString: parent), link)
        continue
      }
      switch errno {
      case ENOENT: return missing
      // It is no link: another process created it after `realpath` looked.
      case EINVAL: path = missing
      case let errorNumber: throw FileError(.canonicalPath, path: missing, errorNumber: errorNumber)
      }
    }
    throw FileError(.canonicalPath, path: path, errorNumber: ELOOP)
  }

  /// Throws an error if a path contains a NUL, after which the system would ignore the rest.
  private func check(_ path: String, for operation: FileError.Operation) throws(FileError) {
    guard path.utf8.contains(0) else { return }
    throw FileError(operation, path: path, errorNumber: EINVAL)
  }
}

// Inside the types above and below, the plain names refer to their own methods.

private func posixOpen(_ path: String, _ flags: Int32, _ permissions: mode_t) -> Int32 {
  open(path, flags, permissions)
}

private func posixRename(_ path: String, _ newPath: String) -> Int32 {
  rename(path, newPath)
}

@discardableResult
func posixClose(_ descriptor: Int32) -> Int32 {
  close(descriptor)
}

/// Finds the size of an open file without asking for its times.
func posixSize(_ descriptor: Int32, _ size: inout Int64) -> Int32 {
  larder_file_size(descriptor, &size)
}
