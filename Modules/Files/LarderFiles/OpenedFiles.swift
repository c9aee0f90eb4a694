/// The files that a store has open, identified by path, device and inode, to detect when another file takes their
/// place.
///
/// A store compares them with the files at the paths before each write and when it closes. Each file must stay open as
/// long as it is listed, because otherwise another file could get its inode.
///
/// ```swift
/// var opened = OpenedFiles()
/// opened.note(try lock.identity(), at: path + ".lock", as: .lock)
/// …
/// guard try opened.firstMismatch(in: fileSystem) == nil else { throw conflict }
/// ```
public struct OpenedFiles: Sendable {
  /// The role of a file in the store.
  public enum Role: Sendable, Hashable {
    /// The file holds data, or is a folder of files that do.
    case data
    /// The file is a lock file. A different one at its path may have another owner.
    case lock
  }

  /// A path that no longer leads to the file that was opened.
  public struct Mismatch: Sendable, Hashable, CustomStringConvertible {
    /// The path.
    public var path: String
    /// The role of the file.
    public var role: Role
    /// A Boolean value that indicates whether nothing is at the path.
    public var isMissing: Bool

    /// The event, as the beginning of a sentence.
    public var description: String { "\(path) was \(isMissing ? "moved or removed" : "replaced")" }
  }

  private var files: [(path: String, role: Role, identity: FileAttributes.Identity)] = []

  /// Creates an empty list.
  public init() {}

  /// Adds a file, replacing any other file at the same path.
  ///
  /// - Parameters:
  ///   - identity: The device and inode of the open file.
  ///   - path: The path of the file, without symbolic links.
  ///   - role: The role of the file in the store.
  public mutating func note(_ identity: FileAttributes.Identity, at path: String, as role: Role) {
    forget(path)
    files.append((path, role, identity))
  }

  /// Removes a file from the list, after the store itself has removed the file.
  ///
  /// - Parameter path: The path of the file.
  public mutating func forget(_ path: String) {
    files.removeAll { $0.path.utf8.elementsEqual(path.utf8) }
  }

  /// Returns the first file that is no longer at its path, or `nil` if all files are in place.
  ///
  /// This takes one system call for each file.
  ///
  /// - Parameter fileSystem: The file system.
  /// - Throws: ``FileError``.
  public func firstMismatch(in fileSystem: some StoreFileSystem) throws(FileError) -> Mismatch? {
    for file in files {
      let identity = try fileSystem.identity(at: file.path)
      if identity != file.identity {
        return Mismatch(path: file.path, role: file.role, isMissing: identity == nil)
      }
    }
    return nil
  }
}
