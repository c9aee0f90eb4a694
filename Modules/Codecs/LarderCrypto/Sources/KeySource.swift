#if Crypto
/// A place where the keys of a ``KeyRing`` are kept.
///
/// The content is a JWK Set (RFC 7517) in UTF-8. A source keeps it as one whole, in a form of its own choice, such as an
/// encrypted one.
///
/// ```swift
/// struct VaultKeySource: KeySource {
///   var vault: Vault
///   var name: String { "vault" }
///
///   func load() async throws -> [UInt8]? { try await vault.secret(named: "keys") }
///
///   func save(_ content: [UInt8], replacing previous: [UInt8]?) async throws {
///     guard try await vault.replaceSecret(named: "keys", expecting: previous, with: content) else {
///       throw KeyRingError(.changed, message: "the secret was changed by something else; refresh the ring")
///     }
///   }
/// }
/// ```
public protocol KeySource: Sendable {
  /// Returns the content.
  ///
  /// - Returns: The content, or `nil` only if the source knows that it does not have any. A ring is then created if the caller
  ///   asks for it, so a source that could not look must throw.
  /// - Throws: ``KeyRingError``, with `unavailable` if the source cannot be read now, for example because it is locked.
  func load() async throws -> [UInt8]?

  /// Replaces the content, if it is still the previous one.
  ///
  /// After the call the content is durable.
  ///
  /// - Parameters:
  ///   - content: The new content.
  ///   - previous: The content that ``load()`` returned, or `nil`.
  /// - Throws: ``KeyRingError``, with `changed` if the source has another content than the previous one, and `readOnly`
  ///   if it cannot be written.
  func save(_ content: [UInt8], replacing previous: [UInt8]?) async throws
}
#endif
