#if Postgres
import Larder
import LarderPostgres
import TestSupport
import Testing

/// A database in a schema of its own, on the server that the tests share.
struct Setting: Sendable {
  let server: PostgresServer
  let schema: String
  let database: PostgresDatabase

  /// Runs a closure with a new database, which is closed afterward.
  ///
  /// - Parameter ownServer: The server; `nil`, the default, for the one that the tests share.
  static func run(
    on ownServer: PostgresServer? = nil, connections: Int = 4, isolation: PostgresIsolation = .readCommitted,
    timeout: Duration = .seconds(30),
    _ body: (Setting) async throws -> Void
  ) async throws {
    let server =
      if let ownServer { ownServer } else { try await PostgresServer.shared }
    let schema = try await server.newSchema()
    let database = try await PostgresDatabase(
      "\(server.connectionString) application_name=\(schema)", schema: schema, isolation: isolation,
      connections: connections, timeout: timeout)
    do {
      try await body(Setting(server: server, schema: schema, database: database))
    } catch {
      await database.close()
      throw error
    }
    await database.close()
  }

  /// Runs a closure with a database behind a proxy, in a schema of its own.
  ///
  /// - Parameter server: The server; `nil`, the default, for a local one that the tests share.
  static func runBehindProxy(
    on server: PostgresServer? = nil, connections: Int = 1,
    _ body: (PostgresProxy, PostgresDatabase, Setting) async throws -> Void
  ) async throws {
    // A proxy needs the socket of a local server.
    let server = if let server { server } else { try await PostgresServer.local }
    try await run(on: server) { setting in
      let proxy = try PostgresProxy(setting.server)
      let database = try await PostgresDatabase(
        "\(proxy.connectionString) application_name=\(setting.schema)", schema: setting.schema, connections: connections
      )
      do {
        try await body(proxy, database, setting)
      } catch {
        await database.close()
        await proxy.close()
        throw error
      }
      await database.close()
      await proxy.close()
    }
  }

  /// Waits until a number of sessions of this schema wait for a lock.
  func waitForBlocked(_ count: Int) async throws {
    let query = """
      SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND application_name = '\(schema)'
      """
    try await waitUntil { try await Int(server.run(psql: query)) ?? 0 >= count }
  }

  /// Runs SQL of another program in the schema.
  @discardableResult
  func psql(_ sql: String) async throws -> String {
    try await server.run(psql: "SET search_path = \(schema); \(sql)")
  }
}

extension PostgresServer {
  /// Runs a closure with a server of its own, which is closed afterward.
  ///
  /// The server does not wait for its disk, because no test cuts the power.
  ///
  /// - Parameter settings: Further server parameters by their names.
  static func withOwn(settings: [String: String] = [:], _ body: (PostgresServer) async throws -> Void) async throws {
    let server = try await PostgresServer(settings: settings.merging(["fsync": "off"]) { $1 })
    do {
      try await body(server)
    } catch {
      try await server.close()
      throw error
    }
    try await server.close()
  }
}
#endif
