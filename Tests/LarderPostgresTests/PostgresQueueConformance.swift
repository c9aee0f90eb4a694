#if Postgres
import Larder
import LarderCBOR
import LarderPostgres
import LarderTesting
import TestSupport
import Testing

/// A queue that closes its database when it is closed.
private struct DatabaseOwner<Value: Sendable>: PassingStore {
  let base: PostgresQueue<Value>
  let database: PostgresDatabase

  func close() async throws {
    try await base.close()
    await database.close()
  }
}

extension DatabaseOwner: PausableQueue {}
extension DatabaseOwner: InspectableQueue {}
extension DatabaseOwner: MaintainableStore {}

/// The promises of queues, and those of stores.
@Suite(.limitedParallelism, .timeLimit(.minutes(60))) struct PostgresQueueConformance {
  private static func open(
    _ location: QueueLocation, isolation: PostgresIsolation, codec: some Codec<SampleValue?>,
    through proxy: PostgresProxy? = nil
  ) async throws -> DatabaseOwner<SampleValue?> {
    let server = try await PostgresServer.shared
    let database = try await PostgresDatabase(
      proxy?.connectionString ?? server.connectionString, schema: await server.schema(of: location.files),
      isolation: isolation)
    let queue = try await PostgresQueue<SampleValue?>(
      in: database, name: "queue", codec: codec,
      configuration: PostgresQueueConfiguration(policy: location.policy),
      environment: .manual(location.clock))
    return DatabaseOwner(base: queue, database: database)
  }

  static let readCommitted = QueueConformanceSuite(named: "PostgresQueue", isShared: true, rounds: 5) { location in
    try await open(location, isolation: .readCommitted, codec: .cbor())
  }

  /// A proxy in front of the local server, which then resembles an engine without notifications; `nil` for a server of
  /// `LARDER_POSTGRES`, which is used as it is.
  private static let proxy = Task { () -> PostgresProxy? in
    guard !PostgresServer.isExternal else { return nil }
    let proxy = try PostgresProxy(await PostgresServer.local)
    proxy.refuseNotifications()
    return proxy
  }

  static let serializable = QueueConformanceSuite(
    named: "PostgresQueue of JSON, serializable, without notifications", isShared: true, rounds: 3
  ) { location in
    try await open(location, isolation: .serializable, codec: .json(), through: proxy.value)
  }

  static let asStore = ConformanceSuite(
    named: "PostgresQueue as a store", lacking: .observation, rounds: 5
  ) { location in
    let server = try await PostgresServer.shared
    let database = try await PostgresDatabase(
      server.connectionString, schema: await server.schema(of: location), access: location.access)
    let queue = try await PostgresQueue<SampleValue?>(in: database, name: "queue", codec: .cbor())
    return DatabaseOwner(base: queue, database: database)
  }

  @Test(arguments: readCommitted.cases) func conforms(_ conformanceCase: ConformanceCase) async throws {
    try await conformanceCase.run()
  }

  @Test(arguments: serializable.cases) func `conforms serializable`(_ conformanceCase: ConformanceCase) async throws {
    try await conformanceCase.run()
  }

  @Test(arguments: asStore.cases) func `conforms as store`(_ conformanceCase: ConformanceCase) async throws {
    try await conformanceCase.run()
  }
}
#endif
