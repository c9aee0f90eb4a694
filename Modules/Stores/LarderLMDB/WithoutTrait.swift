#if !LMDB
public import Larder

// When the trait is off, these types stand in for the module so that the compiler names what is missing. Each initializer
// has the parameters of several of the module's; without one that matches, the compiler would complain about that first.

/// A placeholder: this type needs the trait `LMDB` of the package Larder.
@available(*, unavailable, message: "turn on the trait: .package(url: …, from: …, traits: [\"LMDB\"])")
public struct LMDBStore<Value: Sendable> {
  /// A placeholder: needs the trait `LMDB`.
  public init(
    in environment: LMDBEnvironment? = nil, path: String = "", name: String = "", contents: String? = nil,
    durability: Durability.File = .synced, access: StoreAccess = .readWrite, createsIfMissing: Bool = true
  ) async throws {}

  /// A placeholder: needs the trait `LMDB`.
  public init(
    in environment: LMDBEnvironment? = nil, path: String = "", name: String = "", codec: some Codec<Value>,
    contents: String? = nil, durability: Durability.File = .synced, access: StoreAccess = .readWrite,
    createsIfMissing: Bool = true
  ) async throws {}
}

/// A placeholder: this type needs the trait `LMDB` of the package Larder.
@available(*, unavailable, message: "turn on the trait: .package(url: …, from: …, traits: [\"LMDB\"])")
public struct LMDBEnvironment {
  /// A placeholder: needs the trait `LMDB`.
  public init(
    path: String, durability: Durability.File = .synced, access: StoreAccess = .readWrite,
    createsIfMissing: Bool = true, busyTimeout: Duration? = nil
  ) async throws {}
}

/// A placeholder: this type needs the trait `LMDB` of the package Larder.
@available(*, unavailable, message: "turn on the trait: .package(url: …, from: …, traits: [\"LMDB\"])")
public struct LMDBStoreProvider {
  /// A placeholder: needs the trait `LMDB`.
  public init(busyTimeout: Duration? = nil, examinesPages: Bool = false, findsPossiblyOlder: Bool = false) {}
}
#endif
