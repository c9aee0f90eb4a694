#if Postgres
public import Larder

/// A provider that opens ``PostgresQueue``s for `StoreRegistry`, for URLs such as `postgres-queue:jobs` and
/// `postgres-queue:postgresql://db.example/shop#jobs`.
///
/// ```swift
/// let registry = StoreRegistry(providers: [PostgresQueueProvider()])
/// let untyped = try await registry.open(StoreURL("postgres-queue:host=db.example#app/jobs"))
/// ```
public struct PostgresQueueProvider: StoreProvider {
  /// The name of the default codec of new queues.
  public let codecName: String

  /// Creates a provider.
  ///
  /// - Parameter codecName: The name of the default codec of new queues. Defaults to `cbor`.
  public init(codecName: String = "cbor") {
    self.codecName = codecName
  }

  /// The scheme `postgres-queue`.
  public var scheme: String { "postgres-queue" }

  /// A one-line description of the queues.
  public var summary: String { "a queue in PostgreSQL, NAME or CONNECTION#NAME, as for postgres:" }

  /// `true`.
  public var opensQueues: Bool { true }

  /// Opens the queue that a URL names, with a default ``PostgresQueueConfiguration``.
  ///
  /// - Throws: `StoreError`: `invalidArgument` if the name is missing or the URL has a password; `notFound`; the errors of
  ///   opening a ``PostgresDatabase``.
  public func open(
    _ url: StoreURL, options: StoreOptions, newCodecName: String?
  ) async throws -> UntypedPostgresQueue {
    let location = try PostgresLocation(url)
    let name = try location.requiredName
    let database = try await location.open(durability: options.durability, access: options.access)
    do {
      let recorded = try await database.codecName(ofQueue: name)
      guard recorded != nil || (options.createsIfMissing && options.access == .readWrite) else {
        throw StoreError(
          .notFound, during: .open, store: "\(database.name)#\(name)", message: "the database has no queue of this name"
        )
      }
      return UntypedPostgresQueue(database: database, name: name, codecName: recorded ?? newCodecName ?? codecName)
    } catch {
      await database.close()
      throw error
    }
  }
}

/// A queue whose type of items is not chosen yet, which ``PostgresQueueProvider`` opens.
public struct UntypedPostgresQueue: UntypedStore {
  let database: PostgresDatabase
  let name: String

  /// The name of the codec that the queue was written with, or of the one that a new queue records.
  public let codecName: String

  /// Returns the queue as a queue of items of one type.
  ///
  /// It closes its connections when it is closed.
  ///
  /// - Parameter codec: The codec of the items.
  /// - Throws: `StoreError`: `versionMismatch` if the codec has a different name than the queue's codec; the errors of
  ///   opening a ``PostgresQueue``.
  public func queue<Element: Sendable>(codec: some Codec<Element>) async throws -> PostgresQueue<Element> {
    do {
      return try await PostgresQueue(in: database, isOwned: true, name: name, codec: codec)
    } catch {
      await database.close()
      throw error
    }
  }

  /// Returns the queue as a store of values of one type; see ``queue(codec:)``.
  public func typed<Value: Sendable>(codec: some Codec<Value>) async throws -> AnyDataStore<Value> {
    AnyDataStore(try await queue(codec: codec))
  }
}
#endif
