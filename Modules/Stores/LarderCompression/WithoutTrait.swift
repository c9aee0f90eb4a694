#if !Compression
public import Larder

// With the trait off these stand in for the module, so that the compiler says what is missing. What the transforms return
// is a codec: what fits nowhere would be the first thing that it complains of.

/// Needs the trait `Compression` of the package Larder, which is off.
@available(*, unavailable, message: "turn on the trait: .package(url: …, from: …, traits: [\"Compression\"])")
public struct CompressedCodec<Base: Codec> {}

/// Needs the trait `Compression` of the package Larder, which is off.
@available(*, unavailable, message: "turn on the trait: .package(url: …, from: …, traits: [\"Compression\"])")
public struct CompressionDictionary {
  /// Needs the trait `Compression` of the package Larder, which is off.
  public init(_ bytes: [UInt8]) throws {}

  /// Needs the trait `Compression` of the package Larder, which is off.
  public static func train(on samples: [[UInt8]], size: Int = 0) throws -> CompressionDictionary {
    try CompressionDictionary([])
  }
}

/// Needs the trait `Compression` of the package Larder, which is off.
@available(*, unavailable, message: "turn on the trait: .package(url: …, from: …, traits: [\"Compression\"])")
public struct CompressionDictionaries {
  /// Needs the trait `Compression` of the package Larder, which is off.
  public init() {}
}

extension Codec {
  /// Needs the trait `Compression` of the package Larder, which is off.
  @available(*, unavailable, message: "turn on the trait: .package(url: …, from: …, traits: [\"Compression\"])")
  public func compressed(
    level: Int = 6, dictionary: CompressionDictionary? = nil, threshold: Int? = nil
  ) -> Self {
    self
  }

  /// Needs the trait `Compression` of the package Larder, which is off.
  @available(*, unavailable, message: "turn on the trait: .package(url: …, from: …, traits: [\"Compression\"])")
  public func compressed(
    level: Int = 6, dictionaries: CompressionDictionaries, threshold: Int? = nil
  ) -> Self {
    self
  }
}

/// Needs the trait `Compression` of the package Larder, which is off.
@available(*, unavailable, message: "turn on the trait: .package(url: …, from: …, traits: [\"Compression\"])")
public struct CompressedFileStore<Value: Sendable> {
  /// Needs the trait `Compression` of the package Larder, which is off.
  public init(
    path: String, durability: Durability = .synced, access: StoreAccess = .readWrite, createsIfMissing: Bool = true
  ) async throws {}

  /// Needs the trait `Compression` of the package Larder, which is off.
  public init(
    path: String, codec: some Codec<Value>, durability: Durability = .synced, access: StoreAccess = .readWrite,
    createsIfMissing: Bool = true, cacheSize: Int = 0
  ) async throws {}
}

/// Needs the trait `Compression` of the package Larder, which is off.
@available(*, unavailable, message: "turn on the trait: .package(url: …, from: …, traits: [\"Compression\"])")
public struct CompressedFileStoreProvider {
  /// Needs the trait `Compression` of the package Larder, which is off.
  public init() {}
}
#endif
