#if Crypto && canImport(Security)
import Foundation
import Security

/// The data protection keychain of the device.
struct SecurityItems: KeychainItems {
  func copy(_ query: KeychainQuery) -> (status: Int32, content: KeychainContent?) {
    var request = attributes(of: query)
    request[kSecReturnData as String] = true
    request[kSecReturnAttributes as String] = true
    request[kSecMatchLimit as String] = kSecMatchLimitOne
    var result: CFTypeRef?
    let status = SecItemCopyMatching(request as CFDictionary, &result)
    let found = result as? [String: Any]
    guard let data = found?[kSecValueData as String] as? Data else { return (status, nil) }
    let revision = found?[kSecAttrGeneric as String] as? Data
    return (status, KeychainContent(data: Array(data), revision: revision.map { Array($0) }))
  }

  func add(_ content: KeychainContent, at query: KeychainQuery) -> Int32 {
    let new = attributes(of: query).merging(attributes(of: content, query.accessible)) { first, _ in first }
    return SecItemAdd(new as CFDictionary, nil)
  }

  func update(_ query: KeychainQuery, revision: [UInt8]?, to content: KeychainContent) -> Int32 {
    var request = attributes(of: query)
    if let revision { request[kSecAttrGeneric as String] = Data(revision) }
    return SecItemUpdate(request as CFDictionary, attributes(of: content, query.accessible) as CFDictionary)
  }

  func message(for status: Int32) -> String? {
    SecCopyErrorMessageString(status, nil) as String?
  }

  private func attributes(of query: KeychainQuery) -> [String: Any] {
    var attributes: [String: Any] = [
      kSecClass as String: kSecClassGenericPassword, kSecUseDataProtectionKeychain as String: true,
      kSecAttrService as String: query.service, kSecAttrAccount as String: query.account,
    ]
    if let group = query.accessGroup { attributes[kSecAttrAccessGroup as String] = group }
    return attributes
  }

  private func attributes(of content: KeychainContent, _ accessible: KeychainKeySource.Accessibility) -> [String: Any] {
    var attributes: [String: Any] = [kSecValueData as String: Data(content.data)]
    if let revision = content.revision { attributes[kSecAttrGeneric as String] = Data(revision) }
    attributes[kSecAttrAccessible as String] =
      switch accessible {
      case .afterFirstUnlockThisDeviceOnly: kSecAttrAccessibleAfterFirstUnlockThisDeviceOnly
      case .afterFirstUnlock: kSecAttrAccessibleAfterFirstUnlock
      case .whenUnlockedThisDeviceOnly: kSecAttrAccessibleWhenUnlockedThisDeviceOnly
      case .whenUnlocked: kSecAttrAccessibleWhenUnlocked
      }
    return attributes
  }
}

extension KeySource where Self == KeychainKeySource {
  /// The keychain of the device; see ``KeychainKeySource``.
  ///
  /// It was compiled so, never run on Apple by us.
  ///
  /// - Parameters:
  ///   - service: The service of the item, such as the identifier of the app.
  ///   - account: The account of the item: the name of the ring.
  ///   - accessGroup: The access group that several apps share. Defaults to `nil`, the group of the app. Pass one if the
  ///     app has several.
  ///   - accessible: The times at which the keys can be read. Defaults to `afterFirstUnlockThisDeviceOnly`.
  public static func keychain(
    service: String, account: String, accessGroup: String? = nil,
    accessible: KeychainKeySource.Accessibility = .afterFirstUnlockThisDeviceOnly
  ) -> KeychainKeySource {
    let query = KeychainQuery(service: service, account: account, accessGroup: accessGroup, accessible: accessible)
    return KeychainKeySource(query, in: SecurityItems())
  }
}
#endif
