#if Postgres
import Foundation
import Larder
import LarderPostgres
import LarderTesting
import TestSupport
import Testing

/// Conformance in two processes, some of which are killed.
@Suite(.limitedParallelism) struct PostgresProcessConformance {
  static let suites = PostgresIsolation.allCases.map { isolation in
    let isSerializable = isolation == .serializable
    return ConformanceSuite(
      named: "PostgresStore in two processes, \(isolation)", lacking: .observation,
      child: { await start($0, isSerializable) }, open: { try await open(isSerializable, at: $0) })
  }

  private static func start(_ order: String, _ isSerializable: Bool) async {
    await #expect(processExitsWith: .failure) { [order, isSerializable] in
      await ConformanceChild.run(order) { try await PostgresProcessConformance.open(isSerializable, at: $0) }
    }
  }

  /// Opens the store whose connection and schema are in a file of the location, for the other process.
  private static func open(
    _ isSerializable: Bool, at location: ConformanceLocation
  ) async throws -> PostgresDatabaseOwner<SampleValue?> {
    let path = location.path("database")
    if !FileManager.default.fileExists(atPath: path) {
      let server = try await PostgresServer.shared
      let text = try await "\(server.connectionString)\n\(server.newSchema())"
      try text.write(toFile: path, atomically: true, encoding: .utf8)
    }
    let lines = try String(contentsOfFile: path, encoding: .utf8).split(separator: "\n").map { String($0) }
    let database = try await PostgresDatabase(
      lines[0], schema: lines[1], isolation: isSerializable ? .serializable : .readCommitted, access: location.access)
    return PostgresDatabaseOwner(base: try await PostgresStore<SampleValue?>(in: database), database: database)
  }

  @Test(arguments: suites.flatMap(\.cases).filter { $0.needs.contains(.otherProcesses) })
  func `conforms across processes`(_ conformanceCase: ConformanceCase) async throws {
    try await conformanceCase.run()
  }
}
#endif
