#if canImport(Darwin)
import Darwin
#elseif canImport(Musl)
import Musl
#else
import Glibc
#endif

/// The real file system, by the calls of POSIX.
public struct POSIXFileSystem: FileSystem {
  /// Makes the file system.
  public init() {}

  /// Opens a file by `open`; a child process does not inherit it.
  public func open(_ path: String, _ mode: FileOpenMode) throws(FileError) -> any OpenFile {
    try check(path, for: .open)
    let flags: Int32 =
      switch mode {
      case .read: O_RDONLY
      case .readWrite: O_RDWR
      case .createIfMissing: O_RDWR | O_CREAT
      case .createNew: O_RDWR | O_CREAT | O_EXCL
      }
    // Without O_NONBLOCK, opening a FIFO would wait for another process; a regular file does not mind the flag.
    let descriptor = posixOpen(path, flags | O_CLOEXEC | O_NONBLOCK, 0o600)
    guard descriptor >= 0 else { throw FileError(.open, path: path, errorNumber: errno) }
    return POSIXFile(descriptor: descriptor, path: path)
  }

  /// Renames a file by `rename`.
  public func rename(_ path: String, to newPath: String) throws(FileError) {
    try check(path, for: .rename)
    try check(newPath, for: .rename)
    guard posixRename(path, newPath) == 0 else { throw FileError(.rename, path: newPath, errorNumber: errno) }
  }

  /// Removes a file by `unlink`.
  public func removeFile(at path: String) throws(FileError) {
    try check(path, for: .removeFile)
    guard unlink(path) == 0 else { throw FileError(.removeFile, path: path, errorNumber: errno) }
  }

  /// Makes a directory by `mkdir`.
  public func createDirectory(at path: String) throws(FileError) {
    try check(path, for: .createDirectory)
    guard mkdir(path, 0o700) == 0 else { throw FileError(.createDirectory, path: path, errorNumber: errno) }
  }

  /// Makes the names in a directory durable by `fsync` of the directory (`F_FULLFSYNC` on Apple platforms).
  public func synchronizeDirectory(at path: String) throws(FileError) {
    try check(path, for: .synchronizeDirectory)
    let descriptor = posixOpen(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0)
    guard descriptor >= 0 else { throw FileError(.synchronizeDirectory, path: path, errorNumber: errno) }
    // Not `fdatasync`: it may leave out a new name that did not make the directory longer.
    #if canImport(Darwin)
    let result = fcntl(descriptor, F_FULLFSYNC)
    #else
    let result = fsync(descriptor)
    #endif
    let errorNumber = errno
    posixClose(descriptor)
    guard result == 0 else { throw FileError(.synchronizeDirectory, path: path, errorNumber: errorNumber) }
  }

  /// Lists a directory by `readdir`; a name that is not UTF-8 shows replacement characters.
  public func contentsOfDirectory(at path: String) throws(FileError) -> [String] {
    try check(path, for: .contentsOfDirectory)
    guard let directory = opendir(path) else {
      throw FileError(.contentsOfDirectory, path: path, errorNumber: errno)
    }
    defer { closedir(directory) }
    var names: [String] = []
    while true {
      // `readdir` tells its end from a failure only by `errno`.
      errno = 0
      guard let entry = readdir(directory) else { break }
      let name = withUnsafeBytes(of: entry.pointee.d_name) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
      if name != ".", name != ".." { names.append(name) }
    }
    guard errno == 0 else { throw FileError(.contentsOfDirectory, path: path, errorNumber: errno) }
    return names
  }

  /// Looks at a path by `stat`.
  public func attributes(at path: String) throws(FileError) -> FileAttributes? {
    try check(path, for: .attributes)
    var status = stat()
    guard stat(path, &status) == 0 else {
      if errno == ENOENT { return nil }
      throw FileError(.attributes, path: path, errorNumber: errno)
    }
    return FileAttributes(status)
  }

  /// Resolves a path by `realpath`, and by `readlink` where it leads to nothing yet.
  public func canonicalPath(of path: String) throws(FileError) -> String {
    try check(path, for: .canonicalPath)
    var path = path
    // As many links as the kernel itself follows.
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
      guard let destination = try destination(ofSymbolicLink: missing) else { return missing }
      path =
        destination.utf8.first == UInt8(ascii: "/") ? destination : FilePaths.join(String(cString: parent), destination)
    }
    throw FileError(.canonicalPath, path: path, errorNumber: ELOOP)
  }

  /// Refuses a path with a NUL, behind which the system would not look.
  private func check(_ path: String, for operation: FileError.Operation) throws(FileError) {
    guard path.utf8.contains(0) else { return }
    throw FileError(operation, path: path, errorNumber: EINVAL)
  }

  /// Where a symbolic link leads, or `nil` where nothing stands at the path.
  private func destination(ofSymbolicLink path: String) throws(FileError) -> String? {
    var buffer = [CChar](repeating: 0, count: Int(PATH_MAX))
    let count = readlink(path, &buffer, buffer.count)
    guard count >= 0 else {
      if errno == ENOENT { return nil }
      throw FileError(.canonicalPath, path: path, errorNumber: errno)
    }
    return String(decoding: buffer.prefix(count).lazy.map(UInt8.init(bitPattern:)), as: UTF8.self)
  }
}

// Inside the types above and below, the plain names mean their own methods.

private func posixOpen(_ path: String, _ flags: Int32, _ permissions: mode_t) -> Int32 {
  open(path, flags, permissions)
}

private func posixRename(_ path: String, _ newPath: String) -> Int32 {
  rename(path, newPath)
}

private func posixClose(_ descriptor: Int32) {
  close(descriptor)
}
