import Foundation
import Larder
import LarderCoordination
import LarderLMDB
import LarderPostgres
import LarderSQLite
import PostgresServers

/// Measures a lock that is free and a rate decision over several stores, beside Redis and PostgreSQL's advisory locks, and
/// prints tables in Markdown.
///
/// The rounds of a subject and its yardsticks alternate. Redis and PostgreSQL are started for the run, and are reached by Unix
/// sockets. Servers that are not installed are left out.
@main
enum CoordinationCosts {
  /// Work that is measured.
  struct Work {
    let name: String
    /// A closure that does the work several times, and returns the time of one time in seconds.
    let round: () async throws -> Double
  }

  private static let roundCount = 11
  private static let count = 200

  static func main() async throws {
    let folder = FileManager.default.temporaryDirectory.appending(path: "larder-costs-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: false)
    print("| Subject | Median | Yardstick | Median | Ratio | Limit |\n| --- | ---: | --- | ---: | ---: | ---: |")
    for durability in [Durability.File.buffered, .synced] {
      let policy = durability == .synced ? "always" : "everysec"
      let redis = try Redis(folder: folder.path + "/redis-\(policy)", policy: policy)
      let suffix = "Redis 7, appendfsync \(policy)"
      let peers = (
        locks: redis.map { redis in [work("SET NX PX and a script that compares and deletes, \(suffix)", redis.lock)] },
        limits: redis.map { redis in [work("INCR and EXPIRE, \(suffix)", redis.count)] }
      )
      let stores: [(String, AnyDataStore<[UInt8]>)] = [
        (
          "an LMDBStore, .\(durability)",
          AnyDataStore(
            try await LMDBStore(path: folder.path + "/lmdb-\(policy)", codec: .raw, durability: durability))
        ),
        (
          "an SQLiteStore, .\(durability)",
          AnyDataStore(
            try await SQLiteStore(path: folder.path + "/sqlite-\(policy)", codec: .raw, durability: durability))
        ),
      ]
      for (name, store) in stores {
        try await measure(store, .boot, name, peers.locks ?? [], peers.limits ?? [])
        try await store.close()
      }
      if durability == .synced { try await measurePostgres(peers.locks ?? [], peers.limits ?? []) }
      try redis?.stop()
    }
    try FileManager.default.removeItem(at: folder)
  }

  private static func measurePostgres(_ lockPeers: [Work], _ limitPeers: [Work]) async throws {
    guard PostgresServer.isInstalled else { return }
    let server = try await PostgresServer.local
    let database = try await PostgresDatabase(server.connectionString, schema: try await server.newSchema())
    let store = AnyDataStore(try await PostgresStore<[UInt8]>(in: database, codec: .raw))
    let script = try server.folder + "/advisory.sql"
    try server.write("SELECT pg_advisory_lock(1);\nSELECT pg_advisory_unlock(1);\n", to: "advisory.sql")
    try FileManager.default.setAttributes([.posixPermissions: 0o644], ofItemAtPath: script)
    let advisory = Work(name: "pg_advisory_lock and pg_advisory_unlock by pgbench, which write nothing") {
      let run = try await server.run(pgbench: ["-n", "-M", "prepared", "-c", "1", "-t", "\(count * 5)", "-f", script])
      let line = run.lines.first { $0.hasPrefix("latency average = ") }
      guard let milliseconds = line?.split(separator: " ").dropFirst(3).first.flatMap({ Double($0) }) else {
        throw CocoaError(.fileReadCorruptFile, userInfo: [NSLocalizedDescriptionKey: run.errors])
      }
      return milliseconds / 1_000
    }
    try await measure(store, database.serverClock, "a PostgresStore, durable", lockPeers + [advisory], limitPeers)
    try await store.close()
  }

  private static func measure(
    _ store: AnyDataStore<[UInt8]>, _ time: SharedClock, _ name: String, _ lockPeers: [Work], _ limitPeers: [Work]
  ) async throws {
    let locks = try StoreLock(store, prefix: "locks/")
    try await measure(
      work("lock and unlock over \(name)") { try await locks.withLock("job") { _ in } }, beside: lockPeers)
    // So many that none is refused.
    let limit = RateLimit(1_000_000, per: .seconds(1), burst: 1_000_000)
    let limiter = try RateLimiter(store, prefix: "limits/", limit: limit, time: time)
    try await measure(
      work("rate decision over \(name)") { _ = try await limiter.take(forKey: "client") }, beside: limitPeers)
    let sharing = try RateLimiter(store, prefix: "shares/", limit: limit, share: 20, time: time)
    try await measure(
      work("rate decision over \(name), with shares of 20") { _ = try await sharing.take(forKey: "client") },
      beside: limitPeers)
  }

  private static func work(_ name: String, _ body: @escaping () async throws -> Void) -> Work {
    Work(name: name) {
      let time = try await ContinuousClock().measure { for _ in 0..<count { try await body() } }
      return time / .seconds(1) / Double(count)
    }
  }

  /// Measures work beside its yardsticks, after a round of each to warm up, and prints the lines of the table.
  private static func measure(_ subject: Work, beside yardsticks: [Work]) async throws {
    let all = [subject] + yardsticks
    var times = all.map { _ in [Double]() }
    for number in 0...roundCount {
      for (index, work) in all.enumerated() {
        let time = try await work.round()
        if number > 0 { times[index].append(time) }
      }
    }
    let medians = times.map { $0.sorted()[roundCount / 2] }
    if yardsticks.isEmpty { print("| \(subject.name) | \(microseconds(medians[0])) |  |  |  |  |") }
    for (index, yardstick) in yardsticks.enumerated() {
      let first = index == 0 ? "\(subject.name) | \(microseconds(medians[0]))" : " | "
      let ratio = String(format: "%.2f", medians[0] / medians[index + 1])
      print("| \(first) | \(yardstick.name) | \(microseconds(medians[index + 1])) | \(ratio) |  |")
    }
  }

  private static func microseconds(_ seconds: Double) -> String {
    String(format: seconds < 10e-6 ? "%.2f µs" : seconds < 100e-6 ? "%.1f µs" : "%.0f µs", seconds * 1e6)
  }
}
