#if LMDB && SQLite
import Foundation
import Larder
import LarderLMDB
import LarderPostgres
import LarderSQLite
import LarderTesting
import TestSupport
import Testing

/// Four processes that share a store, of which one is killed, one is suspended for longer than a lease, and one has a wall
/// clock that is an hour ahead and then an hour late.
///
/// `LARDER_ROUNDS` sets the number of rounds.
@Suite(.serialized) struct ProcessTests {
  fileprivate static let duration = Duration.milliseconds(1_300)

  fileprivate static func open(_ scheme: String, _ path: String) async throws -> (AnyDataStore<[UInt8]>, SharedClock) {
    switch scheme {
    case "lmdb":
      (AnyDataStore(try await LMDBStore<[UInt8]>(path: path, codec: .raw, durability: .buffered)), .boot)
    #if Postgres
    case "postgres":
      try await openPostgres(path)
    #endif
    default:
      (AnyDataStore(try await SQLiteStore<[UInt8]>(path: path, codec: .raw, durability: .buffered)), .boot)
    }
  }

  #if Postgres
  private static func openPostgres(_ path: String) async throws -> (AnyDataStore<[UInt8]>, SharedClock) {
    // The connection and the schema are the lines of a file.
    let lines = try String(contentsOfFile: path, encoding: .utf8).split(separator: "\n").map(String.init)
    let database = try await PostgresDatabase(lines[0], schema: lines[1])
    return (AnyDataStore(try await PostgresStore<[UInt8]>(in: database, codec: .raw)), database.serverClock)
  }
  #endif

  fileprivate static func work(_ scheme: String, _ folder: String, number: Int, killedAfter: UInt32) async throws {
    let (store, time) = try await open(scheme, folder + "/store")
    try "\(getpid())".write(toFile: folder + "/process-\(number)", atomically: true, encoding: .utf8)
    try await meet(in: folder)
    if killedAfter > 0 {
      Thread.detachNewThread {
        usleep(killedAfter)
        kill(getpid(), SIGKILL)
      }
    }
    let round = ProcessRound(
      store: store, folder: folder, number: number, time: time, clockError: number == 2 ? 3600 : 0, duration: duration)
    try await round.work()
    try await store.close()
  }

  /// Runs one round in a new folder.
  private func round(_ scheme: String, _ folder: TemporaryFolder, _ generator: inout SeededGenerator) async throws {
    let path = folder.path
    let killedAfter = UInt32.random(in: 200_000..<1_000_000, using: &generator)
    let stall = Duration.milliseconds(Int.random(in: 350...600, using: &generator))
    let before = Duration.milliseconds(Int.random(in: 100...500, using: &generator))
    // Opened before the others, so that they need not create it at the same time.
    let (store, time) = try await Self.open(scheme, folder.path("store"))
    let isOver = Flag()
    Self.restartWaits(in: path, until: isOver)
    await withTaskGroup(of: Void.self) { group in
      group.addTask {
        await #expect(processExitsWith: .signal(SIGKILL)) {
          [scheme = scheme as String, path = path as String, killedAfter = killedAfter as UInt32] in
          try await ProcessTests.work(scheme, path, number: 0, killedAfter: killedAfter)
        }
      }
      for number in 1...3 {
        group.addTask {
          await #expect(processExitsWith: .success) {
            [scheme = scheme as String, path = path as String, number = number as Int] in
            try await ProcessTests.work(scheme, path, number: number, killedAfter: 0)
          }
        }
      }
      Self.suspend(folder.path("process-1"), after: before, for: stall)
      await group.waitForAll()
    }
    isOver.set()
    #expect(FileManager.default.fileExists(atPath: folder.path("process-1-continued")))
    let round = ProcessRound(
      store: store, folder: path, number: 9, time: time, clockError: 0, duration: Self.duration)
    let problems = try await round.check(stall: stall + .milliseconds(300))
    #expect(problems == [])
    try await store.close()
  }

  /// Suspends a process that has noted its number in a file, once or not at all if it has ended.
  ///
  /// It does so from a thread, because the tasks that wait for processes keep those of the pool.
  private static func suspend(_ path: String, after delay: Duration, for duration: Duration) {
    Thread.detachNewThread {
      while !FileManager.default.fileExists(atPath: path) { usleep(5_000) }
      guard let text = try? String(contentsOfFile: path, encoding: .utf8), let process = pid_t(text) else { return }
      usleep(useconds_t(delay / .microseconds(1)))
      guard kill(process, SIGSTOP) == 0 else { return }
      usleep(useconds_t(duration / .microseconds(1)))
      kill(process, SIGCONT)
      _ = FileManager.default.createFile(atPath: path + "-continued", contents: nil)
    }
  }

  /// Stops and continues the processes every ten seconds until a round is over.
  ///
  /// A process that is killed while it is given LMDB's lock can take the wake-up of the others with it, because the lock is a
  /// robust mutex of the C library. A process that is continued looks at the lock again.
  private static func restartWaits(in folder: String, until isOver: Flag) {
    Thread.detachNewThread {
      while true {
        for _ in 0..<100 {
          usleep(100_000)
          if isOver.isSet { return }
        }
        for number in 1...3 {
          guard let text = try? String(contentsOfFile: "\(folder)/process-\(number)", encoding: .utf8),
            let process = pid_t(text)
          else { continue }
          kill(process, SIGSTOP)
          kill(process, SIGCONT)
        }
      }
    }
  }

  /// Waits until all four processes run.
  private static func meet(in folder: String) async throws {
    let isMissing = { (number: Int) in !FileManager.default.fileExists(atPath: "\(folder)/process-\(number)") }
    let end = ContinuousClock.now + .seconds(30)
    while (0...3).contains(where: isMissing) {
      guard ContinuousClock.now < end else { throw CocoaError(.fileReadNoSuchFile) }
      try await Task.sleep(for: .milliseconds(2))
    }
  }

  @Test(arguments: ["lmdb", "sqlite"]) func roundsOfFourProcesses(over scheme: String) async throws {
    var generator = SeededGenerator(seed: SeededGenerator.seedOfProcess, purpose: "coordination over \(scheme)")
    for _ in 0..<max(1, ConformanceSuite.roundsOfProcess / 2) {
      try await round(scheme, try TemporaryFolder(), &generator)
    }
  }

  #if Postgres
  @Test func roundsOfFourProcessesOverPostgres() async throws {
    var generator = SeededGenerator(seed: SeededGenerator.seedOfProcess, purpose: "coordination over PostgreSQL")
    for _ in 0..<max(1, ConformanceSuite.roundsOfProcess / 4) {
      let server = try await PostgresServer.shared
      let folder = try TemporaryFolder()
      let lines = "\(server.connectionString)\n\(try await server.newSchema())\n"
      try lines.write(toFile: folder.path("store"), atomically: true, encoding: .utf8)
      try await round("postgres", folder, &generator)
    }
  }
  #endif
}
#endif
