#if Postgres
import Foundation
public import Larder

/// The place that a URL such as `postgres:users` or `postgres-queue:host=db.example#app/jobs` names: a connection, a schema,
/// and a store or a queue, if it has a name.
///
/// ```swift
/// let location = try PostgresLocation(StoreURL("postgres:host=db.example#app/users"))
/// let database = try await location.open(access: .readOnly)
/// ```
public struct PostgresLocation: Sendable, Hashable {
  /// The connection, or an empty string to use the `PG…` variables.
  public let connection: String

  /// The schema, or `public` if the URL does not name one.
  public let schema: String

  /// The name of the store or the queue, or `nil` if the URL names only the connection and perhaps the schema.
  public let name: String?

  private let scheme: String

  /// Parses a URL; see ``PostgresStoreProvider/open(_:options:newCodecName:)``.
  ///
  /// - Throws: `StoreError` with `invalidArgument` if the URL has a password or cannot be parsed.
  public init(_ url: StoreURL) throws {
    scheme = url.scheme
    let location = url.location
    guard location.contains("=") || location.contains("://") || location.hasPrefix("#") else {
      (connection, schema, name) = ("", PostgresLocation.defaultSchema, location)
      return
    }
    let separator = location.lastIndex(of: "#")
    connection = String(location[..<(separator ?? location.endIndex)])
    func refusal(_ message: String) -> StoreError {
      StoreError(.invalidArgument, during: .open, store: url.scheme, message: message)
    }
    // URLs are shown in errors and in lists of processes.
    guard !PostgresDatabase.hasPassword(connection) else {
      throw refusal("a URL cannot have a password; give it in PGPASSWORD or in ~/.pgpass")
    }
    let parts = separator.map {
      location[location.index(after: $0)...].split(separator: "/", omittingEmptySubsequences: false)
    }
    let decoded = try parts?.map { part in
      guard let text = part.removingPercentEncoding else {
        throw refusal("write a percent sign of a name as %25, and a slash as %2F")
      }
      return text
    }
    guard decoded?.count ?? 0 <= 2 else { throw refusal("behind # is a name, or a schema, a slash, and a name") }
    schema = decoded.flatMap { $0.count == 2 ? $0[0] : nil } ?? PostgresLocation.defaultSchema
    name = decoded?.last.flatMap { $0.isEmpty ? nil : $0 }
  }

  private static let defaultSchema = "public"

  /// The name of the store or the queue.
  ///
  /// - Throws: ``StoreError`` with `invalidArgument` if there isn't one.
  var requiredName: String {
    get throws {
      guard let name else {
        throw StoreError(
          .invalidArgument, during: .open, store: scheme,
          message: "append the name of the store to the connection, as in \(scheme):postgresql://host/database#users")
      }
      return name
    }
  }

  /// Connects to the database.
  ///
  /// - Parameters:
  ///   - durability: The durability of a write when it returns. Defaults to `Durability.File.synced`.
  ///   - access: The access of the stores to their data.
  /// - Throws: The errors of opening a ``PostgresDatabase``.
  public func open(durability: Durability.File = .synced, access: StoreAccess) async throws -> PostgresDatabase {
    try await PostgresDatabase(connection, schema: schema, durability: durability, access: access)
  }

  /// Returns the URL of a store or a queue in the same schema.
  ///
  /// - Parameter name: The name.
  public func url(named name: String) -> String {
    let isPlain = !name.contains("=") && !name.contains("://") && !name.hasPrefix("#")
    if connection.isEmpty, schema == PostgresLocation.defaultSchema, isPlain { return "\(scheme):\(name)" }
    func encoded(_ text: String) -> String {
      text.replacing("%", with: "%25").replacing("/", with: "%2F").replacing("#", with: "%23")
    }
    let prefix = schema == PostgresLocation.defaultSchema ? "" : "\(encoded(schema))/"
    return "\(scheme):\(connection)#\(prefix)\(encoded(name))"
  }
}
#endif
