#if Crypto
import Larder
import LarderFiles

/// A key source in a file that is encrypted with a password.
///
/// The file is a JSON Web Encryption in compact serialization (RFC 7516) with the algorithms PBES2-HS512+A256KW and
/// A256GCM, so other programs can open it. It belongs to the user of the process and has the permissions 0600. It is
/// replaced durably and as a whole. A lock file beside it prevents two processes from replacing each other's content.
///
/// ```swift
/// let ring = try await KeyRing.open(
///   in: .passwordFile(folder + "/keys.jwe", password: KeyFilePassword(text)), createsIfMissing: true)
/// ```
///
/// **Recovery.** A copy under another password, kept in another place, is the recovery key:
///
/// ```swift
/// try await ring.save(to: .passwordFile(usbStick + "/recovery.jwe", password: recoveryPassword))
/// ```
///
/// A copy has only the keys of that time. Copy again after each new key.
///
/// Each reading derives a key from the password, which takes about half a second of one core, and each replacement
/// derives two. This work never occupies a thread of the cooperative pool.
public struct PasswordFileKeySource: KeySource {
  /// The numbers of iterations that a file can be written with.
  public static let allowedIterations = 600_000...10_000_000

  private let file: KeyFile
  private let password: KeyFilePassword
  private let iterations: Int
  private let allowedIterations: ClosedRange<Int>

  /// Creates a source.
  ///
  /// - Parameters:
  ///   - path: The path of the file. It need not exist.
  ///   - password: The password.
  ///   - iterations: The number of iterations that a file is written with.
  ///   - fileSystem: The file system of the file.
  ///   - allowedIterations: The numbers of iterations that a file can be written with. Tests need not wait for many.
  init(
    path: String, password: KeyFilePassword, iterations: Int, in fileSystem: some StoreFileSystem,
    allowing allowedIterations: ClosedRange<Int> = PasswordFileKeySource.allowedIterations
  ) {
    file = KeyFile(path: path, in: fileSystem)
    self.password = password
    self.iterations = iterations
    self.allowedIterations = allowedIterations
  }

  /// Decrypts the file.
  ///
  /// A file of another program is accepted if its count of iterations is from 1,000 to 10,000,000.
  ///
  /// - Returns: The content, or `nil` if the file is missing in its folder.
  /// - Throws: ``KeyRingError``: `wrongPassword`; `corrupted` if the file is damaged, is not such a file, or has another
  ///   count of iterations; `notPermitted` if other users can access the file or it belongs to another user;
  ///   `unavailable` if its folder does not exist; `ioFailed`.
  public func load() async throws -> [UInt8]? {
    try await file.read { [password] in try PasswordEnvelope.open($0, with: password) }
  }

  /// Encrypts the content with a new salt and a new key, and replaces the file durably.
  ///
  /// - Parameters:
  ///   - content: The new content.
  ///   - previous: The content that ``load()`` returned, or `nil`.
  /// - Throws: ``KeyRingError``: `changed` if the file has another content than the previous one; `invalidArgument` if
  ///   the number of iterations is not in ``allowedIterations``; `full` if the file would have more than 1 MiB;
  ///   `unavailable` if another process does not release the lock for 30 s; the errors of ``load()``.
  public func save(_ content: [UInt8], replacing previous: [UInt8]?) async throws {
    guard allowedIterations ~= iterations else {
      throw KeyRingError(
        .invalidArgument,
        message: "iterations must be from \(allowedIterations.lowerBound) to \(allowedIterations.upperBound), "
          + "not \(iterations)")
    }
    try await file.replace { [file, password, iterations] current in
      guard try current.map({ try PasswordEnvelope.open($0, with: password) }) == previous else {
        throw KeyRingError(.changed, message: "\(file.path) was changed by another process; load it again")
      }
      return try PasswordEnvelope.seal(content, with: password, iterations: iterations)
    }
  }
}

extension PasswordFileKeySource: CustomStringConvertible {
  /// The path, without the password.
  public var description: String { "password-file:\(file.path)" }
}

extension KeySource where Self == PasswordFileKeySource {
  /// A file that is encrypted with a password; see ``PasswordFileKeySource``.
  ///
  /// ```swift
  /// try await ring.save(to: .passwordFile(usbStick + "/recovery.jwe", password: recoveryPassword))
  /// ```
  ///
  /// - Parameters:
  ///   - path: The path of the file. It need not exist. Its folder must exist.
  ///   - password: The password.
  ///   - iterations: The number of iterations of PBKDF2 with which a key is derived from the password when the file is
  ///     written. Defaults to 600,000, the minimum. The maximum is 10,000,000.
  public static func passwordFile(
    _ path: String, password: KeyFilePassword, iterations: Int = 600_000
  ) -> PasswordFileKeySource {
    PasswordFileKeySource(path: path, password: password, iterations: iterations, in: POSIXFileSystem())
  }
}
#endif
