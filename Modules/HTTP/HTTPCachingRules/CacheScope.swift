#if HTTPCache
/// The stored responses that a request may reuse: those of its partition, and of its user.
public struct CacheScope: Sendable, Equatable {
  /// The partition of the responses that are for this user alone.
  public let own: [UInt8]

  /// The partition of the responses that are for all users.
  public let common: [UInt8]

  /// Whether the request has a user, so that both partitions differ.
  public var hasIdentity: Bool { own != common }

  /// The first byte of a partition that has an identity.
  private static let mark: UInt8 = 0xFF

  /// Creates a scope.
  ///
  /// - Parameters:
  ///   - partition: The partition; defaults to none.
  ///   - identity: The identity of the user; defaults to none.
  public init(partition: [UInt8] = [], identity: [UInt8] = []) {
    common = Self.encoded(partition, identity: [])
    own = identity.isEmpty ? common : Self.encoded(partition, identity: identity)
  }

  /// Returns a partition with an identity in such a form that no two pairs have the same bytes.
  private static func encoded(_ partition: [UInt8], identity: [UInt8]) -> [UInt8] {
    if identity.isEmpty, partition.first != mark { return partition }
    return [mark] + withUnsafeBytes(of: UInt64(identity.count).bigEndian, Array.init) + identity + partition
  }
}

extension HTTPCacheRules {
  /// Returns whether a stored response has `public`.
  public func isPublic(_ response: StoredResponse) -> Bool {
    directives(of: response.fields, response.facts).control.isPublic
  }
}
#endif
