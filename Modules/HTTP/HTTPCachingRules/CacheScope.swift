#if HTTPCache
/// The stored responses that a request may reuse: those of its partition, and of its user.
///
/// A cache without partitions and identities uses `CacheScope()` for all requests. Otherwise, pass the stored responses of
/// ``own`` to a decision, and of those of ``common`` the ones that are public, by ``HTTPCacheRules/isPublic(_:)``. A new
/// response has one of the two as its ``StoredResponse/partition``.
///
/// ```swift
/// let scope = CacheScope(partition: Array("tenant7".utf8))
/// let decision = rules.decide(request: request, url: url, scope: scope, stored: stored[url] ?? [], now: .now)
/// ```
public struct CacheScope: Sendable, Equatable {
  /// The partition of the responses that are for this user alone.
  public let own: [UInt8]

  /// The partition of the responses that are for all users.
  public let common: [UInt8]

  /// A Boolean value that indicates whether the request has a user, so both partitions differ.
  public var hasIdentity: Bool { own != common }

  /// The first byte of a partition that has an identity.
  private static let mark: UInt8 = 0xFF

  /// Creates a scope.
  ///
  /// - Parameters:
  ///   - partition: The partition, such as the account of a site. Defaults to an empty one. Responses are never shared
  ///     between partitions.
  ///   - identity: The identity of the user. Defaults to an empty one. Only public responses are shared between
  ///     identities.
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
  /// Returns whether a stored response has `public`, so all identities of its partition may reuse it.
  ///
  /// - Parameter response: The stored response.
  /// - Returns: A Boolean value that indicates whether the directive that decides in this cache says so.
  public func isPublic(_ response: StoredResponse) -> Bool {
    directives(of: response.fields, response.facts).control.isPublic
  }
}
#endif
