public import Foundation
import Synchronization

/// The keychain behind the functions, which the checks prepare and inspect.
public enum StandIn {
  /// The states of a device.
  public enum Lock: Sendable {
    /// The device has not been unlocked since it was started.
    case beforeFirstUnlock
    /// The device has been unlocked and is locked again.
    case locked
    /// The device is unlocked.
    case unlocked
  }

  private struct State {
    var items: [StandInItem] = []
    var lock = Lock.unlocked
    /// The access groups of the program, of which the first is used by default.
    var accessGroups = ["app"]
  }

  private static let state = Mutex(State())

  /// Locks or unlocks the device.
  public static func setLock(_ lock: Lock) {
    state.withLock { $0.lock = lock }
  }

  /// The items.
  public static var items: [StandInItem] { state.withLock { $0.items } }

  /// Returns an item, if the device allows reading it now.
  static func item(matching request: StandInItem) -> (OSStatus, StandInItem?) {
    state.withLock { state in
      let (status, index) = find(request, in: state)
      return (status, index.map { state.items[$0] })
    }
  }

  /// Adds an item, if there isn't one with its service, account and access group.
  static func add(_ item: StandInItem) -> OSStatus {
    state.withLock { state in
      var item = item
      // The default of the system.
      item.accessible = item.accessible ?? kSecAttrAccessibleWhenUnlocked
      item.accessGroup = item.accessGroup ?? state.accessGroups[0]
      guard let group = item.accessGroup, state.accessGroups.contains(group) else { return errSecMissingEntitlement }
      guard !state.items.contains(where: { $0.hasIdentity(of: item) }) else { return errSecDuplicateItem }
      guard item.isReadable(while: state.lock) else { return errSecInteractionNotAllowed }
      state.items.append(item)
      return errSecSuccess
    }
  }

  /// Changes an item in one step.
  static func update(_ request: StandInItem, data: Data?, generic: Data?, accessible: String?) -> OSStatus {
    state.withLock { state in
      let (status, index) = find(request, in: state)
      guard let index else { return status }
      state.items[index].data = data ?? state.items[index].data
      state.items[index].generic = generic ?? state.items[index].generic
      state.items[index].accessible = accessible ?? state.items[index].accessible
      return errSecSuccess
    }
  }

  private static func find(_ request: StandInItem, in state: State) -> (OSStatus, Int?) {
    if let group = request.accessGroup, !state.accessGroups.contains(group) { return (errSecMissingEntitlement, nil) }
    let index = state.items.firstIndex { item in
      item.service == request.service && item.account == request.account
        && (request.accessGroup == nil || item.accessGroup == request.accessGroup)
        && (request.generic == nil || item.generic == request.generic)
    }
    guard let index else { return (errSecItemNotFound, nil) }
    guard state.items[index].isReadable(while: state.lock) else { return (errSecInteractionNotAllowed, nil) }
    return (errSecSuccess, index)
  }
}

/// A generic password, or a request for one.
public struct StandInItem: Sendable {
  /// The attributes.
  public var service, account: String
  public var accessGroup, accessible: String?
  public var generic, data: Data?

  /// Creates an item from a dictionary, or returns `nil` if the dictionary has an attribute that it must not have.
  init?(_ attributes: CFDictionary, also others: [String]) {
    let own = [
      kSecClass, kSecUseDataProtectionKeychain, kSecAttrService, kSecAttrAccount, kSecAttrAccessGroup, kSecAttrGeneric,
    ]
    guard Set(attributes.keys).isSubset(of: own + others),
      attributes[kSecClass] as? String == kSecClassGenericPassword,
      // Without it, macOS uses the other kind of keychain, which has no accessibility.
      attributes[kSecUseDataProtectionKeychain] as? Bool == true,
      let service = attributes[kSecAttrService] as? String, let account = attributes[kSecAttrAccount] as? String
    else { return nil }
    self.service = service
    self.account = account
    accessGroup = attributes[kSecAttrAccessGroup] as? String
    accessible = attributes[kSecAttrAccessible] as? String
    generic = attributes[kSecAttrGeneric] as? Data
    data = attributes[kSecValueData] as? Data
  }

  func hasIdentity(of other: StandInItem) -> Bool {
    service == other.service && account == other.account && accessGroup == other.accessGroup
  }

  func isReadable(while lock: StandIn.Lock) -> Bool {
    switch lock {
    case .unlocked: true
    case .locked: accessible?.hasPrefix("ck") == true
    case .beforeFirstUnlock: false
    }
  }
}
