#if !Crypto
public import Larder

// Stand-ins for the module when the trait is off, so that the compiler names the trait. The transform returns a codec of
// the same type, because otherwise a mismatched type would be the first error reported.

/// Requires the trait `Crypto` of the package Larder.
@available(*, unavailable, message: "turn on the trait: .package(url: …, from: …, traits: [\"Crypto\"])")
public protocol KeySource {}

/// Requires the trait `Crypto` of the package Larder.
@available(*, unavailable, message: "turn on the trait: .package(url: …, from: …, traits: [\"Crypto\"])")
public struct FileKeySource: KeySource {
  /// Requires the trait `Crypto` of the package Larder.
  public init(path: String = "", name: String = "") {}
}

/// Requires the trait `Crypto` of the package Larder.
@available(*, unavailable, message: "turn on the trait: .package(url: …, from: …, traits: [\"Crypto\"])")
public typealias SystemdCredentialKeySource = FileKeySource

/// Requires the trait `Crypto` of the package Larder.
@available(*, unavailable, message: "turn on the trait: .package(url: …, from: …, traits: [\"Crypto\"])")
public typealias EnvironmentKeySource = FileKeySource

/// Requires the trait `Crypto` of the package Larder.
@available(*, unavailable, message: "turn on the trait: .package(url: …, from: …, traits: [\"Crypto\"])")
public typealias MountedSecretKeySource = FileKeySource

/// Requires the trait `Crypto` of the package Larder.
@available(*, unavailable, message: "turn on the trait: .package(url: …, from: …, traits: [\"Crypto\"])")
public typealias PasswordFileKeySource = FileKeySource

/// Requires the trait `Crypto` of the package Larder.
@available(*, unavailable, message: "turn on the trait: .package(url: …, from: …, traits: [\"Crypto\"])")
public typealias SecretServiceKeySource = FileKeySource

/// Requires the trait `Crypto` of the package Larder.
@available(*, unavailable, message: "turn on the trait: .package(url: …, from: …, traits: [\"Crypto\"])")
public struct KeychainKeySource: KeySource {
  /// Requires the trait `Crypto` of the package Larder.
  public enum Accessibility {
    /// Requires the trait `Crypto` of the package Larder.
    case afterFirstUnlockThisDeviceOnly
    /// Requires the trait `Crypto` of the package Larder.
    case afterFirstUnlock
    /// Requires the trait `Crypto` of the package Larder.
    case whenUnlockedThisDeviceOnly
    /// Requires the trait `Crypto` of the package Larder.
    case whenUnlocked
  }

  init() {}
}

/// Requires the trait `Crypto` of the package Larder.
@available(*, unavailable, message: "turn on the trait: .package(url: …, from: …, traits: [\"Crypto\"])")
public struct KeyFilePassword {
  /// Requires the trait `Crypto` of the package Larder.
  public init(_ text: String) throws {}

  /// Requires the trait `Crypto` of the package Larder.
  public init(bytes: [UInt8]) throws {}
}

@available(*, unavailable, message: "turn on the trait: .package(url: …, from: …, traits: [\"Crypto\"])")
extension KeySource where Self == FileKeySource {
  /// Requires the trait `Crypto` of the package Larder.
  public static func passwordFile(_ path: String, password: KeyFilePassword, iterations: Int = 600_000) -> Self {
    Self()
  }

  /// Requires the trait `Crypto` of the package Larder.
  public static func file(_ path: String) -> Self { Self() }

  /// Requires the trait `Crypto` of the package Larder.
  public static func systemdCredential(_ name: String) -> Self { Self() }

  /// Requires the trait `Crypto` of the package Larder.
  public static func mountedSecret(_ path: String) -> Self { Self() }

  /// Requires the trait `Crypto` of the package Larder.
  public static func environment(_ name: String) -> Self { Self() }

  /// Requires the trait `Crypto` of the package Larder.
  public static func secretService(application: String, name: String) -> Self { Self() }
}

#if canImport(Security)
@available(*, unavailable, message: "turn on the trait: .package(url: …, from: …, traits: [\"Crypto\"])")
extension KeySource where Self == KeychainKeySource {
  /// Requires the trait `Crypto` of the package Larder.
  public static func keychain(
    service: String, account: String, accessGroup: String? = nil,
    accessible: KeychainKeySource.Accessibility = .afterFirstUnlockThisDeviceOnly
  ) -> KeychainKeySource {
    KeychainKeySource()
  }
}
#endif

/// Requires the trait `Crypto` of the package Larder.
@available(*, unavailable, message: "turn on the trait: .package(url: …, from: …, traits: [\"Crypto\"])")
public final class KeyRing {
  private init() {}

  /// Requires the trait `Crypto` of the package Larder.
  public static func open(in source: some KeySource, createsIfMissing: Bool = false) async throws -> KeyRing {
    KeyRing()
  }
}

/// Requires the trait `Crypto` of the package Larder.
@available(*, unavailable, message: "turn on the trait: .package(url: …, from: …, traits: [\"Crypto\"])")
public struct EncryptedCodec<Base: Codec> {}

/// Requires the trait `Crypto` of the package Larder.
@available(*, unavailable, message: "turn on the trait: .package(url: …, from: …, traits: [\"Crypto\"])")
public enum EncryptionAlgorithm {
  /// Requires the trait `Crypto` of the package Larder.
  case aesGCM
  /// Requires the trait `Crypto` of the package Larder.
  case chaChaPoly
}

extension Codec {
  /// Requires the trait `Crypto` of the package Larder.
  @available(*, unavailable, message: "turn on the trait: .package(url: …, from: …, traits: [\"Crypto\"])")
  public func encrypted(
    with keyRing: KeyRing, purpose: String, algorithm: EncryptionAlgorithm = .aesGCM
  ) -> Self {
    self
  }
}
#endif
