import Foundation
import Larder
import LarderPostgres
import PostgresServers

/// Measures writes to a PostgresStore that reports its changes to other hosts, beside one that does not, and the delays
/// of the reports, and prints tables in Markdown.
///
/// The rounds of both stores alternate. The server is started for the run, with `fsync`, and is reached by a Unix socket.
/// The writer has 16 connections. Another host, which observes the store and so reads its feed, shares the processors with
/// the writer and the server, so the costs are measured without it and with it.
@main
enum FeedCosts {
  private static let roundCount = 31

  static func main() async throws {
    guard PostgresServer.isInstalled else {
      FileHandle.standardError.write(Data("PostgreSQL is not installed, so nothing is measured.\n".utf8))
      return
    }
    let server = try await PostgresServer.local
    let schema = try await server.newSchema()
    let database = try await PostgresDatabase(server.connectionString, schema: schema, connections: 16)
    let reporting = try await PostgresStore<Int>(in: database, name: "reporting", reportsChanges: true)
    let plain = try await PostgresStore<Int>(in: database, name: "plain")
    print("| Subject | Median | Yardstick | Median | Ratio | Limit |\n| --- | ---: | --- | ---: | ---: | ---: |")
    try await compareAll(reporting, plain, "reported to other hosts")
    let other = try await PostgresDatabase(server.connectionString, schema: schema, connections: 1)
    let observed = try await PostgresStore<Int>(in: other, name: "reporting")
    let arrivals = Arrivals()
    let observation = observed.observe(.all) { _ in arrivals.note() }
    while observation.lag > .seconds(1) { try await Task.sleep(for: .milliseconds(10)) }
    try await compareAll(reporting, plain, "reported to another host on the same processors")
    try await measureDelays(reporting, arrivals)
    observation.cancel()
    await other.close()
    await database.close()
  }

  private static func compareAll(
    _ reporting: PostgresStore<Int>, _ plain: PostgresStore<Int>, _ text: String
  ) async throws {
    try await compare("write of one key by 16 tasks, \(text)", reporting, plain) { store in
      try await run(tasks: 16, count: 25) { try await store.setValue($0, forKey: StoreKey(integer: $0 % 1000)) }
    }
    try await compare("write of one key by one task, \(text)", reporting, plain) { store in
      try await run(tasks: 1, count: 100) { try await store.setValue($0, forKey: StoreKey(integer: $0 % 1000)) }
    }
    try await compare("batch of 100 keys by 4 tasks, \(text)", reporting, plain) { store in
      try await run(tasks: 4, count: 10) { number in
        try await store.apply(ChangeBatch((0..<100).map { .set(StoreKey(integer: 100 * (number % 10) + $0), number) }))
      }
    }
  }

  /// Runs a closure several times in each of several tasks.
  ///
  /// - Returns: The number of calls.
  private static func run(
    tasks: Int, count: Int, _ body: @escaping @Sendable (_ number: Int) async throws -> Void
  ) async throws -> Int {
    try await withThrowingTaskGroup(of: Void.self) { group in
      for task in 0..<tasks {
        group.addTask {
          for number in 0..<count { try await body(task * count + number) }
        }
      }
      try await group.waitForAll()
    }
    return tasks * count
  }

  /// Measures work on two stores in turn, after a round of each to warm up, and prints the line of the table.
  private static func compare(
    _ name: String, _ reporting: PostgresStore<Int>, _ plain: PostgresStore<Int>,
    _ work: (PostgresStore<Int>) async throws -> Int
  ) async throws {
    var times: [[Double]] = [[], []]
    for round in 0...roundCount {
      for (index, store) in [reporting, plain].enumerated() {
        let start = ContinuousClock.now
        let count = try await work(store)
        if round > 0 { times[index].append((ContinuousClock.now - start) / .seconds(1) / Double(count)) }
      }
    }
    let medians = times.map { $0.sorted()[roundCount / 2] }
    let ratio = String(format: "%.2f", medians[0] / medians[1])
    let text = medians.map { String(format: "%.0f µs", $0 * 1e6) }
    print("| \(name) | \(text[0]) | not reported | \(text[1]) | \(ratio) | 1.15 |")
  }

  /// Measures the time from the return of a write to the report on the other host.
  private static func measureDelays(_ store: PostgresStore<Int>, _ arrivals: Arrivals) async throws {
    var delays: [Duration] = []
    for number in 0..<500 {
      let arrival = arrivals.next()
      try await store.setValue(number, forKey: "n")
      let returned = ContinuousClock.now
      delays.append(max(.zero, await arrival.value - returned))
    }
    delays.sort()
    func text(_ share: Double) -> String {
      String(format: "%.1f ms", delays[Int(share * Double(delays.count - 1))] / .milliseconds(1))
    }
    print("\nA report arrives after \(text(0.5)) at the median and \(text(0.99)) at the 99th percentile of 500 writes.")
  }
}

/// The arrivals of reports on the other host.
private final class Arrivals: Sendable {
  private let waiting = Locked<AsyncStream<ContinuousClock.Instant>.Continuation?>(nil)

  func note() {
    let time = ContinuousClock.now
    waiting.withLock { $0.take() }?.yield(time)
  }

  /// Returns a task that ends with the time of the next arrival.
  func next() -> Task<ContinuousClock.Instant, Never> {
    let (arrivals, arrival) = AsyncStream.makeStream(of: ContinuousClock.Instant.self)
    waiting.withLock { $0 = arrival }
    return Task {
      for await time in arrivals { return time }
      return .now
    }
  }
}
