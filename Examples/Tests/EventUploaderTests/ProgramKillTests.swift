import ExampleSupport
import Foundation
import Larder
import LarderQueue
import Testing

@testable import EventUploader

@Suite("The program, killed")
struct ProgramKillTests {
  @Test func `Killed at any moment, the program continues when it is run again, and leaves no client behind`()
    async throws
  {
    let environment = ProcessInfo.processInfo.environment
    let rounds = environment["LARDER_KILL_ROUNDS"].flatMap { Int($0) } ?? 3
    let seed = environment["LARDER_SEED"].flatMap { UInt64($0) } ?? .random(in: 0 ... .max)
    print("LARDER_SEED=\(seed)")
    var generator = SplitMix64(seed: seed)
    try await TemporaryFolder.with { folder in
      let kept = ["--folder", "\(folder)/kept", "--crashes", "1"]
      for round in 0..<rounds {
        let moment = Duration.milliseconds(Int.random(in: 0...600, using: &generator))
        // More events each time, so that there are always events to record.
        _ = try await Program.run(in: folder, events: 300 * (round + 1), kept, killedAfter: moment)
      }
      let (status, text) = try await Program.run(in: folder, events: 300 * rounds, kept)
      #expect(status == 0 && text.contains(Program.success), "seed \(seed): \(text)")
      // Opens immediately, because no process has the outbox open.
      let outbox = try await QueueStore<Event>(path: "\(folder)/kept/outbox")
      #expect(try await outbox.counts() == QueueCounts())
      try await outbox.close()
    }
  }
}
