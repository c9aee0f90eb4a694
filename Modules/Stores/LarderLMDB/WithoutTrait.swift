#if !LMDB
public import Larder

// With the trait off these stand in for the module, so that the compiler says what is missing. They have the same
// initializers: what does not fit any would be the first thing that it complains of.

/// Needs the trait `LMDB` of the package Larder, which is off.
@available(*, unavailable, message: "turn on the trait: .package(url: …, from: …, traits: [\"LMDB\"])")
public struct LMDBStore<Value: Sendable> {
  /// Needs the trait `LMDB` of the package Larder, which is off.
  public init(in environment: LMDBEnvironment, name: String = "", createsIfMissing: Bool = true) async throws {}

  /// Needs the trait `LMDB` of the package Larder, which is off.
  public init(
    in environment: LMDBEnvironment, name: String = "", codec: some Codec<Value>, createsIfMissing: Bool = true
  ) async throws {}

  /// Needs the trait `LMDB` of the package Larder, which is off.
  public init(
    path: String, name: String = "", durability: Durability = .synced, createsIfMissing: Bool = true
  ) async throws {}

  /// Needs the trait `LMDB` of the package Larder, which is off.
  public init(
    path: String, name: String = "", codec: some Codec<Value>, durability: Durability = .synced,
    createsIfMissing: Bool = true
  ) async throws {}
}

/// Needs the trait `LMDB` of the package Larder, which is off.
@available(*, unavailable, message: "turn on the trait: .package(url: …, from: …, traits: [\"LMDB\"])")
public struct LMDBEnvironment {
  /// Needs the trait `LMDB` of the package Larder, which is off.
  public init(path: String, durability: Durability = .synced, createsIfMissing: Bool = true) async throws {}
}

/// Needs the trait `LMDB` of the package Larder, which is off.
@available(*, unavailable, message: "turn on the trait: .package(url: …, from: …, traits: [\"LMDB\"])")
public struct LMDBStoreProvider {
  /// Needs the trait `LMDB` of the package Larder, which is off.
  public init() {}
}
#endif
