#if Crypto
import Foundation
public import LarderFiles

/// A file that keeps a key ring unencrypted, readable only by its owner.
///
/// ```swift
/// let ring = try await KeyRing.open(in: .file("/var/lib/app/keys.json"), createsIfMissing: true)
/// ```
///
/// The file must be a regular file that belongs to the effective user of the process, and no other user may have any
/// permission for it. It must have a single hard link. For a file that a container mounts as a secret, which has other
/// permissions, use ``MountedSecretKeySource``. New files have permissions 0600. A reader of the file can decrypt every value, so keep it
/// out of the backups of the stores.
///
/// The file is replaced as a whole and durably. A lock file beside it, with the suffix `.lock`, keeps the changes of
/// several processes apart. If the path is a symbolic link, the file that it leads to is used and replaced.
public struct FileKeySource: KeySource {
  private let file: KeyFile

  /// The path of the file.
  public var path: String { file.path }

  /// Creates a source.
  ///
  /// - Parameter path: The path of the file. It need not exist. Its folder must exist.
  public init(path: String) {
    self.init(path: path, fileSystem: POSIXFileSystem())
  }

  /// Creates a key source for a file, with the dependencies that a test replaces.
  ///
  /// - Parameters:
  ///   - path: The path of the file. It need not exist. Its folder must exist.
  ///   - fileSystem: The file system that has the file.
  ///   - user: The user who must own the file. Defaults to `nil`, for the effective user of the
  ///     process.
  ///   - clock: The clock that measures the wait for the lock of the file. Defaults to a `ContinuousClock`.
  public init(
    path: String, fileSystem: some StoreFileSystem, user: UInt32? = nil, clock: any Clock<Duration> = ContinuousClock()
  ) {
    file = KeyFile(path: path, in: fileSystem, user: user ?? geteuid(), clock: clock)
  }

  /// Returns the content of the file, or `nil` if its folder exists and has no such file.
  ///
  /// Temporary files with keys, which a process that was killed during a change may have left, are removed.
  ///
  /// - Throws: ``KeyRingError``: `notPermitted` if the file is not a regular file, belongs to another user, has several
  ///   hard links, or gives permissions to other users; `unavailable` if its folder does not exist; `corrupted` if the file has more than
  ///   1 MiB; `ioFailed`.
  public func load() async throws -> [UInt8]? {
    try await file.read { $0 }
  }

  /// Replaces the content of the file durably.
  ///
  /// - Throws: ``KeyRingError``: `changed` if the file has another content than the previous one; `readOnly` if the file
  ///   system is read-only; `unavailable` if another process holds the lock for 30 s; `full` if the content has more
  ///   than 1 MiB; the errors of ``load()``. After `ioFailed`, the file may have the new content.
  public func save(_ content: [UInt8], replacing previous: [UInt8]?) async throws {
    try await file.replace { [path] current in
      guard current == previous else {
        throw KeyRingError(.changed, message: "the key file \(path) was changed by something else")
      }
      return content
    }
  }
}

extension KeySource where Self == FileKeySource {
  /// A file that keeps a key ring unencrypted, readable only by its owner; see ``FileKeySource``.
  ///
  /// - Parameter path: The path of the file. It need not exist. Its folder must exist.
  public static func file(_ path: String) -> FileKeySource { FileKeySource(path: path) }
}
#endif
