import ExampleSupport
import Foundation
import Larder
import LarderPostgres
import PostgresServers
import Testing

@testable import Payments

/// Kills the program at each of its steps.
///
/// No payment may be lost, and none may be booked twice.
@Suite("The worker, killed at every step")
struct LedgerKillTests {
  private static let rounds =
    ProcessInfo.processInfo.environment["LARDER_KILL_ROUNDS"].flatMap { Int($0) } ?? 2

  @Test(arguments: Step.allCases)
  func `Each payment is booked exactly once`(_ step: Step) async throws {
    let server = try await PostgresServer.shared
    let schema = try await server.newSchema()
    let ledger = try await Ledger(server.connectionString, schema: schema)
    for round in 0..<Self.rounds {
      for number in 1...3 {
        _ = try await ledger.pay(Payment(account: "Ada", cents: number), id: StoreKey("\(round)-\(number)"))
      }
      try await killWorker(at: step, server, schema)
      let worker = try start(["--lease", "1"], server, schema)
      let end = ContinuousClock.now + .seconds(60)
      while try await ledger.payments.count() > 0, ContinuousClock.now < end {
        try await Task.sleep(for: .milliseconds(20))
      }
      try await worker.end()
      let bookings = try await server.run(
        psql: "SELECT string_agg(cents::text, ',' ORDER BY cents) FROM \(schema).bookings")
      let expected = (1...3).flatMap { number in Array(repeating: "\(number)", count: round + 1) }
      #expect(bookings == expected.joined(separator: ","))
      #expect(try await ledger.balances.value(forKey: "Ada") == 6 * (round + 1))
      #expect(try await ledger.payments.counts() == QueueCounts())
    }
    await ledger.close()
  }

  @Test func `A payment that another worker has taken over is not booked again`() async throws {
    let server = try await PostgresServer.shared
    let ledger = try await Ledger(server.connectionString, schema: server.newSchema())
    #expect(try await ledger.pay(Payment(account: "Ada", cents: 5), id: "a"))
    #expect(try await !ledger.pay(Payment(account: "Ada", cents: 5), id: "a"))
    let (steps, reached) = AsyncStream.makeStream(of: Step.self)
    let (pause, mayContinue) = AsyncStream.makeStream(of: Void.self)
    let slow = Task {
      try await ledger.work(lease: .milliseconds(100)) { step in
        reached.yield(step)
        if step == .received { for await _ in pause {} }
      }
    }
    for await step in steps where step == .received { break }
    let fast = Task { try await ledger.work(lease: .seconds(30)) }
    while try await ledger.payments.count() > 0 { try await Task.sleep(for: .milliseconds(20)) }
    mayContinue.finish()
    for await step in steps where step == .committed { break }
    slow.cancel()
    fast.cancel()
    _ = await (slow.result, fast.result)
    #expect(try await ledger.balances.value(forKey: "Ada") == 5)
    await ledger.close()
  }

  /// Runs a worker until it has reached a step, and kills it there.
  private func killWorker(at step: Step, _ server: PostgresServer, _ schema: String) async throws {
    let worker = try start(["--lease", "1", "--stop-at", step.rawValue], server, schema)
    #expect(try await worker.line { _ in true } == "\(step)")
    worker.signal(SIGKILL)
    #expect(try await worker.waitForEnd() == nil)
  }

  /// Starts the program as a worker.
  private func start(_ arguments: [String], _ server: PostgresServer, _ schema: String) throws -> ExampleProcess {
    try ExampleProcess(
      "Payments", ["work", "--database", server.connectionString, "--schema", schema] + arguments)
  }
}
