#if !Postgres
public import Larder

// When the trait is off, these types stand in for the module so that the compiler names what is missing. They have the
// same initializers; otherwise the compiler would complain first about an initializer that does not match.

/// A placeholder: this type needs the trait `Postgres` of the package Larder.
@available(*, unavailable, message: "turn on the trait: .package(url: …, from: …, traits: [\"Postgres\"])")
public final class PostgresDatabase {
  /// A placeholder: needs the trait `Postgres`.
  public init(
    _ connection: String = "", schema: String = "public", durability: Durability.File = .synced,
    isolation: PostgresIsolation = .readCommitted, access: StoreAccess = .readWrite, connections: Int = 8,
    timeout: Duration = .seconds(30),
    onConnectionEvent: @escaping @Sendable (PostgresConnectionEvent) -> Void = { _ in }
  ) async throws {}
}

/// A placeholder: this type needs the trait `Postgres` of the package Larder.
public enum PostgresConnectionEvent: Sendable {}

/// A placeholder: this type needs the trait `Postgres` of the package Larder.
public enum PostgresIsolation: Sendable {
  /// A placeholder: needs the trait `Postgres`.
  case readCommitted

  /// A placeholder: needs the trait `Postgres`.
  case serializable
}

/// A placeholder: this type needs the trait `Postgres` of the package Larder.
@available(*, unavailable, message: "turn on the trait: .package(url: …, from: …, traits: [\"Postgres\"])")
public struct PostgresStore<Value: Sendable> {
  /// A placeholder: needs the trait `Postgres`.
  public init(
    in database: PostgresDatabase, name: String = "", createsIfMissing: Bool = true, reportsChanges: Bool = false
  ) async throws {}

  /// A placeholder: needs the trait `Postgres`.
  public init(
    in database: PostgresDatabase, name: String = "", codec: some Codec<Value>, createsIfMissing: Bool = true,
    reportsChanges: Bool = false
  ) async throws {}
}

/// A placeholder: this type needs the trait `Postgres` of the package Larder.
@available(*, unavailable, message: "turn on the trait: .package(url: …, from: …, traits: [\"Postgres\"])")
public struct PostgresQueue<Element: Sendable> {
  /// A placeholder: needs the trait `Postgres`.
  public init(
    in database: PostgresDatabase, name: String,
    configuration: PostgresQueueConfiguration = PostgresQueueConfiguration(), createsIfMissing: Bool = true
  ) async throws {}

  /// A placeholder: needs the trait `Postgres`.
  public init(
    in database: PostgresDatabase, name: String, codec: some Codec<Element>,
    configuration: PostgresQueueConfiguration = PostgresQueueConfiguration(), createsIfMissing: Bool = true,
    environment: QueueEnvironment = QueueEnvironment()
  ) async throws {}
}

/// A placeholder: this type needs the trait `Postgres` of the package Larder.
public struct PostgresQueueConfiguration: Sendable {
  /// A placeholder: needs the trait `Postgres`.
  public init(policy: QueuePolicy = QueuePolicy(), capacity: Int? = nil, pollInterval: Duration = .seconds(1)) {}
}

/// A placeholder: this type needs the trait `Postgres` of the package Larder.
@available(*, unavailable, message: "turn on the trait: .package(url: …, from: …, traits: [\"Postgres\"])")
public struct PostgresQueueProvider {
  /// A placeholder: needs the trait `Postgres`.
  public init(codecName: String = "cbor") {}
}

/// A placeholder: this type needs the trait `Postgres` of the package Larder.
@available(*, unavailable, message: "turn on the trait: .package(url: …, from: …, traits: [\"Postgres\"])")
public struct PostgresStoreProvider {
  /// A placeholder: needs the trait `Postgres`.
  public init(reportsChanges: Bool = false) {}
}
#endif
