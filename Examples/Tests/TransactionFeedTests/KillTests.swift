import ExampleSupport
import Foundation
import Larder
import LarderCache
import LarderTesting
import Testing

@testable import TransactionFeed

/// Kills the program at random moments while it adds transactions.
///
/// No acknowledged transaction may be lost.
@Suite("The program, killed while transactions arrive")
struct KillTests {
  private static let rounds =
    ProcessInfo.processInfo.environment["LARDER_KILL_ROUNDS"].flatMap { Int($0) } ?? 4

  @Test func `Every acknowledged transaction survives`() async throws {
    let seed = SeededGenerator.seedOfProcess
    var generator = SeededGenerator(seed: seed)
    try await TemporaryFolder.with { folder in
      let path = "\(folder)/feed.lmdb"
      var acknowledged: Set<UUID> = []
      for round in 0..<Self.rounds {
        let lines = try receiveAndKill(
          path, afterLines: .random(in: 1...200, using: &generator),
          andTurns: .random(in: 0...400_000, using: &generator))
        #expect(!lines.isEmpty)
        acknowledged.formUnion(try lines.map { try #require(UUID(uuidString: $0)) })

        let store = try await FeedStack.open(path: path, createsIfMissing: false)
        var present: Set<UUID> = []
        for try await entry in store.entries() { present.insert(entry.value.id) }
        try await store.close()
        let lost = acknowledged.subtracting(present)
        #expect(lost.isEmpty, "seed \(seed), round \(round)")
      }
    }
  }

  /// Adds transactions and kills the program.
  ///
  /// - Parameters:
  ///   - path: The path of the store.
  ///   - lineCount: The number of acknowledgements to wait for.
  ///   - turns: The number of iterations of an idle loop to wait afterward, so the kill can hit any part of a commit.
  /// - Returns: The lines of its output.
  private func receiveAndKill(_ path: String, afterLines lineCount: Int, andTurns turns: Int) throws -> [String] {
    let process = Process()
    process.executableURL = Self.program
    process.arguments = ["receive", "--store", path, "--count", "1000000", "--acknowledge"]
    process.environment = ["SWIFT_BACKTRACE": "enable=no"]
    let pipe = Pipe()
    process.standardOutput = pipe
    try process.run()
    var output = Data()
    while output.count(where: { $0 == UInt8(ascii: "\n") }) < lineCount {
      let more = pipe.fileHandleForReading.availableData
      guard !more.isEmpty else { break }
      output += more
    }
    var turn = 0
    while turn < turns { turn += 1 }
    kill(process.processIdentifier, SIGKILL)
    output += try pipe.fileHandleForReading.readToEnd() ?? Data()
    process.waitUntilExit()
    return String(decoding: output, as: UTF8.self).split(separator: "\n").map(String.init)
  }

  /// The path of the built program, in the folder of the tests.
  private static var program: URL {
    #if canImport(Darwin)
    let bundle = Bundle.allBundles.first { $0.bundlePath.hasSuffix(".xctest") } ?? .main
    return bundle.bundleURL.deletingLastPathComponent().appending(path: "TransactionFeed")
    #else
    return Bundle.main.bundleURL.appending(path: "TransactionFeed")
    #endif
  }
}
