#if !Compression
public import Larder

// Stand-ins for the store when the trait is off, so that the compiler names the trait.

/// Requires the trait `Compression` of the package Larder.
@available(*, unavailable, message: "turn on the trait: .package(url: …, from: …, traits: [\"Compression\"])")
public struct CompressedFileStore<Value: Sendable> {
  /// Requires the trait `Compression` of the package Larder.
  public init(
    path: String, durability: Durability.File = .synced, access: StoreAccess = .readWrite, createsIfMissing: Bool = true
  ) async throws {}

  /// Requires the trait `Compression` of the package Larder.
  public init(
    path: String, codec: some Codec<Value>, durability: Durability.File = .synced, access: StoreAccess = .readWrite,
    createsIfMissing: Bool = true, cacheSize: Int = 0
  ) async throws {}
}

/// Requires the trait `Compression` of the package Larder.
@available(*, unavailable, message: "turn on the trait: .package(url: …, from: …, traits: [\"Compression\"])")
public struct CompressedFileStoreProvider {
  /// Requires the trait `Compression` of the package Larder.
  public init(findsPossiblyOlder: Bool = false) {}
}
#endif
