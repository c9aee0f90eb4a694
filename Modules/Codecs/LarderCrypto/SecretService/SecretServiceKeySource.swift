#if Crypto
import Foundation
import LarderFiles

/// A key source in the user's keyring on Linux, such as GNOME Keyring, KWallet or KeePassXC, through the Secret Service.
///
/// ```swift
/// let ring = try await KeyRing.open(
///   in: .secretService(application: "Notes", name: "notes"), createsIfMissing: isFirstStart)
/// ```
///
/// The keys are one item. The program `secret-tool` (Debian's `libsecret-tools`) prints it:
///
/// ```text
/// secret-tool lookup xdg:schema larder.KeyRing application Notes name notes
/// ```
///
/// **Locked keyrings.** ``load()`` returns `nil` only if the service has no such item and all of its keyrings are unlocked.
/// If the item is in a locked keyring, the service may ask the user for the password. If the keyring stays locked, the
/// error is `unavailable`.
///
/// **Several processes.** The Secret Service cannot compare and replace an item in one step. ``save(_:replacing:)``
/// therefore compares it while it holds a lock file in `XDG_RUNTIME_DIR`, which protects from all processes of the user
/// that save with this type, in any application. It does not protect from other programs that change the item at this
/// moment.
///
/// **Durability.** The service saves the item. GNOME Keyring writes it to its file before it answers.
///
/// The library libsecret is loaded when the source is first used. Nothing is needed to build a program. To run it, install
/// the Debian package `libsecret-1-0`. The calls run outside the cooperative pool.
public struct SecretServiceKeySource: KeySource {
  /// The maximum size of an item, in bytes.
  static let maximumSize = 1 << 20

  /// The value of the attribute `xdg:schema` of all items.
  private static let schema = "larder.KeyRing"

  /// The calls of all sources run one after the other, because they share the connection to the session bus.
  private static let executor = DispatchQueueExecutor(label: "Larder.SecretService")

  private let application: String
  private let name: String
  private let clock: any Clock<Duration>

  init(application: String, name: String, clock: any Clock<Duration> = ContinuousClock()) {
    self.application = application
    self.name = name
    self.clock = clock
  }

  /// Returns the secret of the item.
  ///
  /// - Returns: The content, or `nil` if the service has no such item and no keyring is locked.
  /// - Throws: `KeyRingError`: `unavailable` if there is no session bus or no service, a keyring is locked, or the
  ///   service does not answer; `unsupported` if libsecret is not installed; `notPermitted` if the service refuses the
  ///   program; `corrupted` if there are several such items; `invalidArgument` if the application or the name is empty.
  public func load() async throws -> [UInt8]? {
    try await SecretServiceKeySource.executor.run { try connection().load() }
  }

  /// Replaces the secret of the item in place, or creates the item in the default keyring.
  ///
  /// - Parameters:
  ///   - content: The new content.
  ///   - previous: The content that ``load()`` returned, or `nil`.
  /// - Throws: `KeyRingError`: `changed` if the item has another secret than the previous one; `unavailable` also if
  ///   `XDG_RUNTIME_DIR` is not set or names no folder, or another process does not release the lock for 30 s; `full`
  ///   if the content has more than 1 MiB; the errors of ``load()``.
  public func save(_ content: [UInt8], replacing previous: [UInt8]?) async throws {
    guard content.count <= SecretServiceKeySource.maximumSize else {
      throw KeyRingError(.full, message: "an item can have at most \(SecretServiceKeySource.maximumSize) bytes")
    }
    let lockPath = try lockPath
    try await KeySourceLock.retry("the keyring", clock: clock) {
      try await SecretServiceKeySource.executor.run {
        guard let lock = try lock(lockPath) else { return false }
        let connection = try connection()
        guard try connection.load() == previous else {
          throw KeyRingError(.changed, message: "the item was changed by another process; load it again")
        }
        try connection.save(content, label: "Encryption keys of \(application) (\(name))")
        try lock.release()
        return true
      }
    }
  }

  private func connection() throws(KeyRingError) -> SecretServiceConnection {
    for (argument, text) in [("application", application), ("name", name)] where text.isEmpty || text.contains("\0") {
      throw KeyRingError(.invalidArgument, message: "\(argument) must not be empty and must not have a NUL character")
    }
    return try SecretServiceConnection(attributes: [
      ("xdg:schema", SecretServiceKeySource.schema), ("application", application), ("name", name),
    ])
  }

  private func lock(_ path: String) throws(KeyRingError) -> FileLock? {
    do throws(FileError) {
      return try FileLock.acquire(path, in: POSIXFileSystem())
    } catch {
      throw KeyRingError(.unavailable, message: "the lock file \(path) cannot be created", underlying: error)
    }
  }

  private var lockPath: String {
    get throws(KeyRingError) {
      guard let folder = ProcessInfo.processInfo.environment["XDG_RUNTIME_DIR"], folder.hasPrefix("/") else {
        throw KeyRingError(
          .unavailable,
          message:
            "XDG_RUNTIME_DIR is not set, so the keys cannot be protected from other processes; set it to a folder "
            + "of this user")
      }
      return folder + "/larder-secret-service.lock"
    }
  }
}

extension SecretServiceKeySource: CustomStringConvertible {
  /// The application and the name.
  public var description: String { "secret-service:\(application)/\(name)" }
}

extension KeySource where Self == SecretServiceKeySource {
  /// The user's keyring on Linux; see ``SecretServiceKeySource``.
  ///
  /// ```swift
  /// let ring = try await KeyRing.open(
  ///   in: .secretService(application: "Notes", name: "notes"), createsIfMissing: isFirstStart)
  /// ```
  ///
  /// - Parameters:
  ///   - application: The name of the application. It must not be empty. Programs with the same name share keys.
  ///   - name: The name of the ring within the application. It must not be empty.
  public static func secretService(application: String, name: String) -> SecretServiceKeySource {
    SecretServiceKeySource(application: application, name: name)
  }
}
#endif
