#if LMDB && SQLite && os(Linux)
import Foundation
import Larder
import LarderFiles
import LarderTesting
import TestSupport
import Testing

/// Four processes that share a store, of which one is killed, one is suspended for longer than a lease, and one has a
/// real-time clock that is an hour ahead and then an hour late.
///
/// PostgreSQL runs in a network of its own, and two processes each in two others. The links are cut, and the server is
/// restarted. `LARDER_ROUNDS` sets the number of rounds, and `LARDER_SEED` repeats their faults.
@Suite(.serialized) struct ProcessTests {
  @Test(.enabled(if: RoundProcess.ofThisProcess != nil, "it is the work of a process that the other tests start"))
  func workOfAProcess() async throws {
    try await RoundProcess.ofThisProcess?.run()
  }

  @Test(.enabled(if: RoundProcess.ofThisProcess == nil), arguments: ["lmdb", "sqlite"])
  func `rounds of four processes`(over scheme: String) async throws {
    let rounds = max(1, ConformanceSuite.roundsOfProcess / 2)
    var generator = SeededGenerator(seed: SeededGenerator.seedOfProcess, purpose: "coordination over \(scheme)")
    var share = RateShare()
    for round in 0..<rounds {
      share.add(try await run(round, RoundPlace(scheme: scheme), for: .milliseconds(1_300), &generator))
    }
    share.check("\(rounds) rounds over \(scheme) with the seed \(SeededGenerator.seedOfProcess)")
  }

  #if Postgres
  @Test(.enabled(if: RoundProcess.ofThisProcess == nil))
  func `rounds of four processes over Postgres`() async throws {
    let rounds = max(1, ConformanceSuite.roundsOfProcess / 4)
    var generator = SeededGenerator(seed: SeededGenerator.seedOfProcess, purpose: "coordination over PostgreSQL")
    let networks = try TwoNetworks()
    let server = try await PostgresServer(
      settings: [
        "listen_addresses": networks.addresses.joined(separator: ","), "port": "\(20_000 + getpid() % 10_000)",
        "fsync": "off",
      ])
    try server.write("local all all trust\nhost all all 198.18.0.0/15 trust\n", to: "data/pg_hba.conf")
    try await server.set([:])
    var share = RateShare()
    for round in 0..<rounds {
      let place = RoundPlace(
        scheme: "postgres", connection: server.connectionString, schema: try await server.newSchema(),
        uncounted: 5, networks: networks, server: server)
      share.add(try await run(round, place, for: .milliseconds(3_500), &generator))
    }
    try await server.close()
    share.check("\(rounds) rounds over PostgreSQL with the seed \(SeededGenerator.seedOfProcess)")
  }
  #endif

  /// Runs one round in a new folder.
  ///
  /// - Returns: The part of the rate limit that was reached.
  private func run(
    _ number: Int, _ place: RoundPlace, for duration: Duration, _ generator: inout SeededGenerator
  ) async throws -> RateShare {
    let folder = try TemporaryFolder()
    let faults = RoundFaults(of: duration, using: &generator)
    let observer = RoundProcess(
      scheme: place.scheme, folder: folder.path, number: 9, connection: place.connection, schema: place.schema,
      duration: duration / .milliseconds(1))
    // Opened before the others, so that they need not create it at the same time.
    let (store, time) = try await observer.open()
    let clock = try FakeClock(in: folder.path)
    let processes = try (0...3).map { number in
      try observer.start(number, at: place, clock: number == 2 ? clock : nil)
    }
    do {
      try await waitUntil {
        (0...3).allSatisfy { FileManager.default.fileExists(atPath: folder.path("process-\($0)")) }
      }
      try "".write(toFile: folder.path("start"), atomically: true, encoding: .utf8)
      let outages = try await faults.happen(to: processes, at: place, in: folder, clock: clock)
      let statuses = try await end(of: processes)
      let round = ProcessRound(store: store, folder: folder.path, number: 9, time: time, duration: duration)
      var (problems, share) = try await round.check(outages: outages, uncounted: place.uncounted)
      if statuses != [SIGKILL, 0, 0, 0] { problems.append("the processes ended with \(statuses)") }
      problems += try clock.problems(of: folder.path("process-2"), folder.path("ended-2"))
      if !problems.isEmpty { printOutputs(in: folder) }
      #expect(problems == [], "round \(number) over \(place.scheme) with the seed \(SeededGenerator.seedOfProcess)")
      try await store.close()
      return share
    } catch {
      for process in processes { kill(process, SIGKILL) }
      printOutputs(in: folder)
      throw error
    }
  }

  /// Prints what the processes of a round have printed.
  private func printOutputs(in folder: TemporaryFolder) {
    for number in 0...3 {
      let output = FileManager.default.contents(atPath: folder.path("output-\(number)"))
      print("process \(number):", output.map { String(decoding: $0, as: UTF8.self) } ?? "nothing")
    }
  }

  /// Waits for the ends of processes, and returns their exit codes and signals.
  private func end(of processes: [pid_t]) async throws -> [Int32] {
    let limit = Task {
      try await Task.sleep(for: .seconds(120))
      for process in processes { kill(process, SIGABRT) }
    }
    defer { limit.cancel() }
    return try await DispatchQueueExecutor(label: "ProcessTests").run { try processes.map(CommandRun.wait(for:)) }
  }
}

/// The place of the store of a round.
struct RoundPlace: Sendable {
  let scheme: String
  /// The connection string of the tests themselves.
  var connection = ""
  var schema = ""
  /// The number of starts of the rate limit that processes may get without noting them.
  var uncounted = 1
  #if Postgres
  var networks: TwoNetworks?
  var server: PostgresServer?
  #endif
}

/// The faults of a round, and their times after its beginning.
private struct RoundFaults {
  /// The times of the second process's suspension.
  private let suspension: (after: Duration, for: Duration)
  private let killedAfter: Duration
  /// The time at which the clock is set back.
  private let clockAfter: Duration
  /// The lengths of the cuts of each link, and the way in which the server is stopped between them.
  private let cuts: [Duration]
  private let isCrash: Bool
  private let pause: Duration

  init(of duration: Duration, using generator: inout SeededGenerator) {
    func milliseconds(_ range: ClosedRange<Int>) -> Duration { .milliseconds(Int.random(in: range, using: &generator)) }
    killedAfter = milliseconds(200...1_000)
    suspension = (milliseconds(100...500), milliseconds(350...600))
    clockAfter = duration / 2
    cuts = [milliseconds(100...500), milliseconds(100...500)]
    isCrash = Bool.random(using: &generator)
    pause = milliseconds(100...400)
  }

  /// Runs the faults, and returns the times in which the processes may have been held up.
  func happen(
    to processes: [pid_t], at place: RoundPlace, in folder: TemporaryFolder, clock: FakeClock
  ) async throws -> [Outage] {
    async let killing: Void = {
      try await Task.sleep(for: killedAfter)
      kill(processes[0], SIGKILL)
    }()
    async let setting: Void = {
      try await Task.sleep(for: clockAfter)
      try clock.setBack()
      try "".write(toFile: folder.path("set-back"), atomically: true, encoding: .utf8)
    }()
    async let suspending: Outage = {
      try await Task.sleep(for: suspension.after)
      return try await Outage.during(recovery: .milliseconds(300)) {
        kill(processes[1], SIGSTOP)
        try await Task.sleep(for: suspension.for)
        kill(processes[1], SIGCONT)
      }
    }()
    #if Postgres
    var outages: [Outage] = []
    if let server = place.server {
      for link in 0...1 {
        try await Task.sleep(for: pause)
        if let networks = place.networks, networks.areThere {
          outages.append(
            try await Outage.during(recovery: .milliseconds(1_500)) {
              try networks.set(link, "down")
              try await Task.sleep(for: cuts[link])
              try networks.set(link, "up")
            })
        }
        guard link == 0 else { continue }
        try await Task.sleep(for: pause)
        outages.append(
          try await Outage.during(recovery: .milliseconds(1_500)) {
            try await server.restart(isCrash ? .immediate : .fast)
          })
      }
    }
    #else
    let outages: [Outage] = []
    #endif
    try await killing
    try await setting
    return outages + [try await suspending]
  }
}
#endif
