import ExampleSupport
import Foundation
import Larder

/// Runs the server, and one client after another, of which all but the last are killed.
struct Presentation {
  let eventCount: Int
  let seed: UInt64
  let failureRate: Double
  let crashCount: Int

  /// Runs the presentation.
  ///
  /// - Parameter folder: The folder of the outbox and of the names of the recorded and received events. A run continues
  ///   an earlier one that was killed in the same folder.
  /// - Returns: The result.
  func run(in folder: String) async throws -> Proof {
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
    let collector = Collector(
      plan: FaultPlan(rate: failureRate, seed: seed), received: try NotedNames(path: "\(folder)/received"))
    let recorded = Recorded(try NotedNames(path: "\(folder)/recorded"))
    let server = try await Server(answer: collector.take)
    let start = ContinuousClock.now
    print(
      "\(TextFormat.count(eventCount)) events through an outbox to \(server.url), where "
        + "\(TextFormat.percent(failureRate)) of the requests fail")
    if recorded.count > 0 {
      print(
        "Continuing after \(TextFormat.count(recorded.count)) were recorded and "
          + "\(TextFormat.count(collector.intake.received.count)) received")
    }
    let summary = Task {
      await LiveSummary().run { (recorded.count, collector.intake) }
    }
    let result: Result<Void, any Error>
    do {
      result = .success(
        try await runClients(ClientProcess(outbox: "\(folder)/outbox", endpoint: server.url), recorded, collector))
    } catch {
      result = .failure(error)
    }
    await server.stop()
    summary.cancel()
    await summary.value
    try result.get()
    print("Done in \(TextFormat.duration(start.duration(to: .now)))\n")
    return Proof(recorded: recorded.names, intake: collector.intake)
  }

  private func runClients(_ client: ClientProcess, _ recorded: Recorded, _ collector: Collector) async throws {
    var generator = SplitMix64(seed: seed &+ 1)
    // Different in each run, so that identifiers are unique.
    let run = String(UInt64.random(in: 0 ... .max), radix: 16)
    var left = max(0, eventCount - recorded.count)
    for number in 0...crashCount {
      // All clients but the last are killed at a random moment.
      let isKilled = number < crashCount && left > 1
      let part = max(1, left / (crashCount - number + 1))
      let killCount = isKilled ? Int.random(in: 1...part, using: &generator) : nil
      let end = try await client.run(
        eventCount: left, session: "\(run)-\(number)", seed: seed &+ UInt64(number), killedAfter: killCount
      ) { names in
        try recorded.note(names)
      }
      left = max(0, left - end.recordedCount)
      if end.wasKilled {
        print(
          "Killed the client when \(TextFormat.count(recorded.count)) events were recorded and "
            + "\(TextFormat.count(collector.intake.received.count)) received")
      }
    }
  }

  /// The events that clients have reported as recorded.
  private final class Recorded: Sendable {
    private let noted: Locked<NotedNames>

    init(_ noted: NotedNames) {
      self.noted = Locked(noted)
    }

    var names: Set<String> { noted.withLock { $0.names } }

    var count: Int { noted.withLock { $0.names.count } }

    func note(_ more: [String]) throws {
      try noted.withLock { _ = try $0.note(more) }
    }
  }
}
