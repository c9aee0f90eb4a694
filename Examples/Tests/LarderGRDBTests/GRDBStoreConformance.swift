import GRDB
import Larder
import LarderGRDB
import LarderTesting
import Testing

/// The conformance suite over stores in a pool and in a queue.
///
/// Closing the store leaves the database open, which is closed when it is deinitialized.
@Suite(.serialized, .timeLimit(.minutes(60))) struct GRDBStoreConformance {
  static func configuration(_ location: ConformanceLocation) -> Configuration {
    var configuration = Configuration()
    configuration.readonly = location.access != .readWrite
    // The suite opens several stores on a file, which by default fail immediately if another one writes.
    configuration.busyMode = .timeout(5)
    return configuration
  }

  static let pool = ConformanceSuite(named: "GRDBStore in a pool", lacking: .ownFiles) { location in
    try await GRDBStore<SampleValue?>(
      in: DatabasePool(path: location.path("store.sqlite"), configuration: configuration(location)))
  }

  static let queue = ConformanceSuite(named: "GRDBStore of JSON in a queue", codec: .json(), lacking: .ownFiles) {
    location, codec in
    try await GRDBStore<SampleValue?>(
      in: DatabaseQueue(path: location.path("store.sqlite"), configuration: configuration(location)), name: "users",
      codec: codec)
  }

  @Test(arguments: pool.cases) func `conforms in a pool`(_ conformanceCase: ConformanceCase) async throws {
    try await conformanceCase.run()
  }

  @Test(arguments: queue.cases) func `conforms in a queue`(_ conformanceCase: ConformanceCase) async throws {
    try await conformanceCase.run()
  }
}
