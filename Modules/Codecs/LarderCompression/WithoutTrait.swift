#if !Compression
public import Larder

// Stand-ins for the module when the trait is off, so that the compiler names the trait. The transforms return a codec
// of the same type, because otherwise a mismatched type would be the first error reported.

/// Requires the trait `Compression` of the package Larder.
@available(*, unavailable, message: "turn on the trait: .package(url: …, from: …, traits: [\"Compression\"])")
public struct CompressedCodec<Base: Codec> {}

/// Requires the trait `Compression` of the package Larder.
@available(*, unavailable, message: "turn on the trait: .package(url: …, from: …, traits: [\"Compression\"])")
public struct CompressionDictionary {
  /// Requires the trait `Compression` of the package Larder.
  public init(_ bytes: [UInt8]) throws {}

  /// Requires the trait `Compression` of the package Larder.
  public static func train(on samples: [[UInt8]], size: Int = 0) throws -> CompressionDictionary {
    try CompressionDictionary([])
  }
}

/// Requires the trait `Compression` of the package Larder.
@available(*, unavailable, message: "turn on the trait: .package(url: …, from: …, traits: [\"Compression\"])")
public struct CompressionDictionaries {
  /// Requires the trait `Compression` of the package Larder.
  public init() {}
}

extension Codec {
  /// Requires the trait `Compression` of the package Larder.
  @available(*, unavailable, message: "turn on the trait: .package(url: …, from: …, traits: [\"Compression\"])")
  public func compressed(
    level: Int = 6, dictionary: CompressionDictionary? = nil, dictionaries: CompressionDictionaries? = nil,
    threshold: Int? = nil
  ) -> Self {
    self
  }
}
#endif
