import Foundation
import LarderTesting
import Testing

/// Kills the verbs of `larder queue` at random moments.
///
/// A reported operation must have taken effect. An unreported one must have taken effect completely or not at all.
@Suite struct QueueVerbKillTests {
  private static let rounds =
    ProcessInfo.processInfo.environment["LARDER_KILL_ROUNDS"].flatMap { Int($0) } ?? 10

  private let folder: TemporaryFolder
  private let queue: String

  init() throws {
    folder = try TemporaryFolder()
    queue = "queue:\(folder.file("queue"))"
  }

  /// The line that a verb prints for an item.
  private struct Line: Decodable {
    let key: String
    let receipt: String?
  }

  /// Runs a verb, and kills it with a probability of one half.
  private func larder(
    _ verb: String, _ arguments: [String] = [], _ generator: inout SeededGenerator
  ) async throws -> (status: Int32, lines: [Line]) {
    let output = try folder.write("", to: "output")
    let handle = try FileHandle(forWritingTo: URL(fileURLWithPath: output))
    let process = Process()
    process.executableURL = URL(fileURLWithPath: Tool.path)
    process.arguments = ["queue", verb, queue] + arguments
    process.environment = ["SWIFT_BACKTRACE": "enable=no"]
    process.standardOutput = handle
    process.standardError = FileHandle.nullDevice
    let (end, continuation) = AsyncStream<Never>.makeStream()
    process.terminationHandler = { _ in continuation.finish() }
    try process.run()
    if Bool.random(using: &generator) {
      try await Task.sleep(for: .milliseconds(Int.random(in: 0...40, using: &generator)))
      if process.isRunning { kill(process.processIdentifier, SIGKILL) }
    }
    for await _ in end {}
    try handle.close()
    let lines = try String(contentsOfFile: output, encoding: .utf8).split(separator: "\n")
    return (
      process.terminationReason == .exit ? process.terminationStatus : -process.terminationStatus,
      try lines.map { try JSONDecoder().decode(Line.self, from: Data($0.utf8)) }
    )
  }

  @Test func `no item is lost or returns`() async throws {
    let seed = SeededGenerator.seedOfProcess
    print("LARDER_SEED=\(seed)")
    var generator = SeededGenerator(seed: seed)
    var (enqueued, begun, gone): (Set<String>, Set<String>, Set<String>) = ([], [], [])
    for round in 0..<Self.rounds {
      // The item is enqueued once its line is printed, even if the process was killed afterward.
      enqueued.formUnion(try await larder("enqueue", ["1", "--id", "\(round)"], &generator).lines.map(\.key))
      let deliveries = try await larder("receive", ["--max", "2", "--lease", "1h"], &generator).lines
      #expect(gone.isDisjoint(with: deliveries.map(\.key)), "seed \(seed), round \(round)")
      guard !deliveries.isEmpty else { continue }
      begun.formUnion(deliveries.map(\.key))
      let end = try await larder("acknowledge", deliveries.compactMap(\.receipt), &generator)
      #expect(end.status == 0 || end.status == -SIGKILL, "seed \(seed), round \(round)")
      if end.status == 0 { gone.formUnion(deliveries.map(\.key)) }
    }
    let list = try await Tool.larder("list", queue, "--keys")
    #expect(list.status == 0 && list.errors.isEmpty, "seed \(seed)")
    let present = Set(
      try list.output.split(separator: "\n").map { try JSONDecoder().decode(Line.self, from: Data($0.utf8)).key })
    #expect(enqueued.subtracting(begun).isSubset(of: present), "seed \(seed)")
    #expect(present.isDisjoint(with: gone), "seed \(seed)")
    #expect(present.isSubset(of: Set((0..<Self.rounds).map { "\($0)" })), "seed \(seed)")
    #expect(try await Tool.larder("verify", queue).status == 0, "seed \(seed)")
  }
}
