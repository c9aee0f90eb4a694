/// A lock that keeps every other process, and every other object in this one, from the same file.
///
/// It is a file of its own beside what it guards, since a file that is replaced takes its lock with it. The kernel ends
/// the lock when the process dies, however it dies. The file stays, empty; to remove it would let two owners in.
public struct FileLock: Sendable {
  private let file: any OpenFile

  private init(file: any OpenFile) {
    self.file = file
  }

  /// Takes a lock without waiting.
  ///
  /// - Parameters:
  ///   - path: The file of the lock; it is created where it is missing.
  ///   - fileSystem: Where it is.
  /// - Returns: The lock, or `nil` where another has it.
  /// - Throws: ``FileError``.
  public static func acquire(_ path: String, in fileSystem: some FileSystem) throws(FileError) -> FileLock? {
    let file = try fileSystem.open(path, .createIfMissing)
    return try file.lockExclusively() ? FileLock(file: file) : nil
  }

  /// Whether the file of the lock still has a name; without one, another can take a lock of the same name.
  ///
  /// Its getter throws ``FileError``.
  public var isInPlace: Bool {
    get throws(FileError) {
      try file.attributes().linkCount > 0
    }
  }

  /// Gives the lock back; otherwise it ends with the last copy of this value.
  ///
  /// - Throws: ``FileError``.
  public func release() throws(FileError) {
    try file.close()
  }
}
