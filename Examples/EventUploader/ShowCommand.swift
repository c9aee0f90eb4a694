import ArgumentParser
import ExampleSupport
import Foundation

struct ShowCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "show", abstract: "Record events, and prove that none is lost.")

  @Option(
    help: "The folder of the outbox. A later run continues one that was killed. Defaults to a temporary folder.")
  var folder: String?

  @Option(help: "The number of events to record, including those of earlier runs in the folder.")
  var events = 20_000

  @Option(help: "The seed of the random failures and crashes.")
  var seed: UInt64 = 1

  @Option(name: .customLong("failure-rate"), help: "The share of requests that fail, from 0 to 0.9.")
  var failureRate = 0.2

  @Option(help: "The number of times that the client is killed while it records.")
  var crashes = 3

  func validate() throws {
    guard events >= 0 else { throw ValidationError("--events must not be negative") }
    guard (0...0.9).contains(failureRate) else { throw ValidationError("--failure-rate must be from 0 to 0.9") }
    guard crashes >= 0 else { throw ValidationError("--crashes must not be negative") }
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
