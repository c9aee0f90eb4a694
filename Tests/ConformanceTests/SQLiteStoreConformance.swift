#if Compression && Crypto && LMDB && Metrics && SQLite
import Larder
import LarderSQLite
import LarderTesting
import TestSupport
import Testing

/// A store that closes its database when it is closed.
private struct DatabaseOwner<Value: Sendable>: PassingStore {
  let base: SQLiteStore<Value>
  let database: SQLiteDatabase

  func close() async throws {
    do {
      try await base.close()
    } catch {
      try await database.close()
      throw error
    }
    try await database.close()
  }
}

extension DatabaseOwner: MaintainableStore {}

extension DatabaseOwner: ObservableStore {
  func weakReference() -> @Sendable () -> Self? {
    let base = base.weakReference()
    return { [weak database = database] in
      guard let base = base(), let database else { return nil }
      return DatabaseOwner(base: base, database: database)
    }
  }
}

@Suite(.limitedParallelism, .timeLimit(.minutes(60))) struct SQLiteStoreConformance {
  static let synced = ConformanceSuite(named: "SQLiteStore, synced") { location in
    try await SQLiteStore<SampleValue?>(path: location.path("store.sqlite"), access: location.access)
  }

  static let clustered = ConformanceSuite(named: "SQLiteStore of JSON, clustered and buffered", codec: .json()) {
    location, codec in
    try await SQLiteStore<SampleValue?>(
      path: location.path("store.sqlite"), codec: codec, layout: .clustered, durability: .buffered,
      access: location.access)
  }

  static let neighbours = ConformanceSuite(named: "SQLiteStore beside others in a database") { location in
    let database = try await SQLiteDatabase(
      path: location.path("store.sqlite"), durability: .buffered, access: location.access)
    for name in ["a", "z"] where location.access == .readWrite {
      let store = try await SQLiteStore<[UInt8]>(in: database, name: name, codec: .raw)
      try await store.setValue([1, 2, 3], forKey: "neighbour")
    }
    return DatabaseOwner(
      base: try await SQLiteStore<SampleValue?>(in: database, name: "m", codec: .json()), database: database)
  }

  @Test(arguments: synced.casesOfCombinations) func `conforms synced`(_ conformanceCase: ConformanceCase) async throws {
    try await conformanceCase.run()
  }

  @Test(arguments: clustered.casesOfCombinations) func `conforms clustered`(_ conformanceCase: ConformanceCase)
    async throws
  {
    try await conformanceCase.run()
  }

  @Test(arguments: neighbours.cases) func `conforms beside others`(_ conformanceCase: ConformanceCase) async throws {
    try await conformanceCase.run()
  }
}
#endif
