#if Postgres
public import Larder

/// A provider that opens ``PostgresStore``s for `StoreRegistry`, for URLs such as `postgres:users` and
/// `postgres:postgresql://db.example/shop#orders`.
public struct PostgresStoreProvider: StoreProvider {
  /// Creates the provider.
  public init() {}

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
  /// keywords such as `host=db.example dbname=shop`. The schema is `public`.
  ///
  /// - Throws: `StoreError`: `invalidArgument` if the name is missing; the errors of opening a ``PostgresDatabase`` and a
  ///   ``PostgresStore``.
  public func open(
    _ url: StoreURL, options: StoreOptions, newCodecName: String?
  ) async throws -> some UntypedStore {
    let (connection, name) = try PostgresStoreProvider.parts(of: url)
    let database = try await PostgresDatabase(connection, durability: options.durability, access: options.access)
    return try await UntypedTable(
      in: database, isOwned: true, name: name, createsIfMissing: options.createsIfMissing, newCodecName: newCodecName)
  }

  /// Returns the connection and the name of a store or a queue.
  ///
  /// - Throws: ``StoreError`` with `invalidArgument`.
  static func parts(of url: StoreURL) throws -> (connection: String, name: String) {
    let location = url.location
    guard location.contains("=") || location.contains("://") else { return ("", location) }
    guard let separator = location.lastIndex(of: "#") else {
      throw StoreError(
        .invalidArgument, during: .open, store: url.scheme,
        message: "append the name of the store to the connection, as in \(url.scheme):postgresql://host/database#users")
    }
    return (String(location[..<separator]), String(location[location.index(after: separator)...]))
  }
}
#endif
