#if !SQLite
public import Larder

// When the trait is off, these types stand in for the module so that the compiler names what is missing. They have the
// same initializers; otherwise the compiler would complain first about an initializer that does not match.

/// A placeholder: this type needs the trait `SQLite` of the package Larder, which is off.
@available(*, unavailable, message: "turn on the trait: .package(url: …, from: …, traits: [\"SQLite\"])")
public struct SQLiteStore<Value: Sendable> {
  /// A placeholder: needs the trait `SQLite`.
  public init(in database: SQLiteDatabase, name: String = "", createsIfMissing: Bool = true) async throws {}

  /// A placeholder: needs the trait `SQLite`.
  public init(
    in database: SQLiteDatabase, name: String = "", codec: some Codec<Value>, createsIfMissing: Bool = true
  ) async throws {}

  /// A placeholder: needs the trait `SQLite`.
  public init(
    path: String, name: String = "", durability: FileDurability = .synced, createsIfMissing: Bool = true
  ) async throws {}

  /// A placeholder: needs the trait `SQLite`.
  public init(
    path: String, name: String = "", codec: some Codec<Value>, durability: FileDurability = .synced,
    createsIfMissing: Bool = true
  ) async throws {}
}

/// A placeholder: this type needs the trait `SQLite` of the package Larder, which is off.
@available(*, unavailable, message: "turn on the trait: .package(url: …, from: …, traits: [\"SQLite\"])")
public struct SQLiteDatabase {
  /// A placeholder: needs the trait `SQLite`.
  public init(path: String, durability: FileDurability = .synced, createsIfMissing: Bool = true) async throws {}
}

/// A placeholder: this type needs the trait `SQLite` of the package Larder, which is off.
@available(*, unavailable, message: "turn on the trait: .package(url: …, from: …, traits: [\"SQLite\"])")
public struct SQLiteStoreProvider {
  /// A placeholder: needs the trait `SQLite`.
  public init() {}
}
#endif
