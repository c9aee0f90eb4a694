#if Postgres && os(Linux)
import Foundation
import Larder
import LarderCache
import LarderFiles
import LarderPostgres
import LarderTesting
import TestSupport
import Testing

/// A writer and a reader with a cache, each in a network of its own, whose links are cut while the server is restarted,
/// frozen and at last replaced by its standby.
///
/// No read is older than a second by the writer's commit. `LARDER_ROUNDS` sets the duration, some ten seconds for each
/// four, and `LARDER_SEED` repeats the faults.
@Suite(.serialized, .timeLimit(.minutes(60))) struct TwoHostsTests {
  @Test(.enabled(if: HostProcess.ofThisProcess != nil, "it is the work of a process that the other test starts"))
  func workOfAProcess() async throws {
    try await HostProcess.ofThisProcess?.run()
  }

  @Test(.enabled(if: HostProcess.ofThisProcess == nil))
  func `no read is older than a second, through cuts, restarts and a failover`() async throws {
    let networks = try TwoNetworks()
    let port = 30_000 + 2 * Int(getpid() % 10_000)
    let ports = ["\(port)", "\(port + 1)"]
    let server = try await PostgresServer(
      settings: [
        "listen_addresses": networks.addresses.joined(separator: ","), "port": ports[0], "fsync": "off",
      ])
    try server.write(
      "local all all trust\nlocal replication all trust\nhost all all 198.18.0.0/15 trust\n", to: "data/pg_hba.conf")
    try await server.set([:])
    // Synchronous, so that acknowledged writes survive the failover.
    let standby = try await server.addStandby(isSynchronous: true, port: ports[1])
    let (folder, schema) = (try TemporaryFolder(), try await server.newSchema())
    let processes = try (0...1).map { number in
      var hosts = [try server.folder, try standby.folder]
      if networks.areThere { hosts = Array(repeating: networks.addresses[number], count: 2) }
      let process = HostProcess(
        isWriter: number == 0, folder: folder.path,
        connection: "host=\(hosts.joined(separator: ",")) port=\(ports.joined(separator: ",")) user=larder "
          + "dbname=postgres target_session_attrs=read-write connect_timeout=2", schema: schema)
      return try process.start(by: networks.areThere ? networks.command(in: number) : [])
    }
    do {
      try await waitUntil {
        (0...1).allSatisfy { FileManager.default.fileExists(atPath: folder.path("ready-\($0)")) }
      }
      // Without faults at first, for the delays.
      try await Task.sleep(for: .seconds(1))
      let firstFault = HostLog.now
      var generator = SeededGenerator(seed: SeededGenerator.seedOfProcess, purpose: "two hosts")
      for _ in 0..<max(1, ConformanceSuite.roundsOfProcess / 4) {
        for fault in HostFault.allCases.shuffled(using: &generator) {
          let duration = Duration.milliseconds(Int.random(in: 200...2500, using: &generator))
          try await fault.happen(to: server, networks, for: duration)
          try await Task.sleep(for: .milliseconds(Int.random(in: 200...1500, using: &generator)))
        }
      }
      try await server.stop(.immediate)
      try await standby.promote()
      let promotion = HostLog.now
      try "".write(toFile: folder.path("promoted"), atomically: true, encoding: .utf8)
      try await waitUntil {
        (0...1).allSatisfy { FileManager.default.fileExists(atPath: folder.path("continues-\($0)")) }
      }
      // Longer than a read may be old.
      try await Task.sleep(for: .seconds(2))
      try "".write(toFile: folder.path("stop"), atomically: true, encoding: .utf8)
      for process in processes {
        let status = try await DispatchQueueExecutor(label: "TwoHostsTests").run { try CommandRun.wait(for: process) }
        #expect(status == 0)
      }
      let (writer, reader) = (try HostLog(0, in: folder), try HostLog(1, in: folder))
      #expect(reader.readsTooOld(beside: writer) == [], "seed \(SeededGenerator.seedOfProcess)")
      #expect(reader.hits > reader.values.count / 10)
      #expect(writer.times.last ?? 0 > promotion && reader.times.last ?? 0 > promotion)
      let delays = reader.delays(of: writer, until: firstFault)
      print(
        "\(writer.values.count) writes and \(reader.values.count) reads, \(reader.hits) from memory; "
          + "\(writer.failures) and \(reader.failures) failed")
      if !delays.isEmpty {
        print(
          "Without faults, half of \(delays.count) writes were seen after \(delays[delays.count / 2]), "
            + "99 % after \(delays[delays.count * 99 / 100])")
      }
    } catch {
      for process in processes { kill(process, SIGKILL) }
      for name in ["output-0", "output-1"] { print(try String(contentsOfFile: folder.path(name), encoding: .utf8)) }
      throw error
    }
    try await standby.close()
    try await server.close()
  }
}

/// A fault of a round.
private enum HostFault: CaseIterable {
  case writerIsCutOff, readerIsCutOff, bothAreCutOff, serverIsRestarted, serverCrashes

  /// Runs the fault, and returns after its end.
  func happen(to server: PostgresServer, _ networks: TwoNetworks, for duration: Duration) async throws {
    switch self {
    case .writerIsCutOff: try await cut([0], networks, duration)
    case .readerIsCutOff: try await cut([1], networks, duration)
    case .bothAreCutOff: try await cut([0, 1], networks, duration)
    case .serverIsRestarted: try await server.restart(.fast)
    case .serverCrashes: try await server.restart(.immediate)
    }
  }

  private func cut(_ links: [Int], _ networks: TwoNetworks, _ duration: Duration) async throws {
    guard networks.areThere else { return }
    for link in links { try networks.set(link, "down") }
    try await Task.sleep(for: duration)
    for link in links { try networks.set(link, "up") }
  }
}

/// A host of the test, which is this program with one test and a variable that describes its work.
private struct HostProcess: Codable {
  private static let variable = "LARDER_HOST_PROCESS"

  /// The work of this process, or `nil` if it runs tests.
  static let ofThisProcess: HostProcess? = {
    guard let text = ProcessInfo.processInfo.environment[variable] else { return nil }
    return try? JSONDecoder().decode(HostProcess.self, from: Data(text.utf8))
  }()

  let isWriter: Bool
  let folder: String
  let connection: String
  let schema: String

  /// Starts a process with this work.
  func start(by command: [String]) throws -> pid_t {
    let text = String(decoding: try JSONEncoder().encode(self), as: UTF8.self)
    return try TestProcess.start(
      "TwoHostsTests.workOfAProcess", variables: ["\(Self.variable)=\(text)"], by: command, output: path("output"))
  }

  /// The path of a file of this host.
  private func path(_ name: String) -> String { "\(folder)/\(name)-\(isWriter ? 0 : 1)" }

  /// Does the work of this process until there is a file `stop`.
  func run() async throws {
    let database = try await untilInTime {
      try await PostgresDatabase(connection, schema: schema, connections: 2, timeout: .seconds(2))
    }
    let store = try await untilInTime {
      try await PostgresStore<Int>(in: database, name: "counters", reportsChanges: true)
    }.cached()
    var log = HostLog()
    var (isReady, continues) = (false, false)
    while !FileManager.default.fileExists(atPath: "\(folder)/stop") {
      let isPromoted = FileManager.default.fileExists(atPath: "\(folder)/promoted")
      do {
        if isWriter {
          try await raise(store, &log)
        } else {
          try await read(store, &log)
        }
        if !isReady, isWriter || store.statistics().hits > 0 {
          try "".write(toFile: path("ready"), atomically: true, encoding: .utf8)
          isReady = true
        }
        if !continues, isPromoted {
          try "".write(toFile: path("continues"), atomically: true, encoding: .utf8)
          continues = true
        }
      } catch is StoreError {
        log.failures += 1
      }
      try await Task.sleep(for: .milliseconds(1))
    }
    log.hits = store.statistics().hits
    try JSONEncoder().encode(log).write(to: URL(filePath: path("log")))
    await database.close()
  }

  private func raise(_ store: CachedStore<PostgresStore<Int>>, _ log: inout HostLog) async throws {
    // A write whose outcome is unknown may come later than the next one, and must not undo it.
    let next = (log.values.last ?? 0) + log.failures + 1
    let value = try await store.update("n") { slot -> Int in
      slot = max(slot ?? 0, next)
      return slot ?? 0
    }
    log.add(value)
  }

  private func read(_ store: CachedStore<PostgresStore<Int>>, _ log: inout HostLog) async throws {
    let time = HostLog.now
    log.add(try await store.value(forKey: "n") ?? 0, at: time)
  }
}

/// The values that a host has written or read.
private struct HostLog: Codable {
  /// The time of a clock that all processes of the machine share, in nanoseconds.
  static var now: UInt64 { DispatchTime.now().uptimeNanoseconds }

  /// The time at which each write returned, or each read began.
  private(set) var times: [UInt64] = []
  private(set) var values: [Int] = []
  var failures = 0
  var hits = 0

  mutating func add(_ value: Int, at time: UInt64 = HostLog.now) {
    times.append(time)
    values.append(value)
  }

  /// Reads the log of a host.
  init(_ number: Int, in folder: TemporaryFolder) throws {
    self = try JSONDecoder().decode(HostLog.self, from: Data(contentsOf: URL(filePath: folder.path("log-\(number)"))))
  }

  init() {}

  /// Returns the reads that are older than a second by the commits of a writer.
  func readsTooOld(beside writer: HostLog) -> [String] {
    var (problems, written) = ([String](), 0)
    for (time, value) in zip(times, values) {
      while written < writer.times.count, writer.times[written] + 1_000_000_000 < time { written += 1 }
      guard written > 0, value < writer.values[written - 1] else { continue }
      let age = Double(time - writer.times[written - 1]) / 1e9
      problems.append("\(value) was read \(age) seconds after \(writer.values[written - 1]) had been written")
    }
    return problems
  }

  /// Returns how long it took until a read began that saw a write, for the writes until a time, in ascending order.
  func delays(of writer: HostLog, until end: UInt64) -> [Duration] {
    var (delays, read) = ([Duration](), 0)
    for (time, value) in zip(writer.times, writer.values) where time < end {
      while read < values.count, values[read] < value { read += 1 }
      guard read < values.count else { break }
      delays.append(.nanoseconds(times[read] > time ? times[read] - time : 0))
    }
    return delays.sorted()
  }
}
#endif
