import Foundation

/// The file system operations that stores use.
///
/// Tests can substitute another file system for the real one.
///
/// Each operation corresponds to one POSIX call. The operations block, so don't call them on the cooperative pool. They
/// may fail with EINTR, and a read or write may process fewer bytes than requested. The methods of the extensions retry
/// in these cases.
///
/// Paths are operating system paths. A relative path starts at the working directory.
///
/// ```swift
/// func save(_ text: String, at path: String, in fileSystem: some StoreFileSystem) throws {
///   guard let lock = try FileLock.acquire(path + ".lock", in: fileSystem) else { throw InUse() }
///   // Writes a temporary file, synchronizes it and renames it. A crash leaves the old file or the new one.
///   let result = Result { try fileSystem.replaceFile(at: path) { try $0.write(Array(text.utf8)) } }
///   try lock.release()
///   try result.get()
/// }
/// ```
public protocol StoreFileSystem: Sendable {
  /// Opens a file.
  ///
  /// - Parameters:
  ///   - path: The path of the file.
  ///   - mode: The mode to open it in. A new file has permissions 0600.
  func open(_ path: String, _ mode: FileOpenMode) throws(FileError) -> any OpenStoreFile

  /// Renames a file, replacing any existing file at the new path.
  ///
  /// The new path always leads to a complete file, either the old one or the new one. The rename is durable when
  /// ``synchronizeDirectory(at:)`` has returned.
  func rename(_ path: String, to newPath: String) throws(FileError)

  /// Renames a file or folder, unless something exists at the new path.
  ///
  /// The default implementation looks before it renames. A file system may be able to do both in one step.
  ///
  /// - Throws: ``FileError``, with `EEXIST` or `ENOTEMPTY` if something exists at the new path.
  func renameExclusively(_ path: String, to newPath: String, isFolder: Bool) throws(FileError)

  /// Removes a file or an empty directory.
  ///
  /// The removal is durable when ``synchronizeDirectory(at:)`` has returned.
  func removeFile(at path: String) throws(FileError)

  /// Creates a directory with permissions 0700 in an existing directory.
  func createDirectory(at path: String) throws(FileError)

  /// Flushes creations, renames and removals in a directory to disk.
  func synchronizeDirectory(at path: String) throws(FileError)

  /// Returns the names in a directory, without "." and "..", in any order.
  func contentsOfDirectory(at path: String) throws(FileError) -> [String]

  /// Returns the attributes of the item at a path, or `nil` if there isn't one. Symbolic links are followed.
  func attributes(at path: String) throws(FileError) -> FileAttributes?

  /// Returns the attributes of the item at a path, or `nil` if there isn't one. A symbolic link is not followed, and
  /// has the kind ``FileAttributes/Kind/other``.
  ///
  /// The default implementation returns ``attributes(at:)``, for a file system without symbolic links.
  func attributesWithoutFollowing(at path: String) throws(FileError) -> FileAttributes?

  /// Returns the identity of the item at a path, or `nil` if there isn't one. Symbolic links are followed.
  ///
  /// The default implementation returns the identity in ``attributes(at:)``. A file system may have a faster
  /// implementation.
  func identity(at path: String) throws(FileError) -> FileAttributes.Identity?

  /// Returns whether a file is a mount point and therefore cannot be replaced, as with single files in containers.
  ///
  /// Returns `false` if the operating system provides no such information.
  func isMountPoint(at path: String) throws(FileError) -> Bool

  /// Returns the absolute path of the item at a path, with all symbolic links resolved.
  ///
  /// The last component need not exist. If it is a symbolic link to a missing item, the result is the destination of
  /// that link.
  func canonicalPath(of path: String) throws(FileError) -> String
}

extension StoreFileSystem {
  /// Returns ``attributes(at:)``.
  public func attributesWithoutFollowing(at path: String) throws(FileError) -> FileAttributes? {
    try attributes(at: path)
  }

  /// Returns the identity in ``attributes(at:)``.
  public func identity(at path: String) throws(FileError) -> FileAttributes.Identity? {
    try attributes(at: path)?.identity
  }

  /// Renames a file or folder if ``attributes(at:)`` finds nothing at the new path.
  public func renameExclusively(_ path: String, to newPath: String, isFolder: Bool) throws(FileError) {
    guard try attributes(at: newPath) == nil else { throw FileError(.rename, path: newPath, errorNumber: EEXIST) }
    try rename(path, to: newPath)
  }
}

/// The mode in which a file is opened.
public enum FileOpenMode: Sendable, Hashable {
  /// Reading. The file must exist.
  case read
  /// Reading and writing. The file must exist.
  case readWrite
  /// Reading and writing. The file is created if it is missing.
  case createIfMissing
  /// Reading and writing. The file must not exist and is created.
  case createNew
}

/// The attributes of a file.
public struct FileAttributes: Sendable, Hashable {
  /// The kinds of items at a path.
  public enum Kind: Sendable, Hashable {
    /// A regular file.
    case file
    /// A directory.
    case directory
    /// Any other item, such as a device or a socket.
    case other
  }

  /// The kind of the item.
  public var kind: Kind

  /// The size of the content in bytes.
  public var size: Int64

  /// The time of the last change of the content, in nanoseconds since 1 January 1970, UTC.
  public var modificationTime: Int64

  /// The permission bits, such as 0o600.
  public var permissions: UInt32

  /// The number of hard links.
  public var linkCount: Int

  /// The user and the group that own the file.
  public var owner: Owner

  /// The device and inode of the file.
  ///
  /// Two paths lead to the same file if their identities are equal.
  public var identity: Identity

  /// The user and the group that own a file.
  public struct Owner: Sendable, Hashable {
    /// The user id.
    public var user: UInt32

    /// The group id.
    public var group: UInt32

    /// Creates an owner.
    ///
    /// - Parameters:
    ///   - user: The user id.
    ///   - group: The group id.
    public init(user: UInt32, group: UInt32) {
      self.user = user
      self.group = group
    }
  }

  /// The device and inode of a file.
  public struct Identity: Sendable, Hashable {
    /// The device number.
    public var device: UInt64

    /// The inode number of the file on the device.
    public var inode: UInt64

    /// Creates an identity.
    public init(device: UInt64, inode: UInt64) {
      self.device = device
      self.inode = inode
    }
  }

  /// Creates attributes.
  public init(
    kind: Kind, size: Int64, modificationTime: Int64, permissions: UInt32, owner: Owner, linkCount: Int,
    identity: Identity
  ) {
    self.kind = kind
    self.size = size
    self.modificationTime = modificationTime
    self.permissions = permissions
    self.owner = owner
    self.linkCount = linkCount
    self.identity = identity
  }
}

/// Functions that split and join paths byte by byte, as the operating system does: a combining character after a slash
/// does not change the slash.
///
/// ```swift
/// let (directory, name) = FilePaths.split("/var/lib/app/users.json")
/// let backup = FilePaths.join(directory, name + ".backup")
/// ```
public enum FilePaths {
  private static let slash = UInt8(ascii: "/")

  /// Returns the directory and the last component of a path.
  ///
  /// The directory of a bare name is ".".
  public static func split(_ path: String) -> (directory: String, name: String) {
    var trimmed = Array(path.utf8)[...]
    while trimmed.count > 1, trimmed.last == slash { trimmed.removeLast() }
    guard let slash = trimmed.lastIndex(of: slash) else { return (".", String(decoding: trimmed, as: UTF8.self)) }
    let directory = trimmed[..<slash]
    let name = String(decoding: trimmed[(slash + 1)...], as: UTF8.self)
    return (directory.isEmpty ? "/" : String(decoding: directory, as: UTF8.self), name)
  }

  /// Returns the path of a name in a directory.
  public static func join(_ directory: String, _ name: String) -> String {
    directory.utf8.last == slash ? directory + name : "\(directory)/\(name)"
  }
}
