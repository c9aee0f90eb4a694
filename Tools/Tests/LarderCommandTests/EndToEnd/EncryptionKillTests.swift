import Foundation
import LarderTesting
import Testing

/// Kills rotations of a key ring and walks that encrypt values again, at random moments.
///
/// After each kill, every value must be readable with the ring at rest.
@Suite struct EncryptionKillTests {
  private static let rounds =
    ProcessInfo.processInfo.environment["LARDER_KILL_ROUNDS"].flatMap { Int($0) } ?? 5

  private let folder: TemporaryFolder
  private let ring: String

  init() throws {
    folder = try TemporaryFolder()
    ring = "file:\(folder.path)/keys.json"
  }

  /// Starts the tool.
  private func start(_ arguments: [String]) throws -> Process {
    let process = Process()
    process.executableURL = URL(fileURLWithPath: Tool.path)
    process.arguments = arguments
    process.environment = ["SWIFT_BACKTRACE": "enable=no"]
    process.standardOutput = FileHandle.nullDevice
    process.standardError = FileHandle.nullDevice
    try process.run()
    return process
  }

  /// Runs the tool and kills it after a random time.
  ///
  /// - Returns: A Boolean value that indicates whether it had ended before.
  private func runAndKill(_ arguments: [String], upTo milliseconds: Int, _ generator: inout SeededGenerator) throws
    -> Bool
  {
    let process = try start(arguments)
    usleep(UInt32.random(in: 0...UInt32(milliseconds * 1000), using: &generator))
    kill(process.processIdentifier, SIGKILL)
    process.waitUntilExit()
    return process.terminationReason == .exit
  }

  @Test(arguments: [StoreKind.lmdb, .json])
  func `every value stays readable`(kind: StoreKind) async throws {
    let seed = SeededGenerator.seedOfProcess
    print("LARDER_SEED=\(seed)")
    var generator = SeededGenerator(seed: seed)
    let store = kind.url(in: folder)
    let options = ["--key-ring", ring, "--purpose", "users"]
    #expect(try await Tool.larder("keyring", "create", ring).status == 0)
    let lines = (0..<1000).map { "{\"key\":\"\(1000 + $0)\",\"value\":[\($0)]}\n" }.joined()
    let created = try await ToolRun.run(Tool.path, ["import", store] + options, input: lines)
    #expect(created.status == 0, "\(created)")
    var (killedRotations, killedWalks) = (0, 0)
    for round in 0..<EncryptionKillTests.rounds {
      // Two processes rotate at the same time, of which one is killed.
      let other = try start(["keyring", "rotate", ring])
      if try !runAndKill(["keyring", "rotate", ring], upTo: 60, &generator) { killedRotations += 1 }
      other.waitUntilExit()
      #expect(other.terminationStatus == 0)
      if try !runAndKill(["reencrypt", store] + options, upTo: 120, &generator) { killedWalks += 1 }
      let values = try await ToolRun.run(Tool.path, ["list", store] + options)
      #expect(values == .done(lines), "seed \(seed), round \(round): \(values.errors)")
    }
    let walk = try await ToolRun.run(Tool.path, ["reencrypt", store] + options)
    #expect(walk.status == 0 && walk.output.hasPrefix("{\"examined\":1000,\"failed\":0,"), "\(walk)")
    let needed = try await Tool.shell(
      "larder keyring list $1 $2 | jq -c 'select(.stores[] > 0) | [.isPrimary, .stores[]]'", ring, store)
    #expect(needed.output == "[true,1000]\n", "\(needed)")
    print(
      "\(kind): killed \(killedRotations) rotations and \(killedWalks) walks in \(EncryptionKillTests.rounds) rounds")
  }
}
