import Foundation
import LarderTesting
import Testing

/// Replays inputs of `make fuzz`, and a few new ones.
///
/// `Inputs` has a folder for each target, with inputs that once broke a promise, or that get far into the decoder.
@Suite struct FuzzTargetTests {
  private static let inputs = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "Inputs")

  private static func inputs(of target: FuzzTarget) throws -> [(name: String, bytes: [UInt8])] {
    let folder = inputs.appending(path: target.rawValue)
    guard FileManager.default.fileExists(atPath: folder.path(percentEncoded: false)) else { return [] }
    return try FileManager.default.contentsOfDirectory(at: folder, includingPropertiesForKeys: nil)
      .sorted { $0.lastPathComponent < $1.lastPathComponent }
      .map { ($0.lastPathComponent, [UInt8](try Data(contentsOf: $0))) }
  }

  @Test(arguments: FuzzTarget.allCases) func `committed inputs keep the promises`(_ target: FuzzTarget) async throws {
    for (name, bytes) in try Self.inputs(of: target) {
      do { try await target.run(bytes) } catch { Issue.record("\(name): \(error)") }
    }
  }

  @Test(arguments: FuzzTarget.allCases) func `changed inputs keep the promises`(_ target: FuzzTarget) async throws {
    let seed = SeededGenerator.seedOfProcess
    var generator = SeededGenerator(seed: seed, purpose: "inputs of \(target)")
    let inputs = try Self.inputs(of: target).map(\.bytes) + [[]]
    for round in 0..<20 {
      var bytes = inputs.randomElement(using: &generator) ?? []
      for _ in 0..<Int.random(in: 1...4, using: &generator) {
        let byte = UInt8.random(in: 0...255, using: &generator)
        let index = Int.random(in: 0...bytes.count, using: &generator)
        switch Int.random(in: 0..<3, using: &generator) {
        case 0 where index < bytes.count: bytes[index] = byte
        case 1 where index < bytes.count: bytes.remove(at: index)
        default: bytes.insert(byte, at: index)
        }
      }
      do {
        try await target.run(bytes)
      } catch {
        Issue.record("seed \(seed), round \(round), the bytes \(bytes): \(error)")
      }
    }
  }
}
