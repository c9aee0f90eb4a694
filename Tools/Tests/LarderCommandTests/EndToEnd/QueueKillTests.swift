import Foundation
import Larder
import LarderFiles
import LarderQueue
import LarderTesting
import Testing

@testable import QueueWorker

/// Kills a process with many producers and consumers at random moments.
///
/// No item may be lost, and no acknowledged item may return.
@Suite struct QueueKillTests {
  private static let rounds =
    ProcessInfo.processInfo.environment["LARDER_KILL_ROUNDS"].flatMap { Int($0) } ?? 4

  private let folder: TemporaryFolder

  init() throws {
    folder = try TemporaryFolder()
  }

  /// The knowledge about the items, from the output of the killed processes and the content of the queue.
  private struct Items {
    /// The items that a producer began to enqueue.
    var named: Set<String> = []
    /// The items that must be in the queue unless a consumer acknowledges them.
    var enqueued: Set<String> = []
    /// The items that a consumer began to acknowledge.
    var taken: Set<String> = []
    /// The items that must never return.
    var gone: Set<String> = []

    mutating func note(_ line: Substring) throws {
      let words = line.split(separator: " ")
      let names = words.dropFirst().map(String.init)
      switch try #require(words.first.flatMap { QueueWork.Word(rawValue: String($0)) }) {
      case .enqueues: named.formUnion(names)
      case .hasEnqueued: enqueued.formUnion(names)
      case .acknowledges: taken.formUnion(names)
      case .hasAcknowledged: gone.formUnion(names)
      }
    }

    /// Compares the knowledge with the content of the queue, and updates it.
    mutating func check(against present: Set<String>, _ context: Comment) {
      #expect(enqueued.subtracting(taken).subtracting(present).isEmpty, "lost: \(context)")
      #expect(present.intersection(gone).isEmpty, "resurrected: \(context)")
      #expect(present.subtracting(named).isEmpty, "made up: \(context)")
      // An item that was neither reported as enqueued nor found was never enqueued, and must not appear later either.
      gone.formUnion(named.subtracting(present))
      enqueued = present
      taken = []
    }
  }

  @Test(arguments: [Durability.File.synced, .buffered])
  func `no item is lost or returns after SIGKILL`(durability: Durability.File) async throws {
    let seed = SeededGenerator.seedOfProcess
    print("LARDER_SEED=\(seed)")
    var generator = SeededGenerator(seed: seed)
    let path = folder.file("queue")
    var items = Items()
    for round in 0..<QueueKillTests.rounds {
      var options = ["--prefix", "\(round)", "--seed", "\(UInt64.random(in: 0 ... .max, using: &generator))"]
      if durability == .buffered { options.append("--buffered") }
      if Bool.random(using: &generator) { options.append("--voids") }
      let lines = try workAndKill(
        path, options, afterLines: .random(in: 0...1500, using: &generator),
        andTurns: .random(in: 0...400_000, using: &generator))
      for line in lines { try items.note(line) }
      let context: Comment = "seed \(seed), round \(round), \(lines.count) lines"

      let queue = try await open(path)
      let present = try await queue.entries(in: .all, limit: .max, order: .ascending).map(\.value)
      #expect(Set(present).count == present.count, context)
      items.check(against: Set(present), context)
      let counts = try await queue.counts()
      #expect(counts.live == present.count && counts.dead == 0, context)
      #expect(!queue.recovery.hasDamage, context)
      try await queue.close()
    }
    #expect(items.gone.count > QueueKillTests.rounds)
    try await drain(path, expecting: items.enqueued)
    print("\(durability): killed \(QueueKillTests.rounds) times, \(items.named.count) items")
  }

  /// Receives and acknowledges the remaining items, and checks that only these are delivered, once each.
  private func drain(_ path: String, expecting items: Set<String>) async throws {
    let queue = try await open(path, leases: .void)
    var delivered: [String] = []
    while true {
      let deliveries = try await queue.receive(max: 100, lease: .seconds(600))
      delivered += deliveries.map(\.value)
      #expect(try await queue.acknowledge(deliveries.map(\.receipt)) == [])
      // The delays of the killed process end within two milliseconds.
      if deliveries.isEmpty, try await queue.count() == 0 { break }
    }
    #expect(Set(delivered) == items && delivered.count == items.count)
    try await queue.close()
    let again = try await open(path, leases: .void)
    #expect(try await again.receive(max: 100, lease: .seconds(600)).isEmpty)
    try await again.close()
  }

  private func open(_ path: String, leases: LeasesOnOpening = .kept) async throws -> QueueStore<String> {
    try await QueueStore(path: path, configuration: QueueWorker.configuration, leases: leases)
  }

  /// Runs the worker, and kills it.
  ///
  /// - Parameters:
  ///   - path: The folder of the queue.
  ///   - options: The worker's options.
  ///   - lineCount: The number of lines after which to kill the worker.
  ///   - turns: The number of turns of an idle loop to wait after that, so the kill can hit any part of a commit.
  /// - Returns: All complete lines that it printed.
  private func workAndKill(
    _ path: String, _ options: [String], afterLines lineCount: Int, andTurns turns: Int
  ) throws -> [Substring] {
    let process = Process()
    process.executableURL = URL(fileURLWithPath: Tool.path).deletingLastPathComponent().appending(path: "QueueWorker")
    process.arguments = [path] + options
    process.environment = ["SWIFT_BACKTRACE": "enable=no"]
    let pipe = Pipe()
    process.standardOutput = pipe
    try process.run()
    var output = Data()
    var seenLines = 0
    while seenLines < lineCount {
      let more = pipe.fileHandleForReading.availableData
      guard !more.isEmpty else { break }
      seenLines += more.count { $0 == UInt8(ascii: "\n") }
      output += more
    }
    var turn = 0
    while turn < turns { turn += 1 }
    kill(process.processIdentifier, SIGKILL)
    output += try pipe.fileHandleForReading.readToEnd() ?? Data()
    process.waitUntilExit()
    #expect(process.terminationReason == .uncaughtSignal && process.terminationStatus == SIGKILL)
    return String(decoding: output, as: UTF8.self).split(separator: "\n", omittingEmptySubsequences: false).dropLast()
  }
}
