#if Crypto
import Foundation
import LarderFiles

/// A credential that systemd passes to a service, for example from an encrypted file or a TPM.
///
/// ```
/// [Service]
/// LoadCredentialEncrypted=keys:/etc/app/keys.cred
/// ```
///
/// ```swift
/// let ring = try await KeyRing.open(in: .systemdCredential("keys"))
/// ```
///
/// The credential is a file in the folder that the environment variable `CREDENTIALS_DIRECTORY` names. Its content is a
/// key ring, as in a file of ``FileKeySource``. It cannot be changed from within the service.
public struct SystemdCredentialKeySource: KeySource {
  /// The name of the credential.
  public let name: String

  private let folder: String?

  /// Creates a source.
  ///
  /// - Parameter name: The name of the credential.
  public init(name: String) {
    self.init(name: name, folder: ProcessInfo.processInfo.environment["CREDENTIALS_DIRECTORY"])
  }

  init(name: String, folder: String?) {
    self.name = name
    self.folder = folder
  }

  /// Returns the content of the credential.
  ///
  /// - Throws: ``KeyRingError``: `invalidArgument` if the name is not that of a file; `notFound` if systemd has not
  ///   passed the credential; `corrupted` if it has more than 1 MiB; `notPermitted`; `ioFailed`.
  public func load() async throws -> [UInt8]? {
    guard !name.isEmpty, !name.utf8.contains(UInt8(ascii: "/")), name != ".", name != ".." else {
      throw KeyRingError(.invalidArgument, message: "invalid credential name '\(name)': expected the name of a file")
    }
    guard let folder else {
      throw KeyRingError(
        .notFound,
        message:
          "the environment variable CREDENTIALS_DIRECTORY is not set; add LoadCredential=\(name):… to the service")
    }
    return try await DispatchQueueExecutor(label: "larder.keys").run {
      do {
        return try content(of: FilePaths.join(folder, name))
      } catch let error as FileError {
        throw KeyRingError(error, message: "the credential \(name) cannot be read")
      }
    }
  }

  private func content(of path: String) throws -> [UInt8] {
    guard let content = try SecretFile.content(of: path, "the credential \(name)") else {
      throw KeyRingError(
        .notFound, message: "systemd has not passed the credential \(name); add LoadCredential=\(name):… to the service"
      )
    }
    return content
  }

  /// Always throws ``KeyRingError`` with `readOnly`.
  public func save(_ content: [UInt8], replacing previous: [UInt8]?) async throws {
    throw KeyRingError(
      .readOnly,
      message: "a systemd credential cannot be changed by the service; change it where systemd loads it from")
  }
}

/// A file that a container platform mounts as a secret, such as `/run/secrets/keys`.
///
/// ```swift
/// let ring = try await KeyRing.open(in: .mountedSecret("/run/secrets/keys"))
/// ```
///
/// Docker, Podman and Kubernetes mount secrets as files of root that the process, and often every user of the container,
/// can read. Their owner and the permissions to read them are therefore not checked. A file that its group or other
/// users can write is refused. The secret cannot be changed from within the container. After you have changed it, the
/// platform may replace the file, and ``KeyRing/refresh()`` loads it.
public struct MountedSecretKeySource: KeySource {
  /// The path of the file.
  public let path: String

  /// Creates a source.
  ///
  /// - Parameter path: The path of the file.
  public init(path: String) {
    self.path = path
  }

  /// Returns the content of the file.
  ///
  /// - Throws: ``KeyRingError``: `notFound` if there is no such file; `notPermitted` if the process cannot read it, or its
  ///   group or other users can write it; `corrupted` if it is not a regular file of at most 1 MiB; `ioFailed`.
  public func load() async throws -> [UInt8]? {
    try await DispatchQueueExecutor(label: "larder.keys").run {
      do {
        guard let content = try SecretFile.content(of: path, "the secret \(path)", refusesOtherWriters: true) else {
          throw KeyRingError(.notFound, message: "there is no secret \(path); check how the container mounts it")
        }
        return content
      } catch let error as FileError {
        throw KeyRingError(error, message: "the secret \(path) cannot be read")
      }
    }
  }

  /// Always throws ``KeyRingError`` with `readOnly`.
  public func save(_ content: [UInt8], replacing previous: [UInt8]?) async throws {
    throw KeyRingError(
      .readOnly, message: "the secret \(path) cannot be changed from within the container; change it in the platform")
  }
}

/// A file with a key ring that something else keeps.
private enum SecretFile {
  /// Returns the content of a file, or `nil` if it is missing.
  ///
  /// - Parameters:
  ///   - path: The path.
  ///   - name: The name of the file for errors.
  ///   - refusesOtherWriters: A Boolean value that indicates whether a file that its group or other users can write is
  ///     refused. Defaults to `false`.
  static func content(of path: String, _ name: String, refusesOtherWriters: Bool = false) throws -> [UInt8]? {
    let fileSystem = POSIXFileSystem()
    guard let found = try fileSystem.attributes(at: path) else { return nil }
    func check(_ attributes: FileAttributes) throws {
      guard attributes.kind == .file, attributes.size <= Int64(RingDocument.maximumSize) else {
        throw KeyRingError(
          .corrupted, message: "\(name) is not a regular file of at most \(RingDocument.maximumSize) bytes")
      }
      guard !refusesOtherWriters || attributes.permissions & 0o022 == 0 else {
        throw KeyRingError(.notPermitted, message: "\(name) can be written by other users; mount it read-only")
      }
    }
    // Opening a pipe would wait.
    try check(found)
    let file = try fileSystem.open(path, .read)
    // The attributes of the open file, which no other process can exchange.
    let attributes = try file.attributes()
    try check(attributes)
    let content = try file.readAll(from: 0, upTo: attributes.size)
    try file.close()
    return content
  }
}

/// An environment variable that holds a key ring.
///
/// ```swift
/// let ring = try await KeyRing.open(in: .environment("APP_KEYS"))
/// ```
///
/// The value of the variable is the JSON text of a key ring. Child processes inherit it, and other processes of the same
/// user can read it, so prefer another source if there is one. It cannot be changed from within the process.
public struct EnvironmentKeySource: KeySource {
  /// The name of the variable.
  public let name: String

  private let read: @Sendable (String) -> String?

  /// Creates a source.
  ///
  /// - Parameter name: The name of the variable.
  public init(name: String) {
    self.init(name: name) { ProcessInfo.processInfo.environment[$0] }
  }

  init(name: String, read: @escaping @Sendable (String) -> String?) {
    self.name = name
    self.read = read
  }

  /// Returns the value of the variable.
  ///
  /// - Throws: ``KeyRingError`` with `notFound` if the variable is not set or is empty.
  public func load() async throws -> [UInt8]? {
    guard let value = read(name), !value.isEmpty else {
      throw KeyRingError(.notFound, message: "the environment variable \(name) is not set; it must hold a key ring")
    }
    return Array(value.utf8)
  }

  /// Always throws ``KeyRingError`` with `readOnly`.
  public func save(_ content: [UInt8], replacing previous: [UInt8]?) async throws {
    throw KeyRingError(
      .readOnly,
      message: "the environment variable \(name) cannot be changed by this process; set it where the process is started"
    )
  }
}

extension KeySource where Self == SystemdCredentialKeySource {
  /// A credential that systemd passes to a service; see ``SystemdCredentialKeySource``.
  ///
  /// - Parameter name: The name of the credential.
  public static func systemdCredential(_ name: String) -> SystemdCredentialKeySource {
    SystemdCredentialKeySource(name: name)
  }
}

extension KeySource where Self == MountedSecretKeySource {
  /// A file that a container platform mounts as a secret; see ``MountedSecretKeySource``.
  ///
  /// - Parameter path: The path of the file.
  public static func mountedSecret(_ path: String) -> MountedSecretKeySource {
    MountedSecretKeySource(path: path)
  }
}

extension KeySource where Self == EnvironmentKeySource {
  /// An environment variable that holds a key ring; see ``EnvironmentKeySource``.
  ///
  /// - Parameter name: The name of the variable.
  public static func environment(_ name: String) -> EnvironmentKeySource {
    EnvironmentKeySource(name: name)
  }
}
#endif
