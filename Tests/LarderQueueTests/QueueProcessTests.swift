import Foundation
import Larder
import LarderQueue
import LarderTesting
import Synchronization
import TestSupport
import Testing

/// A process with several producers and consumers that is killed at any moment; `LARDER_KILL_ROUNDS` says how often, 6
/// unless set.
@Suite struct QueueProcessTests {
  private static let rounds = ProcessInfo.processInfo.environment["LARDER_KILL_ROUNDS"].flatMap { Int($0) } ?? 6

  /// Appends a line to a file, by one write that outlives the process.
  private static func note(_ line: String, in path: String) {
    let file = open(path, O_WRONLY | O_APPEND | O_CREAT, 0o600)
    let bytes = Array("\(line)\n".utf8)
    let count = bytes.withUnsafeBytes { write(file, $0.baseAddress, $0.count) }
    precondition(count == bytes.count)
    close(file)
  }

  /// What the killed processes have noted: whose enqueuing had returned, whose acknowledging had begun, and had returned.
  private struct Notes {
    var enqueued: Set<String> = []
    var begun: Set<String> = []
    var acknowledged: Set<String> = []

    init(_ path: String) throws {
      guard FileManager.default.fileExists(atPath: path) else { return }
      for line in try String(contentsOfFile: path, encoding: .utf8).split(separator: "\n") {
        let key = String(line.dropFirst(2))
        switch line.first {
        case "e": enqueued.insert(key)
        case "b": begun.insert(key)
        default: acknowledged.insert(key)
        }
      }
    }
  }

  /// Produces and consumes until the process is killed, after so many calls.
  private static func work(_ folder: String, round: Int, calls: Int) async throws {
    let left = Mutex(calls)
    let count = { @Sendable in
      let isLast = left.withLock { left in
        left -= 1
        return left == 0
      }
      if isLast { kill(getpid(), SIGKILL) }
    }
    let queue = try await QueueStore<String>(
      path: "\(folder)/queue", configuration: QueueConfiguration(maximumDeliveries: nil, segmentSize: 8192),
      durability: round.isMultiple(of: 2) ? .synced : .buffered, leases: .void)
    let notes = "\(folder)/notes"
    try await withThrowingTaskGroup(of: Void.self) { group in
      for producer in 0..<3 {
        group.addTask {
          for number in 0... {
            let key = "\(round)-\(producer)-\(number)"
            try await queue.enqueue(key, id: StoreKey(key))
            note("e \(key)", in: notes)
            count()
          }
        }
      }
      for _ in 0..<2 {
        group.addTask {
          while true {
            let deliveries = try await queue.receive(max: 3, lease: .seconds(600))
            guard !deliveries.isEmpty else {
              await Task.yield()
              continue
            }
            for delivery in deliveries { note("b \(delivery.value)", in: notes) }
            guard try await queue.acknowledge(deliveries.map(\.receipt)).isEmpty else { return }
            for delivery in deliveries { note("a \(delivery.value)", in: notes) }
            count()
          }
        }
      }
      try await group.waitForAll()
    }
  }

  @Test func aKilledProcessLosesNothingAndBringsNothingBack() async throws {
    let folder = try TemporaryFolder()
    let seed = SeededGenerator.seedOfProcess
    var generator = SeededGenerator(seed: seed, purpose: "kills")
    for round in 0..<QueueProcessTests.rounds {
      let calls = Int.random(in: 1...300, using: &generator)
      await #expect(processExitsWith: .signal(SIGKILL)) {
        [path = folder.path as String, round = round as Int, calls = calls as Int] in
        try await QueueProcessTests.work(path, round: round, calls: calls)
      }
      let notes = try Notes(folder.path("notes"))
      let queue = try await QueueStore<String>(
        path: folder.path("queue"), configuration: QueueConfiguration(segmentSize: 8192))
      #expect(!queue.recovery.hasDamage)
      let there = Set(try await queue.entries(in: .all, limit: .max).map(\.value))
      let lost = notes.enqueued.subtracting(notes.begun).subtracting(there)
      #expect(lost.isEmpty, "LARDER_SEED=\(seed), round \(round)")
      #expect(notes.acknowledged.isDisjoint(with: there), "LARDER_SEED=\(seed), round \(round)")
      try await queue.close()
    }
  }
}
