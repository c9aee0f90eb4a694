#if Crypto
import Foundation
import LarderFiles

/// The file of a key source, which only its owner can read, and which is replaced as a whole and durably by one process at
/// a time.
struct KeyFile: Sendable {
  /// The path of the file.
  let path: String

  private let fileSystem: any StoreFileSystem
  private let user: UInt32
  private let clock: any Clock<Duration>

  /// A queue, because files block, and deriving a key from a password takes long.
  private let executor = DispatchQueueExecutor(label: "Larder.KeyFile")

  /// Creates a description of a file that need not exist.
  ///
  /// - Parameters:
  ///   - path: The path.
  ///   - fileSystem: The file system of the file.
  ///   - user: The user to whom the file must belong. Defaults to the effective user of the process.
  ///   - clock: The clock that measures the wait for the lock. Defaults to the continuous clock.
  init(
    path: String, in fileSystem: some StoreFileSystem, user: UInt32 = geteuid(),
    clock: any Clock<Duration> = ContinuousClock()
  ) {
    self.path = path
    self.fileSystem = fileSystem
    self.user = user
    self.clock = clock
  }

  /// Reads the file.
  ///
  /// - Parameter body: A closure that converts the content of the file. It runs outside the cooperative pool.
  /// - Returns: The result of `body`, or `nil` if the folder of the file exists and has no such file.
  /// - Throws: ``KeyRingError``: `notPermitted` if the file is not a regular file, belongs to another user, or gives
  ///   permissions to other users; `unavailable` if its folder does not exist; `corrupted` if it is too large;
  ///   `ioFailed`. The error that `body` throws.
  func read<Result: Sendable>(_ body: @escaping @Sendable ([UInt8]) throws -> Result) async throws -> Result? {
    try await executor.run {
      try reportingFileErrors(message: "the key file cannot be read") {
        let path = try fileSystem.canonicalPath(of: path)
        try removeLeftovers(of: path)
        return try content(at: path).map(body)
      }
    }
  }

  /// Replaces the content of the file, while no other process can change it.
  ///
  /// - Parameter body: A closure that receives the content, or `nil` if the file is missing, and returns the new
  ///   content. It runs outside the cooperative pool.
  /// - Throws: ``KeyRingError``: `unavailable` if another process holds the lock for 30 s; `readOnly` if the file system
  ///   is read-only; `full` if the new content is too large; the errors of ``read(_:)``. After `ioFailed`, the file may
  ///   have the new content. The error that `body` throws, and then the file is unchanged.
  func replace(_ body: @escaping @Sendable (_ current: [UInt8]?) throws -> [UInt8]) async throws {
    try await KeySourceLock.retry(path, clock: clock) {
      try await executor.run {
        try reportingFileErrors(message: "the key file cannot be written") { try replaceIfUnlocked(body) }
      }
    }
  }

  /// Replaces the content, or returns `false` if another process has the lock.
  private func replaceIfUnlocked(_ body: (_ current: [UInt8]?) throws -> [UInt8]) throws -> Bool {
    let path = try fileSystem.canonicalPath(of: path)
    guard let lock = try FileLock.acquire(path + ".lock", in: fileSystem) else { return false }
    // A temporary file that a crash has left behind contains keys.
    try fileSystem.removeStaleTemporaryFiles(of: path)
    let new = try body(content(at: path))
    guard new.count <= RingDocument.maximumSize else {
      throw KeyRingError(.full, message: "a key file can have at most \(RingDocument.maximumSize) bytes")
    }
    try fileSystem.replaceFile(at: path) { try $0.write(new) }
    try lock.release()
    return true
  }

  /// Removes the temporary files that crashed processes left beside the file, because they contain keys.
  ///
  /// If another process has the lock, or the folder cannot be written, they stay until the next call.
  private func removeLeftovers(of path: String) throws(FileError) {
    let (folder, name) = FilePaths.split(path)
    let prefix = Array((name + POSIXFileSystem.temporaryMark).utf8)
    do {
      // Without a leftover, a reader need not lock the file.
      guard try fileSystem.contentsOfDirectory(at: folder).contains(where: { $0.utf8.starts(with: prefix) }),
        let lock = try FileLock.acquire(path + ".lock", in: fileSystem)
      else { return }
      try fileSystem.removeStaleTemporaryFiles(of: path)
      try lock.release()
    } catch {
      // The file itself may be readable, and reading it reports a missing folder.
      guard [EACCES, EPERM, EROFS, ENOENT, ENOTDIR].contains(error.errorNumber) else { throw error }
    }
  }

  /// Returns the content of the file at a canonical path, or `nil` if there isn't one.
  private func content(at path: String) throws -> [UInt8]? {
    guard try fileSystem.attributes(at: path) != nil else { return nil }
    let file = try fileSystem.open(path, .read)
    // The attributes of the open file, which no other process can exchange.
    let attributes = try file.attributes()
    func refusal(_ problem: String) -> KeyRingError {
      KeyRingError(.notPermitted, message: "the key file \(path) \(problem)")
    }
    guard attributes.kind == .file else { throw refusal("is not a regular file") }
    let mounted = "if a container mounts it as a secret, use a mounted secret as the key source"
    guard attributes.owner.user == user else {
      throw refusal(
        "belongs to the user \(attributes.owner.user); it must belong to the user \(user) of this process; \(mounted)")
    }
    guard attributes.permissions & 0o777 & ~0o600 == 0 else {
      let permissions = String(attributes.permissions & 0o777, radix: 8)
      throw refusal("has the permissions 0\(permissions); run: chmod 600 \(path), or, \(mounted)")
    }
    guard attributes.linkCount <= 1 else {
      throw refusal(
        "has \(attributes.linkCount) hard links; only files with one are supported, because a change would replace one "
          + "of them; copy the file instead")
    }
    guard attributes.size <= Int64(RingDocument.maximumSize) else {
      throw KeyRingError(.corrupted, message: "the key file \(path) has more than \(RingDocument.maximumSize) bytes")
    }
    let content = try file.readAll(from: 0, upTo: attributes.size)
    try file.close()
    return content
  }

  private func reportingFileErrors<Result>(message: String, _ body: () throws -> Result) throws -> Result {
    do {
      return try body()
    } catch let error as FileError {
      throw KeyRingError(error, message: message)
    }
  }
}

/// The wait for the lock file of a key source, which a process holds while it compares the content and replaces it.
public enum KeySourceLock {
  /// The number of attempts, and the time between two of them.
  ///
  /// A holder may have to derive two keys from a password, or wait for a person.
  private static let wait: (attempts: Int, interval: Duration) = (3000, .milliseconds(10))

  /// Runs a closure until it has acquired the lock.
  ///
  /// - Parameters:
  ///   - name: The name of the source, for the error.
  ///   - clock: The clock that measures the wait.
  ///   - attempt: A closure that returns whether it acquired the lock and has done its work.
  /// - Throws: ``KeyRingError`` with `unavailable` after 30 s; the error that `attempt` throws; `CancellationError` if the
  ///   task is cancelled between two attempts.
  public static func retry(
    _ name: String, clock: any Clock<Duration>, _ attempt: () async throws -> Bool
  ) async throws {
    for _ in 0..<wait.attempts {
      guard try await !attempt() else { return }
      try await clock.sleep(for: wait.interval)
    }
    throw KeyRingError(.unavailable, message: "\(name) is locked by another process; try again later")
  }
}

extension KeyRingError {
  /// Creates an error from a failed file system call.
  init(_ error: FileError, message: String) {
    let code: Code =
      switch error.errorNumber {
      case EACCES, EPERM: .notPermitted
      case EROFS: .readOnly
      case ENOENT, ENOTDIR: .unavailable
      default: .ioFailed
      }
    let isFolderMissing = code == .unavailable
    self.init(
      code, message: isFolderMissing ? "\(message), because its folder does not exist" : message, underlying: error)
  }
}
#endif
