import ArgumentParser
import ExampleSupport
import Foundation

struct ShowCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "show", abstract: "Record events, lose none, and prove it.")

  @Option(
    help: "The folder of the outbox, which is kept, so that a run that was killed goes on; else one that is removed.")
  var folder: String?

  @Option(help: "How many events are recorded, those of earlier runs in the folder included.")
  var events = 20_000

  @Option(help: "What the failures and the moments of the crashes are drawn from.")
  var seed: UInt64 = 1

  @Option(name: .customLong("failure-rate"), help: "Which part of the requests fails, from 0 to 0.9.")
  var failureRate = 0.2

  @Option(help: "How often the client is killed while it records.")
  var crashes = 3

  func validate() throws {
    guard events >= 0 else { throw ValidationError("There cannot be fewer than no events.") }
    guard (0...0.9).contains(failureRate) else { throw ValidationError("The failure rate is between 0 and 0.9.") }
    guard crashes >= 0 else { throw ValidationError("There cannot be fewer than no crashes.") }
  }

  func run() async throws {
    let presentation = Presentation(
      eventCount: events, seed: seed, failureRate: failureRate, crashCount: crashes)
    let proof: Proof
    if let folder {
      proof = try await presentation.run(in: folder)
    } else {
      proof = try await TemporaryFolder.with { try await presentation.run(in: $0) }
    }
    print(proof)
    guard proof.holds else { throw ExitCode.failure }
  }
}
