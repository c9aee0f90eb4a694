#if Postgres
import Foundation
import Larder

/// The configuration that all sessions of a database share.
struct SessionConfiguration: Sendable {
  /// The keywords or the URI of the connection, which may hold a password.
  let connection: String

  /// One of several hosts.
  struct Host: Sendable, Equatable {
    var name: String
    var port: String
  }

  /// The hosts of the connection if it names several, or none.
  ///
  /// Each gets its share of the time limit, because the library would spend all of it on the first one.
  var hosts: [Host] = []

  /// The schema that holds the tables.
  let schema: String

  var durability: FileDurability
  let isolation: PostgresIsolation
  let access: StoreAccess

  /// The time limit of a statement, of making a connection, and of waiting for a session.
  let timeout: Duration

  /// The name of the schema for SQL.
  var quotedSchema: String { SessionConfiguration.quoted(schema) }

  /// The statements that set up a session, so that it does not depend on the defaults of the role or of the database.
  ///
  /// Only a role whose commits also wait until standbys have applied them (`remote_apply`) keeps that.
  var setup: String {
    let milliseconds = max(1, timeout.microseconds / 1000)
    let isolation = isolation == .readCommitted ? "read committed" : "serializable"
    let syncing = """
      SELECT set_config('synchronous_commit',
        CASE current_setting('synchronous_commit', true) WHEN 'remote_apply' THEN 'remote_apply' ELSE 'on' END, false)
      """
    return """
      SET search_path = \(quotedSchema);
      SET default_transaction_isolation = '\(isolation)';
      SET default_transaction_deferrable = off;
      SET default_transaction_read_only = \(access == .readWrite ? "off" : "on");
      \(durability == .synced ? syncing : "SET synchronous_commit = off");
      SET statement_timeout = \(milliseconds);
      SET lock_timeout = 0;
      SELECT set_config(name, '0', false) FROM pg_settings WHERE name IN ('idle_session_timeout', 'transaction_timeout');
      SET idle_in_transaction_session_timeout = \(milliseconds)
      """
  }

  /// Returns the hosts of lists such as those of libpq: names, and one port for all or one for each.
  static func hosts(named names: String, ports: String) -> [Host] {
    let names = names.split(separator: ",", omittingEmptySubsequences: false).map { String($0) }
    let ports = ports.split(separator: ",", omittingEmptySubsequences: false).map { String($0) }
    guard names.count > 1, ports.count == 1 || ports.count == names.count else { return [] }
    return names.indices.map { Host(name: names[$0], port: ports.count == 1 ? ports[0] : ports[$0]) }
  }

  /// Returns a name as an identifier for SQL.
  static func quoted(_ name: String) -> String {
    "\"" + name.replacingOccurrences(of: "\"", with: "\"\"") + "\""
  }
}
#endif
