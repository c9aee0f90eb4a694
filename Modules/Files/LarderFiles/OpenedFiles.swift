/// The files that a store has open, by path, device and inode: what tells a file from another that took its place.
///
/// A store compares them with what is at the paths before each write and when it closes. Each file must stay open as long
/// as it is noted: only then can no other file get its inode.
///
/// ```swift
/// var opened = OpenedFiles()
/// opened.note(try lock.identity(), at: path + ".lock", as: .lock)
/// …
/// guard try opened.firstMismatch(in: fileSystem) == nil else { throw conflict }
/// ```
public struct OpenedFiles: Sendable {
  /// What a file is to the store.
  public enum Role: Sendable, Hashable {
    /// It holds data, or is the folder of files that do.
    case data
    /// It is a lock: another one at its path may have another owner.
    case lock
  }

  /// A path at which another file is than the one that was opened.
  public struct Mismatch: Sendable, Hashable {
    /// The path.
    public var path: String
    /// What the file was to the store.
    public var role: Role
    /// Whether nothing is at the path.
    public var isMissing: Bool
  }

  private struct File: Sendable {
    var path: String
    var role: Role
    var identity: FileAttributes.Identity
  }

  private var files: [File] = []

  /// Creates an empty list.
  public init() {}

  /// Notes a file, in place of any other at the same path.
  ///
  /// - Parameters:
  ///   - identity: The device and the inode of the file that is open.
  ///   - path: Its path, without symbolic links.
  ///   - role: What it is to the store.
  public mutating func note(_ identity: FileAttributes.Identity, at path: String, as role: Role) {
    forget(path)
    files.append(File(path: path, role: role, identity: identity))
  }

  /// Forgets a file that the store itself removed.
  ///
  /// - Parameter path: Its path.
  public mutating func forget(_ path: String) {
    files.removeAll { $0.path.utf8.elementsEqual(path.utf8) }
  }

  /// Returns the first file that is not at its path any more, or `nil` if all are; one call of the system for each.
  ///
  /// - Parameter fileSystem: The file system.
  /// - Throws: ``FileError``.
  public func firstMismatch(in fileSystem: some FileSystem) throws(FileError) -> Mismatch? {
    for file in files {
      let identity = try fileSystem.identity(at: file.path)
      if identity != file.identity {
        return Mismatch(path: file.path, role: file.role, isMissing: identity == nil)
      }
    }
    return nil
  }
}
