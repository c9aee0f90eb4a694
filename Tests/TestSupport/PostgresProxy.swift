import Larder
import Foundation

/// A proxy in front of a PostgreSQL server that counts round trips, delays messages and cuts connections.
///
/// It listens on a Unix socket in a folder of its own, and follows every connection with a ``PostgresConversation``.
package final class PostgresProxy: Sendable {
  /// A moment of a commit.
  package enum CutInstant: Sendable {
    /// The server has received all messages before the one that commits, and not that one. Both connections are closed.
    case beforeCommit
    /// As ``beforeCommit``, but the connection to the server stays open until the proxy is closed, as when a network is
    /// interrupted. The transaction remains in progress.
    case beforeCommitInNetwork
    /// The server has answered the commit, and the client has received all answers before that one. Both connections are
    /// closed.
    case afterCommit
  }

  /// The connection string for libpq.
  package let connectionString: String

  private let control = ProxyControl()

  /// Starts a proxy.
  ///
  /// - Parameter server: A server of this process.
  package init(_ server: PostgresServer) throws {
    let folder = try server.folder + "/proxy-" + String(UInt32.random(in: 0 ... .max), radix: 36)
    connectionString = PostgresServer.connectionString(folder: folder)
    let sockets = try ProxySockets(folder: folder, server: server.folder + "/.s.PGSQL.5432")
    control.update { $0.alarm = sockets.alarm }
    Thread.detachNewThread { [control] in
      var loop = ProxyLoop(sockets, control)
      loop.run()
    }
  }

  deinit {
    control.update { $0.isClosing = true }
  }

  /// The number of round trips since the start: flights of messages of a client, each followed by an answer.
  ///
  /// Connecting is not counted, nor are the round trips of a connection that listens to notifications or sends some. A
  /// flight that is sent in parts can be answered in parts, and then counts several times. A delay that is longer than the
  /// flight prevents that.
  package var roundTrips: Int { control.read(\.roundTrips) }

  /// The number of connections that the proxy has accepted.
  package var connections: Int { control.read(\.connections) }

  /// The number of cuts of ``cut(_:times:)`` that have not happened.
  package var pendingCuts: Int { control.read(\.pendingCuts) }

  /// Returns the number of round trips, on all connections, that a closure takes.
  package func countRoundTrips(_ body: () async throws -> Void) async rethrows -> Int {
    let start = roundTrips
    try await body()
    return roundTrips - start
  }

  /// Sets the delay of messages that arrive from now on.
  ///
  /// - Parameters:
  ///   - toServer: The delay from a client to the server.
  ///   - toClient: The delay from the server to a client.
  package func delay(toServer: Duration, toClient: Duration) {
    control.update { ($0.delayToServer, $0.delayToClient) = (toServer, toClient) }
  }

  /// Causes the server to refuse `LISTEN` and `pg_notify` from now on, as engines without notifications do.
  package func refuseNotifications() {
    control.update { $0.refusesNotifications = true }
  }

  /// Cuts the connections of the next commits.
  ///
  /// A second call replaces the first one.
  ///
  /// - Parameters:
  ///   - instant: The moment of the commit.
  ///   - times: The number of commits. Defaults to 1. Later ones are not cut.
  package func cut(_ instant: CutInstant, times: Int = 1) {
    control.update { ($0.cutInstant, $0.pendingCuts) = (instant, times) }
  }

  /// Cuts all connections now.
  ///
  /// New ones are accepted.
  package func cutAll() async {
    await withCheckedContinuation { continuation in
      control.update(\.cutters, with: continuation)
    }
  }

  /// Cuts all connections, and stops the proxy.
  ///
  /// A second call does nothing. The proxy is also stopped when the last reference to it is released.
  package func close() async {
    await withCheckedContinuation { continuation in
      control.update(\.closers, with: continuation) { $0.isClosing = true }
    }
  }
}
