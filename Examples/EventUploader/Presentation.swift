import ExampleSupport
import Synchronization

/// Runs the server, and one client after another, each killed but for the last.
struct Presentation {
  let eventCount: Int
  let seed: UInt64
  let failureRate: Double
  let crashCount: Int

  /// Runs all of it.
  ///
  /// - Parameter outbox: The folder of the outbox.
  /// - Returns: What came of it.
  func run(outbox: String) async throws -> Proof {
    let collector = Collector(plan: FaultPlan(rate: failureRate, seed: seed))
    let server = try Server(collector: collector)
    let recorded = Recorded()
    let start = ContinuousClock.now
    print(
      "\(TextFormat.count(eventCount)) events through an outbox to \(server.url), where "
        + "\(TextFormat.percent(failureRate)) of the requests fail")
    let summary = Task {
      await LiveSummary().run { (recorded.names.withLock { $0.count }, collector.intake) }
    }
    let result: Result<Void, any Error>
    do {
      result = .success(
        try await runClients(ClientProcess(outbox: outbox, endpoint: server.url), recorded, collector))
    } catch {
      result = .failure(error)
    }
    server.stop()
    summary.cancel()
    await summary.value
    try result.get()
    print("Done in \(TextFormat.duration(start.duration(to: .now)))\n")
    return Proof(recorded: recorded.names.withLock { $0 }, intake: collector.intake)
  }

  private func runClients(_ client: ClientProcess, _ recorded: Recorded, _ collector: Collector) async throws {
    var generator = SplitMix64(seed: seed &+ 1)
    var left = eventCount
    for number in 0...crashCount {
      // All but the last client die, each at a moment of chance.
      let isKilled = number < crashCount && left > 1
      let part = max(1, left / (crashCount - number + 1))
      let killCount = isKilled ? Int.random(in: 1...part, using: &generator) : nil
      let end = try await client.run(
        eventCount: left, session: "\(number)", seed: seed &+ UInt64(number), killedAfter: killCount
      ) { name in
        recorded.names.withLock { _ = $0.insert(name) }
      }
      left = max(0, left - end.recordedCount)
      if end.wasKilled {
        let (recordedCount, receivedCount) = (recorded.names.withLock { $0.count }, collector.intake.received.count)
        print(
          "Killed the client when \(TextFormat.count(recordedCount)) events were recorded and "
            + "\(TextFormat.count(receivedCount)) received")
      }
    }
  }

  /// What clients have said that they recorded.
  private final class Recorded: Sendable {
    let names = Mutex<Set<String>>([])
  }
}
