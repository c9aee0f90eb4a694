import CFileIdentity

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

  /// Removes a file by `unlink`, or an empty directory by `rmdir`.
  public func removeFile(at path: String) throws(FileError) {
    try check(path, for: .removeFile)
    guard unlink(path) != 0 else { return }
    // The second is what other systems than Linux say of a directory, and what they all say of much else.
    let errorNumber = errno
    guard errorNumber == EISDIR || errorNumber == EPERM, rmdir(path) == 0 else {
      throw FileError(.removeFile, path: path, errorNumber: errno == ENOTDIR ? errorNumber : errno)
    }
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
    // Names are read where they lie. An entry may be shorter than its declaration: a copy of one that stands at the end of
    // its memory would read behind it.
    guard let nameOffset = MemoryLayout<dirent>.offset(of: \.d_name) else {
      throw FileError(.contentsOfDirectory, path: path, errorNumber: ENOTSUP)
    }
    var names: [String] = []
    while true {
      // `readdir` tells its end from a failure only by `errno`.
      errno = 0
      guard let entry = readdir(directory) else { break }
      let name = String(cString: UnsafeRawPointer(entry).advanced(by: nameOffset).assumingMemoryBound(to: CChar.self))
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

  /// Looks at a path by `statx`, where there is one: `stat` would make the next synchronization of the file slower.
  public func identity(at path: String) throws(FileError) -> FileAttributes.Identity? {
    try check(path, for: .attributes)
    var identity = FileAttributes.Identity(device: 0, inode: 0)
    guard larder_file_identity(path, &identity.device, &identity.inode) == 0 else {
      if errno == ENOENT { return nil }
      throw FileError(.attributes, path: path, errorNumber: errno)
    }
    return identity
  }

  /// Looks for the path in `/proc/self/mountinfo` on Linux; elsewhere nothing can be mounted on a file.
  ///
  /// Source of the format: proc(5) of the Linux man-pages. The fifth field is the mount point, in which a space, a tab, a
  /// line feed and a backslash stand as a backslash and three octal digits.
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
  /// The mounts that the process sees, or `nil` if the system shows none.
  private func mountTable() throws(FileError) -> [UInt8]? {
    let path = "/proc/self/mountinfo"
    do throws(FileError) {
      // Its size reads as 0, so it is read piece by piece until there is no more.
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
      switch try target(of: missing) {
      case .nothing: return missing
      // Another process created it since `realpath` looked.
      case .existing: path = missing
      case .link(let destination):
        path =
          destination.utf8.first == UInt8(ascii: "/")
          ? destination : FilePaths.join(String(cString: parent), destination)
      }
    }
    throw FileError(.canonicalPath, path: path, errorNumber: ELOOP)
  }

  /// Refuses a path with a NUL, behind which the system would not look.
  private func check(_ path: String, for operation: FileError.Operation) throws(FileError) {
    guard path.utf8.contains(0) else { return }
    throw FileError(operation, path: path, errorNumber: EINVAL)
  }

  /// What stands at a path, itself and not what it leads to.
  private enum Target {
    case nothing
    case existing
    case link(destination: String)
  }

  private func target(of path: String) throws(FileError) -> Target {
    var buffer = [CChar](repeating: 0, count: Int(PATH_MAX))
    let count = readlink(path, &buffer, buffer.count)
    guard count >= 0 else {
      switch errno {
      case ENOENT: return .nothing
      case EINVAL: return .existing
      default: throw FileError(.canonicalPath, path: path, errorNumber: errno)
      }
    }
    return .link(destination: String(decoding: buffer.prefix(count).lazy.map(UInt8.init(bitPattern:)), as: UTF8.self))
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
