#if !SQLite
public import Larder

// When the trait is off, these types stand in for the module so that the compiler names what is missing. Each initializer
// has the parameters of several of the module's; without one that matches, the compiler would complain about that first.

/// A placeholder: this type needs the trait `SQLite` of the package Larder.
@available(*, unavailable, message: "turn on the trait: .package(url: …, from: …, traits: [\"SQLite\"])")
public struct SQLiteStore<Value: Sendable> {
  /// A placeholder: needs the trait `SQLite`.
  public init(
    in database: SQLiteDatabase? = nil, path: String = "", name: String = "", layout: SQLiteTableLayout = .ordinary,
    durability: Durability.File = .synced, access: StoreAccess = .readWrite, createsIfMissing: Bool = true,
    busyTimeout: Duration = .seconds(5)
  ) async throws {}

  /// A placeholder: needs the trait `SQLite`.
  public init(
    in database: SQLiteDatabase? = nil, path: String = "", name: String = "", codec: some Codec<Value>,
    layout: SQLiteTableLayout = .ordinary, durability: Durability.File = .synced, access: StoreAccess = .readWrite,
    createsIfMissing: Bool = true, busyTimeout: Duration = .seconds(5)
  ) async throws {}
}

/// A placeholder: this type needs the trait `SQLite` of the package Larder.
@available(*, unavailable, message: "turn on the trait: .package(url: …, from: …, traits: [\"SQLite\"])")
public struct SQLiteDatabase {
  /// A placeholder: needs the trait `SQLite`.
  public init(
    path: String, durability: Durability.File = .synced, access: StoreAccess = .readWrite,
    createsIfMissing: Bool = true, busyTimeout: Duration = .seconds(5), logSizeLimit: Int = 16 << 20,
    prepare: (@Sendable (borrowing SQLiteConnectionSetup) throws -> Void)? = nil
  ) async throws {}
}

/// A placeholder: this type needs the trait `SQLite` of the package Larder.
@available(*, unavailable, message: "turn on the trait: .package(url: …, from: …, traits: [\"SQLite\"])")
public struct SQLiteConnectionSetup: ~Copyable {}

/// A placeholder: this type needs the trait `SQLite` of the package Larder.
public enum SQLiteTableLayout: String, Sendable {
  /// A placeholder: needs the trait `SQLite`.
  case ordinary

  /// A placeholder: needs the trait `SQLite`.
  case clustered
}

/// A placeholder: this type needs the trait `SQLite` of the package Larder.
@available(*, unavailable, message: "turn on the trait: .package(url: …, from: …, traits: [\"SQLite\"])")
public struct SQLiteStoreProvider {
  /// A placeholder: needs the trait `SQLite`.
  public init(layout: SQLiteTableLayout = .ordinary, busyTimeout: Duration = .seconds(5)) {}
}
#endif
