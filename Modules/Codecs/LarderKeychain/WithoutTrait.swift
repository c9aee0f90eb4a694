#if !Crypto
public import LarderCrypto

// Stand-ins for the module when the trait is off, so that the compiler names the trait.

/// Requires the trait `Crypto` of the package Larder, which is off.
@available(*, unavailable, message: "turn on the trait: .package(url: …, from: …, traits: [\"Crypto\"])")
public struct SecretServiceKeySource: KeySource {
  init() {}
}

@available(*, unavailable, message: "turn on the trait: .package(url: …, from: …, traits: [\"Crypto\"])")
extension KeySource where Self == SecretServiceKeySource {
  /// Requires the trait `Crypto` of the package Larder, which is off.
  public static func secretService(application: String, name: String) -> SecretServiceKeySource {
    SecretServiceKeySource()
  }
}

/// Requires the trait `Crypto` of the package Larder, which is off.
@available(*, unavailable, message: "turn on the trait: .package(url: …, from: …, traits: [\"Crypto\"])")
public struct KeychainKeySource: KeySource {
  /// Requires the trait `Crypto` of the package Larder, which is off.
  public enum Accessibility {
    /// Requires the trait `Crypto` of the package Larder, which is off.
    case afterFirstUnlockThisDeviceOnly
    /// Requires the trait `Crypto` of the package Larder, which is off.
    case afterFirstUnlock
    /// Requires the trait `Crypto` of the package Larder, which is off.
    case whenUnlockedThisDeviceOnly
    /// Requires the trait `Crypto` of the package Larder, which is off.
    case whenUnlocked
  }

  init() {}
}

#if canImport(Security)
@available(*, unavailable, message: "turn on the trait: .package(url: …, from: …, traits: [\"Crypto\"])")
extension KeySource where Self == KeychainKeySource {
  /// Requires the trait `Crypto` of the package Larder, which is off.
  public static func keychain(
    service: String, account: String, accessGroup: String? = nil,
    accessible: KeychainKeySource.Accessibility = .afterFirstUnlockThisDeviceOnly
  ) -> KeychainKeySource {
    KeychainKeySource()
  }
}
#endif
#endif
