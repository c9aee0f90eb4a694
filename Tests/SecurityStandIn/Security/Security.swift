// swift-format-ignore-file: AllPublicDeclarationsHaveDocumentation

import Foundation

// The declarations of Apple's framework Security that LarderCrypto uses, with the behavior that Apple documents for the
// data protection keychain (SecItem.h, SecBase.h, and "Keychain items" in the developer documentation).

public typealias OSStatus = Int32
public typealias CFString = String
public typealias CFDictionary = [String: Any]
public typealias CFTypeRef = Any

public let errSecSuccess: OSStatus = 0
public let errSecParam: OSStatus = -50
public let errSecDuplicateItem: OSStatus = -25299
public let errSecItemNotFound: OSStatus = -25300
public let errSecInteractionNotAllowed: OSStatus = -25308
public let errSecMissingEntitlement: OSStatus = -34018

public let kSecClass: CFString = "class"
public let kSecClassGenericPassword: CFString = "genp"
public let kSecUseDataProtectionKeychain: CFString = "nleg"
public let kSecAttrService: CFString = "svce"
public let kSecAttrAccount: CFString = "acct"
public let kSecAttrAccessGroup: CFString = "agrp"
public let kSecAttrGeneric: CFString = "gena"
public let kSecAttrAccessible: CFString = "pdmn"
public let kSecAttrAccessibleWhenUnlocked: CFString = "ak"
public let kSecAttrAccessibleAfterFirstUnlock: CFString = "ck"
public let kSecAttrAccessibleWhenUnlockedThisDeviceOnly: CFString = "aku"
public let kSecAttrAccessibleAfterFirstUnlockThisDeviceOnly: CFString = "cku"
public let kSecValueData: CFString = "v_Data"
public let kSecReturnData: CFString = "r_Data"
public let kSecReturnAttributes: CFString = "r_Attributes"
public let kSecMatchLimit: CFString = "m_Limit"
public let kSecMatchLimitOne: CFString = "m_LimitOne"

/// Copies the data and the attributes of an item.
public func SecItemCopyMatching(_ query: CFDictionary, _ result: UnsafeMutablePointer<CFTypeRef?>?) -> OSStatus {
  guard query[kSecReturnData] as? Bool == true, query[kSecReturnAttributes] as? Bool == true,
    query[kSecMatchLimit] as? String == kSecMatchLimitOne,
    let request = StandInItem(query, also: [kSecReturnData, kSecReturnAttributes, kSecMatchLimit])
  else { return errSecParam }
  let (status, item) = StandIn.item(matching: request)
  guard let item else { return status }
  var found: CFDictionary = [
    kSecValueData: item.data ?? Data(), kSecAttrService: item.service, kSecAttrAccount: item.account,
    kSecAttrAccessGroup: item.accessGroup ?? "", kSecAttrAccessible: item.accessible ?? "",
  ]
  found[kSecAttrGeneric] = item.generic
  result?.pointee = found
  return status
}

/// Adds an item.
public func SecItemAdd(_ attributes: CFDictionary, _ result: UnsafeMutablePointer<CFTypeRef?>?) -> OSStatus {
  guard let item = StandInItem(attributes, also: [kSecValueData, kSecAttrAccessible]) else { return errSecParam }
  return StandIn.add(item)
}

/// Changes attributes of an item.
public func SecItemUpdate(_ query: CFDictionary, _ attributesToUpdate: CFDictionary) -> OSStatus {
  guard let request = StandInItem(query, also: []),
    Set(attributesToUpdate.keys).isSubset(of: [kSecValueData, kSecAttrGeneric, kSecAttrAccessible])
  else { return errSecParam }
  return StandIn.update(
    request, data: attributesToUpdate[kSecValueData] as? Data, generic: attributesToUpdate[kSecAttrGeneric] as? Data,
    accessible: attributesToUpdate[kSecAttrAccessible] as? String)
}

/// Returns a text for a status.
public func SecCopyErrorMessageString(_ status: OSStatus, _ reserved: UnsafeMutableRawPointer?) -> CFString? {
  "text of the status \(status)"
}
