import Foundation
import LarderTesting
import Testing

/// Kills imports at random moments.
///
/// No acknowledged entry may be lost, and no batch may be written in part.
@Suite struct KillTests {
  private static let lineCount = 6_000
  private static let batchSize = 30

  private static let rounds =
    ProcessInfo.processInfo.environment["LARDER_KILL_ROUNDS"].flatMap { Int($0) } ?? 2

  private let folder: TemporaryFolder

  init() throws {
    folder = try TemporaryFolder()
  }

  @Test(arguments: StoreKind.allCases, [1, 8])
  func `acknowledged entries survive SIGKILL`(kind: StoreKind, concurrency: Int) async throws {
    let path = folder.file(kind.fileName())
    let store = kind.url(in: folder)
    let seed = SeededGenerator.seedOfProcess
    print("LARDER_SEED=\(seed)")
    var generator = SeededGenerator(seed: seed)
    let padding = String(repeating: "x", count: 100)
    for round in 0..<KillTests.rounds {
      // After ten rounds, the store is large and slow enough.
      if round > 0, round.isMultiple(of: 10) { #expect(try await Tool.larder("clear", store) == .done()) }
      // All keys have the same number of digits, so that their order is that of the numbers.
      let lines = (0..<KillTests.lineCount).map { number in
        "{\"key\":\"\(round):\(1_000_000 + number)\",\"value\":[\(number),\"\(padding)\"]}\n"
      }
      let input = try folder.write(lines.joined(), to: "lines")
      let acknowledged = try await importAndKill(
        input, into: store, concurrency: concurrency,
        afterLines: Int.random(in: 0...KillTests.lineCount / KillTests.batchSize, using: &generator),
        andTurns: Int.random(in: 0...400_000, using: &generator))
      let context: Comment = "seed \(seed), round \(round), \(acknowledged) acknowledged"

      // In every other round, verify opens the store first. A torn tail is not damage.
      if round.isMultiple(of: 2) { try await verify(store, hasToBeThere: acknowledged > 0, context) }
      let keys = try await Tool.larder("list", store, "--keys", "--prefix", "\(round):")
      guard keys.status == 0 else {
        #expect(isBeingMade(keys) && acknowledged == 0, context)
        continue
      }
      let count = keys.output.split(separator: "\n").count
      #expect(count >= acknowledged, context)
      #expect(count.isMultiple(of: KillTests.batchSize) || count == KillTests.lineCount, context)
      let expected = (0..<count).map { "{\"key\":\"\(round):\(1_000_000 + $0)\"}\n" }
      #expect(keys.output == expected.joined(), context)
      if count > 0 {
        let last = try await Tool.larder("get", store, "\(round):\(1_000_000 + count - 1)")
        #expect(last == .done("[\(count - 1),\"\(padding)\"]\n"), context)
      }
      if !round.isMultiple(of: 2) { try await verify(store, hasToBeThere: true, context) }
      // A verb that writes removes the torn tail, so that any program can read the store.
      #expect(try await Tool.larder("set", store, "last", "\(round)") == .done(), context)
      let reader =
        switch kind {
        case .json: "command -v python3 >/dev/null || exit 0; python3 -m json.tool \"$1\" >/dev/null"
        case .compressed: "command -v zcat jq >/dev/null || exit 0; zcat < \"$1\" | jq -e . >/dev/null"
        case .lmdb: "command -v mdb_stat >/dev/null || exit 0; mdb_stat -s default \"$1\" >/dev/null"
        case .sqlite:
          "command -v sqlite3 >/dev/null || exit 0; sqlite3 \"$1\" 'PRAGMA integrity_check' | grep -qx ok"
        }
      #expect(try await Tool.shell(reader, path) == .done(), context)
    }
    print("\(kind): killed \(KillTests.rounds) imports of \(concurrency) concurrent batches")
  }

  /// Returns whether a verb that only reads found no store yet, or an LMDB data file without a lock file.
  private func isBeingMade(_ run: ToolRun) -> Bool {
    run.status == 66 || (run.status == 77 && run.errors.contains("lock file"))
  }

  private func verify(_ store: String, hasToBeThere isNeeded: Bool, _ context: Comment) async throws {
    let verify = try await Tool.larder("verify", store)
    // If it was killed early, the import has not created the store.
    #expect(verify.status == 0 || (isBeingMade(verify) && !isNeeded), "\(context): \(verify.errors)")
    #expect(verify.output == "", context)
  }

  /// Imports a file and kills the import.
  ///
  /// - Parameters:
  ///   - path: The file.
  ///   - store: The store to import into.
  ///   - concurrency: The number of concurrent batches.
  ///   - lineCount: The number of acknowledgements after which to kill the import.
  ///   - turns: The number of turns of an idle loop to wait after that, so the kill can hit any part of a commit.
  /// - Returns: The number of acknowledged entries.
  private func importAndKill(
    _ path: String, into store: String, concurrency: Int, afterLines lineCount: Int, andTurns turns: Int
  ) async throws -> Int {
    let process = Process()
    process.executableURL = URL(fileURLWithPath: Tool.path)
    process.arguments = [
      "import", store, path, "--acknowledge", "--batch", "\(KillTests.batchSize)", "--concurrency", "\(concurrency)",
    ]
    process.environment = ["SWIFT_BACKTRACE": "enable=no"]
    let pipe = Pipe()
    process.standardOutput = pipe
    process.standardError = FileHandle.nullDevice
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
    // A number without a line end was not printed completely.
    let lines = String(decoding: output, as: UTF8.self).split(separator: "\n", omittingEmptySubsequences: false)
      .dropLast()
    return lines.last.flatMap { Int($0) } ?? 0
  }
}
