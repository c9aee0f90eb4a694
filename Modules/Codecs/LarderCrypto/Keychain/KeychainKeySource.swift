#if Crypto
import LarderFiles

/// A key source in the keychain of an Apple device.
///
/// It is created with `.keychain(service:account:accessGroup:accessible:)`. It exists only where the framework Security
/// does:
///
/// ```swift
/// let ring = try await KeyRing.open(
///   in: .keychain(service: "org.example.notes", account: "notes"), createsIfMissing: isFirstStart)
/// ```
///
/// **This code is compiled so, never run on Apple by us.** The tests compile it against declarations with the behavior that
/// Apple documents.
///
/// The keys are one generic password in the data protection keychain. On macOS, your program must be signed with an
/// application identifier. The item is added or updated in place, and never deleted.
///
/// **Locked devices.** Until the device is unlocked for the first time after a restart, the error is `unavailable`.
///
/// **Several processes.** Two processes cannot both create the item. An update changes the item only if it still has the
/// revision that was read, a random number in the attribute `kSecAttrGeneric`. Otherwise the error is `changed`.
///
/// **Backups.** With the default accessibility, the item is not restored to another device. Keep a recovery key, such as a
/// `PasswordFileKeySource`, if the values must outlive the device.
public struct KeychainKeySource: KeySource {
  /// The times at which an item can be read, and whether it can move to another device.
  public enum Accessibility: Sendable, Hashable, CaseIterable {
    /// From the first unlock after a restart, on this device only.
    case afterFirstUnlockThisDeviceOnly
    /// From the first unlock after a restart, also on a device that an encrypted backup is restored to.
    case afterFirstUnlock
    /// While the device is unlocked, on this device only.
    case whenUnlockedThisDeviceOnly
    /// While the device is unlocked, also on a device that an encrypted backup is restored to.
    case whenUnlocked
  }

  /// The calls block, because another process serves them.
  private static let executor = DispatchQueueExecutor(label: "Larder.Keychain")

  private let query: KeychainQuery
  private let items: any KeychainItems

  init(_ query: KeychainQuery, in items: any KeychainItems) {
    self.query = query
    self.items = items
  }

  /// Returns the data of the item.
  ///
  /// - Returns: The content, or `nil` if the keychain reports that there is no such item.
  /// - Throws: `KeyRingError`: `unavailable` if the keychain is locked; `notPermitted` if your program has no entitlement
  ///   for it; `corrupted`; `ioFailed`.
  public func load() async throws -> [UInt8]? {
    try await KeychainKeySource.executor.run { try content()?.data }
  }

  /// Adds the item, or updates it in place.
  ///
  /// - Parameters:
  ///   - content: The new content.
  ///   - previous: The content that ``load()`` returned, or `nil`.
  /// - Throws: `KeyRingError`: `changed` if the item has another content than the previous one; the errors of
  ///   ``load()``.
  public func save(_ content: [UInt8], replacing previous: [UInt8]?) async throws {
    try await KeychainKeySource.executor.run {
      let current = try self.content()
      guard current?.data == previous else { throw Self.changed }
      let revision = withUnsafeBytes(of: UInt128.random(in: .min ... .max)) { [UInt8]($0) }
      let new = KeychainContent(data: content, revision: revision)
      let status =
        if let current {
          items.update(query, revision: current.revision, to: new)
        } else {
          items.add(new, at: query)
        }
      switch status {
      case KeychainStatus.success: return
      // Another process was faster.
      case KeychainStatus.duplicateItem where current == nil: throw Self.changed
      case KeychainStatus.itemNotFound where current != nil: throw Self.changed
      default: throw KeychainStatus.error(for: status, text: items.message(for: status))
      }
    }
  }

  private func content() throws(KeyRingError) -> KeychainContent? {
    let (status, content) = items.copy(query)
    switch status {
    case KeychainStatus.success:
      guard let content else { throw KeyRingError(.corrupted, message: "the keychain returned an item without data") }
      return content
    case KeychainStatus.itemNotFound: return nil
    default: throw KeychainStatus.error(for: status, text: items.message(for: status))
    }
  }

  private static var changed: KeyRingError {
    KeyRingError(.changed, message: "the item was changed by another process; load it again")
  }
}

extension KeychainKeySource: CustomStringConvertible {
  /// The service and the account.
  public var description: String { "keychain:\(query.service)/\(query.account)" }
}
#endif
