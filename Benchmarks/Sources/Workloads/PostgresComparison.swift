import Foundation
import PostgresServers

/// A subject and a yardstick on the PostgreSQL server of this process, whose rounds alternate.
///
/// Each round measures its own time, because the start of `pgbench` and of its connections does not count.
public struct PostgresComparison: Sendable {
  /// A closure that does the work of one round and returns its time for one operation, in seconds.
  typealias Round = @Sendable () async throws -> Double

  /// The rounds of a subject and its yardstick.
  struct Rounds: Sendable {
    let subject: Round
    let yardstick: Round
  }

  /// The name of the subject.
  public let name: String

  /// The name of the yardstick.
  public let yardstick: String

  /// The maximum ratio of the subject's time to that of the yardstick, or `nil` if Larder promises none.
  public let limit: Double?

  private let roundCount: Int
  private let prepare: @Sendable (PostgresServer, ScratchFolder) async throws -> Rounds

  init(
    _ name: String, beside yardstick: String, limit: Double? = nil, roundCount: Int = 15,
    prepare: @escaping @Sendable (PostgresServer, ScratchFolder) async throws -> Rounds
  ) {
    self.name = name
    self.yardstick = yardstick
    self.limit = limit
    self.roundCount = roundCount
    self.prepare = prepare
  }

  /// All comparisons.
  public static let all = PostgresStores.comparisons + PostgresQueues.comparisons

  /// A Boolean value that indicates whether this machine has a PostgreSQL server.
  public static var isPossible: Bool { PostgresServer.isInstalled }

  /// Measures the subject and the yardstick in alternating rounds, after a warm-up round for each.
  ///
  /// - Returns: The medians of the times for one operation, in seconds.
  /// - Throws: The error of the store, of the queue or of `pgbench`.
  @concurrent
  public func medians() async throws -> (subject: Double, yardstick: Double) {
    let folder = try ScratchFolder()
    let rounds = try await prepare(PostgresServer.local, folder)
    var times: (subject: [Double], yardstick: [Double]) = ([], [])
    for number in 0...roundCount {
      let (subject, yardstick) = (try await rounds.subject(), try await rounds.yardstick())
      guard number > 0 else { continue }
      times.subject.append(subject)
      times.yardstick.append(yardstick)
    }
    try folder.remove()
    return (times.subject.sorted()[roundCount / 2], times.yardstick.sorted()[roundCount / 2])
  }
}

/// Runs a closure in several tasks, in each of them one call after another.
///
/// - Parameters:
///   - count: The number of calls of all tasks.
///   - tasks: The number of tasks.
///   - body: A closure that receives the number of the call.
/// - Returns: The time divided by the number of calls, in seconds.
/// - Throws: The error that `body` throws.
func secondsForEach(
  of count: Int, tasks: Int, _ body: @escaping @Sendable (Int) async throws -> Void
) async throws -> Double {
  let each = count / tasks
  let time = try await ContinuousClock().measure {
    try await withThrowingDiscardingTaskGroup { group in
      for task in 0..<tasks {
        group.addTask {
          for number in task * each..<(task + 1) * each { try await body(number) }
        }
      }
    }
  }
  return time / .seconds(1) / Double(each * tasks)
}

/// The program `pgbench`, with a script whose statements it prepares once for each connection.
struct Pgbench: Sendable {
  private let server: PostgresServer
  private let arguments: [String]
  private let clients: Int

  /// Creates a file with a script.
  ///
  /// - Parameters:
  ///   - script: The script. It is one transaction.
  ///   - clients: The number of connections, each of which runs one transaction after another.
  ///   - variables: The values of variables in the script.
  ///   - server: The server.
  ///   - folder: The folder of the file.
  /// - Throws: The error of the file system.
  init(
    _ script: String, clients: Int, variables: [String: String] = [:], on server: PostgresServer,
    in folder: ScratchFolder
  ) throws {
    let path = folder.newPath()
    try Data((script + "\n").utf8).write(to: URL(filePath: path))
    // More threads than two are slower on a machine with two cores.
    arguments =
      ["-n", "-M", "prepared", "-f", path, "-c", "\(clients)", "-j", "\(min(clients, 2))"]
      + variables.flatMap { ["-D", "\($0)=\($1)"] }
    self.server = server
    self.clients = clients
  }

  /// Runs the script, and returns the time for one transaction as `pgbench` reports it, in seconds.
  ///
  /// - Parameters:
  ///   - count: The number of transactions of all connections.
  ///   - variables: The values of more variables in the script.
  /// - Throws: An error with the messages of `pgbench`.
  func secondsForEach(of count: Int, variables: [String: String] = [:]) async throws -> Double {
    let more = ["-t", "\(count / clients)"] + variables.flatMap { ["-D", "\($0)=\($1)"] }
    let run = try await server.run(pgbench: arguments + more)
    guard run.status == 0, let match = run.output.firstMatch(of: #/tps = ([0-9.]+)/#), let rate = Double(match.output.1)
    else { throw PgbenchFailure(description: "pgbench failed: \(run.errors)") }
    return 1 / rate
  }
}

/// The reason why `pgbench` did not finish.
private struct PgbenchFailure: Error, CustomStringConvertible {
  let description: String
}
