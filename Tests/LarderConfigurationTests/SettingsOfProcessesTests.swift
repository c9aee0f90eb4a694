#if Configuration && LMDB && SQLite && os(Linux)
import Configuration
import Foundation
import Larder
import LarderConfiguration
import LarderLMDB
import LarderPostgres
import LarderSQLite
import TestSupport
import Testing

/// Settings that another process changes, and the time until this one sees them.
@Suite(.serialized, .timeLimit(.minutes(5))) struct SettingsOfProcessesTests {
  private static let variable = "LARDER_SETTINGS_WRITER"

  /// The number of changes of a run.
  private static let count = 40

  /// The URL of the store that this process writes to, or `nil` if it runs tests.
  private static let work = ProcessInfo.processInfo.environment[variable]

  private static var registry: StoreRegistry {
    var registry = StoreRegistry(providers: [SQLiteStoreProvider(), LMDBStoreProvider()])
    #if Postgres
    registry.register(PostgresStoreProvider(reportsChanges: true))
    #endif
    return registry
  }

  /// Returns the time of a clock that all processes of the machine share, in nanoseconds.
  private static var now: Int {
    var time = timespec()
    clock_gettime(CLOCK_MONOTONIC, &time)
    return time.tv_sec * 1_000_000_000 + time.tv_nsec
  }

  @Test(.enabled(if: work != nil, "it is the work of a process that the other tests start"))
  func workOfAProcess() async throws {
    let store = try await Self.registry.open(try #require(Self.work), codec: .jsonText)
    for _ in 1...Self.count {
      try await Task.sleep(for: .milliseconds(40))
      // The time of the commit counts, too.
      try await store.setValue(JSONText("\(Self.now)"), forKey: "time")
    }
    try await Task.sleep(for: .milliseconds(40))
    try await store.setValue(JSONText("-1"), forKey: "time")
    try await store.close()
  }

  @Test(.enabled(if: work == nil)) func sqlite() async throws {
    let folder = try TemporaryFolder()
    try await measure("SQLite", "sqlite:\(folder.path("settings.db"))", folder)
  }

  @Test(.enabled(if: work == nil)) func lmdb() async throws {
    let folder = try TemporaryFolder()
    try await measure("LMDB", "lmdb:\(folder.path("settings"))", folder)
  }

  #if Postgres
  @Test(.enabled(if: work == nil)) func postgres() async throws {
    let server = try await PostgresServer.shared
    let url = "postgres:\(server.connectionString)#\(try await server.newSchema())/settings"
    try await measure("PostgreSQL", url, try TemporaryFolder())
  }
  #endif

  private func measure(_ name: String, _ url: String, _ folder: TemporaryFolder) async throws {
    let store = try await Self.registry.open(url, codec: .jsonText)
    let observable = try #require(store.observation)
    let times = try await times(of: url, in: observable, folder)
    try await store.close()
    let sorted = times.sorted().map { Double($0) / 1e6 }
    // Changes that follow each other fast are seen together.
    let median = try #require(sorted.isEmpty ? nil : sorted[sorted.count / 2])
    print(
      "\(name): a setting of another process is seen after \(median) ms at the median, \(sorted.last ?? 0) ms at most")
    // The figures are 100 ms, and a second over PostgreSQL. The bound is that of a machine that does something else.
    #expect(median < 10_000)
  }

  /// Starts the process, and returns the times from its changes to the updates here.
  private func times(
    of url: String, in store: some ObservableStore<JSONText>, _ folder: TemporaryFolder
  ) async throws -> [Int] {
    let reader = ConfigReader(provider: try await StoreConfigProvider(store))
    let process = try TestProcess.start(
      "SettingsOfProcessesTests.workOfAProcess", variables: ["\(Self.variable)=\(url)"], output: folder.path("output"))
    let times = try await reader.watchInt(forKey: "time", default: 0) { updates in
      var times: [Int] = []
      for await time in updates {
        if time > 0 { times.append(Self.now - time) }
        if time < 0 { break }
      }
      return times
    }
    #expect(try CommandRun.wait(for: process) == 0)
    return times
  }
}
#endif
