#if Postgres
public import Larder

/// A provider that opens ``PostgresStore``s for `StoreRegistry`, for URLs such as `postgres:users` and
/// `postgres:postgresql://db.example/shop#orders`.
///
/// ```swift
/// let registry = StoreRegistry(providers: [PostgresStoreProvider()])
/// let users = try await registry.open("postgres:host=db.example#app/users", codec: .json(User.self))
/// ```
public struct PostgresStoreProvider: StoreProvider {
  private let reportsChanges: Bool

  /// Creates the provider.
  ///
  /// - Parameter reportsChanges: A Boolean value that indicates whether the stores report the changes of all hosts; see
  ///   ``PostgresStore/init(in:name:codec:createsIfMissing:reportsChanges:)``. With `false`, the default, new stores don't,
  ///   and existing ones do what their record says.
  public init(reportsChanges: Bool = false) {
    self.reportsChanges = reportsChanges
  }

  /// The scheme `postgres`.
  public var scheme: String { "postgres" }

  /// A one-line description of the stores.
  public var summary: String {
    "a table in PostgreSQL, NAME with the connection from the PG… variables, or CONNECTION#NAME"
  }

  /// The default codec of new stores, `cbor`.
  public var codecName: String { UntypedTable.defaultCodecName }

  /// Opens the store that a URL names.
  ///
  /// The location is the name of the store, or a connection, `#`, and the name. The connection is a URI, or a list of
  /// keywords such as `host=db.example dbname=shop`; it is empty for that of the `PG…` variables. Behind `#`, a schema other
  /// than `public` stands before the name, as in `#app/users`, and other characters may be percent-encoded, as `%2F` for a
  /// slash of a name.
  ///
  /// - Throws: `StoreError`: `invalidArgument` if the name is missing; `unsupported` if the provider wants the changes of all
  ///   hosts and the store exists without reporting them; the errors of opening a ``PostgresDatabase`` and a
  ///   ``PostgresStore``.
  public func open(
    _ url: StoreURL, options: StoreOptions, newCodecName: String?
  ) async throws -> some UntypedStore {
    let location = try PostgresLocation(url)
    let name = try location.requiredName
    return try await UntypedTable(
      in: location.open(durability: options.durability, access: options.access), isOwned: true, name: name,
      createsIfMissing: options.createsIfMissing, newCodecName: newCodecName, reportsChanges: reportsChanges)
  }
}
#endif
