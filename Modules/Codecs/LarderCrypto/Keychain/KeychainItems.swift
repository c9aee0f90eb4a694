#if Crypto

/// The functions of a keychain, as the framework Security has them.
///
/// The statuses are those of `SecBase.h`. See ``KeychainStatus``.
protocol KeychainItems: Sendable {
  /// Returns the content of an item.
  func copy(_ query: KeychainQuery) -> (status: Int32, content: KeychainContent?)

  /// Adds an item, if there isn't one.
  func add(_ content: KeychainContent, at query: KeychainQuery) -> Int32

  /// Replaces the content of an item in place, if it still has a revision.
  func update(_ query: KeychainQuery, revision: [UInt8]?, to content: KeychainContent) -> Int32

  /// Returns the system's text for a status, or `nil` if there isn't one.
  func message(for status: Int32) -> String?
}

/// The identity of an item, and the protection that it gets.
struct KeychainQuery: Sendable, Hashable {
  var service: String
  var account: String
  var accessGroup: String?
  var accessible: KeychainKeySource.Accessibility
}

/// The content of an item.
struct KeychainContent: Sendable, Hashable {
  var data: [UInt8]
  /// Random bytes that change with the data, or `nil` for an item of another program.
  var revision: [UInt8]?
}

/// The statuses that are distinguished.
enum KeychainStatus {
  static let success: Int32 = 0
  static let diskFull: Int32 = -34
  static let userCanceled: Int32 = -128
  static let notAvailable: Int32 = -25291
  static let authenticationFailed: Int32 = -25293
  static let duplicateItem: Int32 = -25299
  static let itemNotFound: Int32 = -25300
  static let interactionNotAllowed: Int32 = -25308
  static let cannotDecode: Int32 = -26275
  static let missingEntitlement: Int32 = -34018

  /// Returns the error for a status that is neither a success nor one that the caller handles.
  static func error(for status: Int32, text: String?) -> KeyRingError {
    let (code, message): (KeyRingError.Code, String) =
      switch status {
      case interactionNotAllowed:
        (.unavailable, "the keychain is locked; try again after the device has been unlocked")
      case notAvailable, userCanceled: (.unavailable, "the keychain is not available; try again later")
      case authenticationFailed: (.notPermitted, "the keychain denies access to the item")
      case missingEntitlement:
        (
          .notPermitted,
          "the program has no entitlement for the keychain or the access group; sign it with the entitlement "
            + "keychain-access-groups"
        )
      case diskFull: (.full, "the disk is full, so the keychain cannot save the keys")
      case cannotDecode: (.corrupted, "the keychain cannot decode the item")
      default: (.ioFailed, "the keychain reported an error")
      }
    return KeyRingError(code, message: "\(message) (status \(status)\(text.map { ": \($0)" } ?? ""))")
  }
}
#endif
