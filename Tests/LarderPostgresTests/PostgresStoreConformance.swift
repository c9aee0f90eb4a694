#if Postgres
import Larder
import LarderPostgres
import LarderTesting
import TestSupport
import Testing

/// A store that closes its database when it is closed.
struct PostgresDatabaseOwner<Value: Sendable>: PassingStore {
  let base: PostgresStore<Value>
  let database: PostgresDatabase

  func close() async throws {
    try await base.close()
    await database.close()
  }
}

extension PostgresDatabaseOwner: MaintainableStore {}

extension PostgresDatabaseOwner: ObservableStore {
  func weakReference() -> @Sendable () -> Self? {
    let base = base.weakReference()
    return { [weak database] in
      guard let base = base(), let database else { return nil }
      return PostgresDatabaseOwner(base: base, database: database)
    }
  }
}

@Suite(.limitedParallelism, .timeLimit(.minutes(60))) struct PostgresStoreConformance {
  /// Opens a database at a location: a schema of its own.
  private static func open(
    _ location: ConformanceLocation, isolation: PostgresIsolation, connections: Int = 4
  ) async throws -> PostgresDatabase {
    let server = try await PostgresServer.shared
    return try await PostgresDatabase(
      server.connectionString, schema: await server.schema(of: location), isolation: isolation, access: location.access,
      connections: connections)
  }

  static let readCommitted = ConformanceSuite(named: "PostgresStore") { location in
    let database = try await open(location, isolation: .readCommitted)
    return PostgresDatabaseOwner(base: try await PostgresStore<SampleValue?>(in: database), database: database)
  }

  static let serializable = ConformanceSuite(
    named: "PostgresStore of JSON, serializable", codec: .json()
  ) { location, codec in
    let database = try await open(location, isolation: .serializable)
    return PostgresDatabaseOwner(
      base: try await PostgresStore<SampleValue?>(in: database, name: "users", codec: codec), database: database)
  }

  static let oneConnection = ConformanceSuite(
    named: "PostgresStore with one connection"
  ) { location in
    let database = try await open(location, isolation: .readCommitted, connections: 1)
    return PostgresDatabaseOwner(base: try await PostgresStore<SampleValue?>(in: database), database: database)
  }

  static let reporting = ConformanceSuite(named: "PostgresStore that reports its changes") { location in
    let database = try await open(location, isolation: .readCommitted)
    return PostgresDatabaseOwner(
      base: try await PostgresStore<SampleValue?>(in: database, reportsChanges: true), database: database)
  }

  static let serializableReporting = ConformanceSuite(named: "PostgresStore that reports, serializable") { location in
    let database = try await open(location, isolation: .serializable)
    return PostgresDatabaseOwner(
      base: try await PostgresStore<SampleValue?>(in: database, reportsChanges: true), database: database)
  }

  @Test(arguments: reporting.cases) func `conforms reporting`(_ conformanceCase: ConformanceCase) async throws {
    try await conformanceCase.run()
  }

  @Test(arguments: serializableReporting.cases.filter { $0.group == .observation || $0.group == .updates })
  func `conforms reporting serializable`(_ conformanceCase: ConformanceCase) async throws {
    try await conformanceCase.run()
  }

  @Test(arguments: readCommitted.cases) func conforms(_ conformanceCase: ConformanceCase) async throws {
    try await conformanceCase.run()
  }

  @Test(arguments: serializable.cases) func `conforms serializable`(_ conformanceCase: ConformanceCase) async throws {
    try await conformanceCase.run()
  }

  /// The groups of cases whose calls wait for each other.
  private static let waitingGroups: Set<ConformanceGroup> = [
    .updates, .lifecycle, .cancellation, .concurrency, .histories,
  ]

  @Test(arguments: oneConnection.cases.filter { waitingGroups.contains($0.group) })
  func `conforms with one connection`(_ conformanceCase: ConformanceCase) async throws {
    try await conformanceCase.run()
  }
}

extension PostgresServer {
  private static let schemas = Locked<[String: Task<String, any Error>]>([:])

  /// Returns the schema that stands for a location of a conformance case.
  func schema(of location: ConformanceLocation) async throws -> String {
    let task = PostgresServer.schemas.withLock { schemas in
      let task = schemas[location.path("schema")] ?? Task { try await newSchema() }
      schemas[location.path("schema")] = task
      return task
    }
    return try await task.value
  }
}
#endif
