#if Crypto
public import Larder

/// The provider of the layer `encrypted`, an ``EncryptedCodec`` in a configured stack.
///
/// A configuration has no keys. It has the name of one of the rings that your program has opened:
///
/// ```swift
/// let layers: [any LayerProvider] = [EncryptedLayerProvider(rings: ["main": ring])]
/// ```
public struct EncryptedLayerProvider: LayerProvider {
  private let rings: [String: KeyRing]

  /// Creates a provider.
  ///
  /// - Parameter rings: The rings by the names that configurations use.
  public init(rings: [String: KeyRing]) {
    self.rings = rings
  }

  /// The name `encrypted`.
  public var name: String { "encrypted" }

  /// A one-line description of the layer.
  public var summary: String { "encrypts values" }

  /// `true`.
  public var fitsQueues: Bool { true }

  /// The place of encryption, next to the store.
  public var place: LayerPlace { .encryption }

  /// The settings `ring` (required) and `purpose`.
  public var settings: [LayerSetting] {
    [
      LayerSetting(
        "ring", .choice(rings.keys.sorted()), "the name of the key ring",
        required: "set the name of a key ring, one of: \(rings.keys.sorted().joined(separator: ", "))"),
      LayerSetting("purpose", .text, "the purpose that values are bound to; by default, the name of the stack"),
    ]
  }

  /// Checks that the program has the ring.
  ///
  /// - Throws: `StoreError` with `invalidArgument`.
  public func check(_ settings: LayerSettings) throws { _ = try ring(settings) }

  /// Opens a store of encrypted values.
  ///
  /// - Throws: The errors of ``check(_:)`` and of opening `base`.
  public func open<Value: Sendable>(
    codec: some Codec<Value>, over base: some OpenableStore, settings: LayerSettings
  ) async throws -> AnyDataStore<Value> {
    try await base.open(
      codec: EncryptedCodec(
        codec, keyRing: try ring(settings), purpose: settings.text("purpose") ?? settings.stack, algorithm: .aesGCM))
  }

  private func ring(_ settings: LayerSettings) throws -> KeyRing {
    guard let ring = settings.text("ring").flatMap({ rings[$0] }) else {
      throw settings.error("ring", "must be the name of a key ring that the program has opened")
    }
    return ring
  }
}
#endif
