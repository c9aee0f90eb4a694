/// Settings of a ``CBORCodec`` for what its types see, and how maps are written.
public struct CBOROptions: Sendable {
  /// The values that types find in `Encoder.userInfo` and `Decoder.userInfo`, none by default.
  public var userInfo: [CodingUserInfoKey: any Sendable]

  /// Whether all maps are written with their keys in the order of their bytes, `false` by default.
  ///
  /// Values then have equal bytes even if their types encode fields in varying order (RFC 8949, section 4.2.1). The elements
  /// of a set, and keys that are maps themselves, stay in the order that they had before. Encoding takes about twice as
  /// long. Both orders are read alike.
  public var sortsKeys: Bool

  /// Creates options.
  ///
  /// - Parameters:
  ///   - userInfo: The values that types find in `userInfo`. Defaults to none.
  ///   - sortsKeys: Whether the keys of all maps are sorted. Defaults to `false`.
  public init(userInfo: [CodingUserInfoKey: any Sendable] = [:], sortsKeys: Bool = false) {
    self.userInfo = userInfo
    self.sortsKeys = sortsKeys
  }
}

/// The `userInfo` of one codec, which its readers and writers share.
@usableFromInline
final class CodingUserInfo: Sendable {
  private let content: [CodingUserInfoKey: any Sendable]

  /// Creates the shared values, or `nil` if there are none.
  init?(_ content: [CodingUserInfoKey: any Sendable]) {
    if content.isEmpty { return nil }
    self.content = content
  }

  var values: [CodingUserInfoKey: Any] { content }
}
