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
    let (connection, name) = try PostgresStoreProvider.namedParts(of: url)
    let database = try await PostgresDatabase(connection, durability: options.durability, access: options.access)
    return try await UntypedTable(
      in: database, isOwned: true, name: name, createsIfMissing: options.createsIfMissing, newCodecName: newCodecName)
  }

  /// Returns the connection of a URL, alone or with a store in it.
  ///
  /// - Parameter url: The URL, such as `postgres:users`, `postgres:host=db.example#users` or `postgres:host=db.example`.
  /// - Returns: The connection, which is an empty string for that of the `PG…` variables.
  /// - Throws: `StoreError`: `invalidArgument` if the URL has a password.
  public func connection(of url: StoreURL) throws -> String {
    try PostgresStoreProvider.parts(of: url).connection
  }

  /// Returns the connection and the name of a store or a queue, which is `nil` if it is missing.
  ///
  /// - Throws: ``StoreError`` with `invalidArgument` if the URL has a password.
  static func parts(of url: StoreURL) throws -> (connection: String, name: String?) {
    let location = url.location
    guard location.contains("=") || location.contains("://") else { return ("", location) }
    let separator = location.lastIndex(of: "#")
    let connection = String(location[..<(separator ?? location.endIndex)])
    guard !PostgresDatabase.hasPassword(connection) else {
      // URLs are shown in errors and in lists of processes.
      throw StoreError(
        .invalidArgument, during: .open, store: url.scheme,
        message: "a URL cannot have a password; give it in PGPASSWORD or in ~/.pgpass")
    }
    return (connection, separator.map { String(location[location.index(after: $0)...]) })
  }

  /// Returns the connection and the name of a store or a queue.
  ///
  /// - Throws: ``StoreError`` with `invalidArgument` if the URL has no name, or has a password.
  static func namedParts(of url: StoreURL) throws -> (connection: String, name: String) {
    let (connection, name) = try parts(of: url)
    guard let name else {
      throw StoreError(
        .invalidArgument, during: .open, store: url.scheme,
        message: "append the name of the store to the connection, as in \(url.scheme):postgresql://host/database#users")
    }
    return (connection, name)
  }
}
#endif
