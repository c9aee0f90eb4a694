#if Compression
public import Larder

/// The provider of the layer `compressed`, a ``CompressedCodec`` in a configured stack.
///
/// ```swift
/// let stacks = try Stacks(
///   sources: [.json(path: "app.json")], stores: [SQLiteStoreProvider()], layers: [CompressedLayerProvider()])
/// ```
public struct CompressedLayerProvider: LayerProvider {
  /// Creates a provider.
  public init() {}

  /// The name `compressed`.
  public var name: String { "compressed" }

  /// A one-line description of the layer.
  public var summary: String { "compresses values" }

  /// `true`.
  public var fitsQueues: Bool { true }

  /// The place of compression, before encryption.
  public var place: LayerPlace { .compression }

  /// The setting `level`.
  public var settings: [LayerSetting] {
    [LayerSetting("level", .count(1...9), "the level, from 1, the fastest, to 9, the smallest; by default, 6")]
  }

  /// Opens a store of compressed values.
  ///
  /// - Throws: The errors of opening `base`.
  public func open<Value: Sendable>(
    codec: some Codec<Value>, over base: some OpenableStore, settings: LayerSettings
  ) async throws -> AnyDataStore<Value> {
    try await base.open(codec: CompressedCodec(codec, level: settings.count("level") ?? 6))
  }
}
#endif
