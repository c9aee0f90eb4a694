#if Postgres
import Foundation
public import Larder

/// A PostgreSQL database: a server that holds named stores and queues of different value types, which many hosts share,
/// with transactions across them.
///
/// ```swift
/// let database = try await PostgresDatabase("postgresql://shop@db.example/shop")
/// let customers = try await PostgresStore<Customer>(in: database, name: "customers")
/// let orders = try await PostgresStore<Order>(in: database, name: "orders")
///
/// try await database.write { transaction in
///   try await transaction.setValue(customer, forKey: "7", in: customers)
///   try await transaction.setValue(order, forKey: "7/1", in: orders)
/// }
/// ```
///
/// ## Connections
///
/// The database keeps a pool of connections that are made when they are needed and made again when they are lost. Each
/// call has a connection for itself. While the server accepts no further connection, calls wait for those that exist. No
/// thread of Swift's cooperative pool waits for the server: one thread waits for the answers on all connections, and each
/// connection is made on a thread of its own.
///
/// The library libpq makes the connections. It reads the `PG…` variables and `~/.pgpass`, and knows TLS, several hosts
/// and `target_session_attrs`. See
/// [its keywords](https://www.postgresql.org/docs/current/libpq-connect.html#LIBPQ-PARAMKEYWORDS).
///
/// ## Lost connections
///
/// A read is repeated on another connection. A write whose connection is lost before the commit is repeated, because
/// nothing was changed. If the connection is lost during the commit, the server is asked what became of the transaction.
/// Only if it does not tell does the write throw an error with the outcome `unknown`.
public final class PostgresDatabase: Sendable {
  let handle: PostgresHandle

  /// The name of the database in error messages, without host, user or password.
  public var name: String { handle.name }

  /// Connects to a database.
  ///
  /// ```swift
  /// let database = try await PostgresDatabase(
  ///   "host=db.example dbname=shop user=shop", schema: "larder", connections: 16, timeout: .seconds(10))
  /// ```
  ///
  /// - Parameters:
  ///   - connection: The keywords or the URI of the connection, such as `host=db.example dbname=shop` or
  ///     `postgresql://db.example/shop`. Defaults to an empty string, for the `PG…` variables and libpq's defaults.
  ///   - schema: The schema with the tables of the stores and queues. It must exist. Defaults to `public`. It is also
  ///     the search path of your own SQL.
  ///   - durability: The durability of a write when it returns. Defaults to `Durability.File.synced`. It waits for the
  ///     disk of the server, and for other servers if it replicates synchronously (`synchronous_commit = on`). With
  ///     `Durability.File.buffered` (`off`), a crash of the server may discard the latest transactions.
  ///   - isolation: The isolation of transactions. Defaults to ``PostgresIsolation/readCommitted``.
  ///   - access: The access of the stores to their data. Defaults to `StoreAccess.readWrite`.
  ///     With any other access, nothing is created, and the server refuses every write.
  ///   - connections: The number of connections that stores and queues share, at least 1. Defaults to 8. While all are
  ///     taken, a store or a queue without one gets one more, so others that wait for a lock don't stop it.
  ///   - timeout: The time limit of each call. It includes waiting for a connection and for locks, and repetitions. In a
  ///     transaction, each of its calls has this limit. A call whose values are on their way over a slow line may take
  ///     longer. Defaults to 30 seconds.
  ///   - onConnectionEvent: A closure that is called after each event of the connections, in any order and on any thread.
  ///     It must return quickly, because answers to other calls wait for it. Defaults to one that does nothing.
  /// - Throws: `StoreError`: `invalidArgument` if the connection cannot be parsed, or if a number is not positive;
  ///   `notFound` if the database or the schema does not exist; `notPermitted` if the server refuses the user or the
  ///   password; `timedOut`; `ioFailed` if no server can be reached. `CancellationError`.
  public init(
    _ connection: String = "", schema: String = "public", durability: Durability.File = .synced,
    isolation: PostgresIsolation = .readCommitted, access: StoreAccess = .readWrite, connections: Int = 8,
    timeout: Duration = .seconds(30),
    onConnectionEvent: @escaping @Sendable (PostgresConnectionEvent) -> Void = { _ in }
  ) async throws {
    func refusal(_ message: String) -> StoreError {
      StoreError(.invalidArgument, during: .open, store: "postgres", message: message)
    }
    guard connections > 0 else { throw refusal("connections must be at least 1, not \(connections)") }
    guard timeout >= .milliseconds(1) else { throw refusal("timeout must be at least 1 millisecond, not \(timeout)") }
    // The library's own message would show a part of the text, which may be a password.
    guard PostgresDatabase.canParse(connection) else {
      throw refusal("the connection is neither a list of keywords nor a URI that libpq understands")
    }
    let configuration = SessionConfiguration(
      connection: connection, schema: schema, durability: durability, isolation: isolation, access: access,
      timeout: timeout)
    do {
      let pool = try SessionPool(configuration, limit: connections, onEvent: onConnectionEvent)
      let facts = try await PostgresDatabase.connect(pool)
      let isSynced = durability == .synced && facts.isSynced
      handle = PostgresHandle(
        pool,
        information: StoreInformation(
          name: facts.databaseName, durability: isSynced ? .synced : .buffered, sharing: .betweenHosts, access: access,
          maximumValueSize: PostgresDatabase.maximumValueSize, entryLifetime: .untilRemoved, readsMayBeCopies: false))
    } catch let error as PostgresError {
      throw StoreError(error, during: .open, store: "postgres", message: "the database cannot be opened")
    }
  }

  /// The maximum size of a value, in bytes.
  ///
  /// PostgreSQL keeps at most 1 GiB in a row, and several copies while it writes.
  private static var maximumValueSize: Int { 256 << 20 }

  private static func canParse(_ connection: String) -> Bool {
    // A name alone is the name of a database.
    ConnectionOptions.parsed(connection) != nil || !connection.contains("=") && !connection.contains("://")
  }

  /// Returns whether a connection contains a password.
  static func hasPassword(_ connection: String) -> Bool {
    let options = ConnectionOptions.parsed(connection) ?? [:]
    return options["password"] != nil || options["sslpassword"] != nil
  }

  /// Connects for the first time.
  ///
  /// - Throws: ``PostgresError``; `CancellationError`.
  private static func connect(_ pool: SessionPool) async throws -> Session.Facts {
    let schema = pool.configuration.schema
    let query = Statement("SELECT 1 FROM pg_namespace WHERE nspname = $1", .text(schema))
    do {
      return try await pool.withSession(
        for: ObjectIdentifier(pool), until: .now + pool.configuration.timeout
      ) { session in
        let response = await session.run(Request(statements: [query]))
        switch response.failure {
        case nil where response.results[0].rowCount == 1: return session.facts
        case nil:
          throw PostgresError(sqlState: "3D000", message: "the schema \(schema) does not exist; create it first")
        case .refused(let error), .notSent(let error), .lost(let error): throw error
        case .timedOut: throw PostgresError.late
        }
      }
    } catch let failure as FailedAttempt {
      throw failure.error
    } catch is SessionPool.PoolTimeout {
      throw PostgresError.late
    }
  }

  /// Returns the state of the connections at present, for a health page or for metrics.
  ///
  /// ```swift
  /// let connections = database.statistics()
  /// print("\(connections.busy) of \(connections.connected) are busy, \(connections.waiting) calls wait")
  /// ```
  public func statistics() -> PostgresConnectionStatistics { handle.pool.statistics }

  // MARK: Transactions

  /// Runs a closure in a transaction that reads one snapshot.
  ///
  /// The transaction is `REPEATABLE READ`, or `SERIALIZABLE` with that isolation. The closure may run more than once.
  ///
  /// ```swift
  /// let (customer, order) = try await database.read { transaction in
  ///   let customer = try await transaction.value(forKey: "7", in: customers)
  ///   return (customer, try await transaction.value(forKey: "7/1", in: orders))
  /// }
  /// ```
  ///
  /// - Parameter body: A closure that receives the transaction, which only reads.
  /// - Returns: The result of `body`.
  /// - Throws: The error that `body` throws. `StoreError`: `closed`; `conflict`; `timedOut`; `ioFailed`.
  ///   `CancellationError` if the task is cancelled before the transaction begins.
  public func read<Result: Sendable>(
    _ body: (PostgresTransaction) async throws -> Result
  ) async throws -> Result {
    try await handle.running(.read) {
      try await handle.transaction(for: .read, isReading: true) { session, _ in
        TransactionEnd(result: try await body(PostgresTransaction(session, of: handle)), commits: false)
      }
    }
  }

  /// Runs a closure in a transaction that reads and writes, and commits it.
  ///
  /// If the closure throws, nothing is changed. With ``PostgresIsolation/readCommitted``, each read of the closure sees
  /// what is committed at that moment; to change a value that you have read, use
  /// ``PostgresTransaction/update(_:in:_:)``. It locks its keys. The transaction may be repeated because of others, so
  /// the closure may run more than once.
  ///
  /// ```swift
  /// try await database.write { transaction in
  ///   try await transaction.execute("DELETE FROM carts WHERE customer = $1", ["7"])
  ///   try await transaction.removeAll(in: .prefix("7/"), of: orders)
  /// }
  /// ```
  ///
  /// - Parameter body: A closure that receives the transaction. It should not wait for anything but the transaction,
  ///   because others may wait for its locks.
  /// - Returns: The result of `body`.
  /// - Throws: The error that `body` throws. `StoreError`: `notPermitted`; `closed`; `conflict` after 20 attempts;
  ///   `full`; `timedOut`; `ioFailed`. `CancellationError` if the task is cancelled before the transaction begins.
  @discardableResult
  public func write<Result: Sendable>(
    _ body: (PostgresTransaction) async throws -> Result
  ) async throws -> Result {
    try await handle.running(.write) {
      try handle.information.checkWritable(for: .write)
      return try await handle.transaction(for: .write) { session, _ in
        TransactionEnd(result: try await body(PostgresTransaction(session, of: handle)))
      }
    }
  }

  // MARK: Stores

  /// Returns the names of the stores in the schema, in order.
  ///
  /// ```swift
  /// for name in try await database.storeNames() {
  ///   print(name, try await database.codecName(ofStore: name) ?? "no codec")
  /// }
  /// ```
  ///
  /// - Throws: `StoreError`: `closed`; `timedOut`; `ioFailed`.
  public func storeNames() async throws -> [String] {
    try await handle.running(.storeNames) { try await StoreCatalog(handle, store: name).names(for: .storeNames) }
  }

  /// Returns the name of the codec that is recorded for a store.
  ///
  /// - Parameter name: The name of the store.
  /// - Returns: The name, or `nil` if there is no such store or if no codec is recorded for it.
  /// - Throws: `StoreError`: `closed`; `timedOut`; `ioFailed`.
  public func codecName(ofStore name: String) async throws -> String? {
    try await handle.running(.open) { try await StoreCatalog(handle, store: self.name).record(of: name)?.codecName }
  }

  /// Returns the name of the codec that is recorded for a queue.
  ///
  /// - Parameter name: The name of the queue.
  /// - Returns: The name, or `nil` if there is no such queue.
  /// - Throws: `StoreError`: `unsupported` if the schema has something else of that name; `closed`; `timedOut`; `ioFailed`.
  public func codecName(ofQueue name: String) async throws -> String? {
    try await handle.running(.open) { try await QueueCatalog(handle, queue: name).codecName() }
  }

  /// Waits for running operations, then closes the database, the stores and the queues that were opened in it.
  ///
  /// Closing again is a no-op. The call ignores cancellation.
  public func close() async {
    await handle.close()
  }
}

extension PostgresDatabase: CustomStringConvertible {
  /// The type and the name of the database.
  public var description: String { "PostgresDatabase(\(name))" }
}

/// The isolation of the transactions of a ``PostgresDatabase``.
public enum PostgresIsolation: Sendable, Hashable, CaseIterable {
  /// Each statement sees what was committed before it, and an update locks its keys first. The default.
  case readCommitted

  /// All transactions take effect as if they ran one after another, for engines that know no other isolation, such as
  /// CockroachDB. The server refuses those that it cannot order, and they are repeated.
  case serializable
}

/// The connections of a ``PostgresDatabase`` at one moment, and counts of their events since it was opened.
///
/// Calls that wait although few connections are busy show that the server accepts no more. Many repetitions show conflicts,
/// or connections that are lost.
public struct PostgresConnectionStatistics: Sendable, Hashable {
  /// The number of connections.
  public let connected: Int

  /// The number of connections that serve a call or a transaction, or that are being made for one.
  public let busy: Int

  /// The number of calls that wait for a connection.
  public let waiting: Int

  /// How often a connection was made, also again after it was lost.
  public let connects: Int

  /// How often no connection could be made.
  public let failures: Int

  /// How often a call was repeated, because of a conflict or a lost connection.
  public let repeats: Int
}

/// Something that happened to the connections of a ``PostgresDatabase``.
///
/// Its description is one line for a log, without keys, values, users or passwords.
///
/// ```swift
/// let database = try await PostgresDatabase("postgresql://db.example/shop") { event in
///   logger.info("\(event)")
/// }
/// ```
public enum PostgresConnectionEvent: Sendable, Hashable {
  /// A connection was made, also again after one was lost. The duration is that of connecting.
  case connected(after: Duration)

  /// No connection could be made.
  case connectionFailed(PostgresError)

  /// A connection was lost: the server or the network ended it, or a call gave it up.
  ///
  /// Connections that the database itself closes because they are unused are not reported.
  case disconnected(PostgresError)

  /// A call has waited for a connection for at least a second. It may have given up then.
  case waited(Duration)

  /// A call is repeated, because of a conflict or a lost connection.
  case repeated(PostgresError)

  /// The changes of other hosts could not be read for at least five seconds, so caches ask the server for each value.
  ///
  /// It is reported once, until they can be read again.
  case changesUnread(Duration)
}

extension PostgresConnectionEvent: CustomStringConvertible {
  /// One line for a log.
  public var description: String {
    switch self {
    case .connected(let duration): "connected to PostgreSQL after \(duration.rounded)"
    case .connectionFailed(let error): "cannot connect to PostgreSQL: \(error)"
    case .disconnected(let error): "lost a connection to PostgreSQL: \(error)"
    case .waited(let duration): "a call waited \(duration.rounded) for a connection to PostgreSQL"
    case .repeated(let error): "repeating a call to PostgreSQL: \(error)"
    case .changesUnread(let duration): "cannot read the changes of other hosts from PostgreSQL for \(duration.rounded)"
    }
  }
}

extension Duration {
  /// The duration in milliseconds.
  fileprivate var rounded: String { "\(wholeMicroseconds / 1000) ms" }
}
#endif
