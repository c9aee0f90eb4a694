#if Configuration && Postgres && Metrics
import Configuration
import ConfigurationTesting
import Foundation
import Larder
import LarderBatching
import LarderCache
import LarderConfiguration
import LarderExpiry
import LarderMetrics
import LarderPostgres
import LarderTesting
import TestSupport
import Testing

/// Stacks and settings in PostgreSQL.
@Suite(.limitedParallelism, .timeLimit(.minutes(10))) struct PostgresConfigurationTests {
  private typealias Value = SampleValue?

  private static func database(_ schema: String, access: StoreAccess = .readWrite) async throws -> PostgresDatabase {
    let server = try await PostgresServer.shared
    return try await PostgresDatabase(server.connectionString, schema: schema, access: access, connections: 4)
  }

  /// Opens a stack with the layers that a server has, from a configuration.
  private static func configured(_ schema: String, access: String = "readWrite") async throws -> AnyDataStore<Value> {
    let server = try await PostgresServer.shared
    let document = """
      {"stores": {"s": {"url": "postgres:\(server.connectionString)#\(schema)/s", "access": "\(access)",
      "metered": true, "cached": {"entries": 100}, "expiring": {"sliding": "1h"}, "batched": true}}}
      """
    return try await Stacks(
      sources: [try .json(Data(document.utf8), name: "test")], stores: [PostgresStoreProvider(reportsChanges: true)],
      layers: [ExpiringLayerProvider(), MeteredLayerProvider(), CachedLayerProvider(), BatchedLayerProvider()]
    ).open("s", codec: .json(Value.self))
  }

  @Test func `information and capabilities are those of the stack in code`() async throws {
    let server = try await PostgresServer.shared
    let (one, other) = (try await server.newSchema(), try await server.newSchema())
    let configured = try await Self.configured(one)
    let database = try await PostgresDatabase(server.connectionString, schema: other)
    let written = try await PostgresStore(
      in: database, name: "s", codec: .json(Value.self).expiring(), reportsChanges: true
    ).batched().cached(CachedStoreConfiguration(entryLimit: 100)).expiring(.sliding(.seconds(3600))).metered(as: "s")
    func text(_ information: StoreInformation, _ schema: String) -> String {
      var information = information
      // Two stores have two identities.
      information.identity = nil
      return "\(information)".replacing(schema, with: "")
    }
    #expect(text(configured.information, one) == text(AnyDataStore(written).information, other))
    #expect(configured.capabilities == AnyDataStore(written).capabilities)
    try await configured.close()
    try await written.close()
    await database.close()
  }

  /// The schemas of the locations of the suite, which opens each location several times.
  private static let schemas = Locked<[String: Task<String, any Error>]>([:])

  private static func schema(of location: ConformanceLocation) async throws -> String {
    let task = schemas.withLock { schemas in
      let task = schemas[location.path("")] ?? Task { try await PostgresServer.shared.newSchema() }
      schemas[location.path("")] = task
      return task
    }
    return try await task.value
  }

  static let suite = ConformanceSuite(
    named: "a configured stack over PostgreSQL", lacking: .keysWithoutValues, rounds: 1
  ) { location in
    try await configured(schema(of: location), access: location.access == .readWrite ? "readWrite" : "readOnly")
  }

  @Test func conforms() async throws {
    // A short run takes each eighth case, from one that the seed chooses.
    let (share, first) = (TestDepth.isShort ? 8 : 1, Int(SeededGenerator.seedOfProcess % 8))
    for (index, conformanceCase) in Self.suite.cases.enumerated() where (index + first) % share == 0 {
      try await conformanceCase.run()
    }
  }

  /// A store that exists and does not report its changes is no store of settings for several hosts.
  @Test func `a store without reports is refused`() async throws {
    let server = try await PostgresServer.shared
    let url = "postgres:\(server.connectionString)#\(try await server.newSchema())/s"
    let (plain, reporting) = (PostgresStoreProvider(), PostgresStoreProvider(reportsChanges: true))
    let first = try await StoreRegistry(providers: [plain]).open(url, codec: .jsonText)
    #expect(first.information.reportedCommits == .ofObject || first.information.reportedCommits == nil)
    try await first.close()
    await expectStoreError(.unsupported) {
      try await StoreRegistry(providers: [reporting]).open(url, codec: .jsonText)
    }
    let other = try await StoreRegistry(providers: [reporting]).open(url + "2", codec: .jsonText)
    #expect(other.information.reportsAllCommits)
    try await other.close()
    // A store does what its record says.
    let again = try await StoreRegistry(providers: [plain]).open(url + "2", codec: .jsonText)
    #expect(again.information.reportsAllCommits)
    try await again.close()
  }

  @Test func `a Postgres store passes the suite of providers`() async throws {
    let schema = try await PostgresServer.shared.newSchema()
    let database = try await Self.database(schema)
    let store = try await PostgresStore(in: database, name: "settings", codec: .jsonText, reportsChanges: true)
    for (key, text) in StoreConfigProviderTests.settings { try await store.setValue(JSONText(text), forKey: key) }
    try await ProviderCompatTest(provider: StoreConfigProvider(store)).runTest()
    try await store.close()
    await database.close()
  }
}
#endif
