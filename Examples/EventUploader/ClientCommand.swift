import ArgumentParser
import Foundation

struct ClientCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "client", abstract: "Record events in many tasks, and upload them until the server has accepted all.")

  @Option(help: "The folder of the outbox, which is created if it is missing.")
  var outbox: String

  @Option(help: "The HTTP URL to which events are sent.")
  var endpoint: String

  @Option(help: "The number of events to record, in addition to those in the outbox.")
  var events: Int

  @Option(help: "The prefix of the identifiers of the events. Use another one each time.")
  var session: String

  @Option(help: "The seed of the random pauses between attempts.")
  var seed: UInt64 = 1

  func run() async throws {
    guard let url = URL(string: endpoint) else { throw ValidationError("invalid URL: \(endpoint)") }
    OutputWatch.start()
    let client = try await Client(outboxPath: outbox, endpoint: HTTPEndpoint(url: url), session: session, seed: seed)
    try await client.run(eventCount: events) { event in
      // One unbuffered call for the whole line, so that the report survives if the process is killed.
      try FileHandle.standardOutput.write(contentsOf: Data("\(event.id)\n".utf8))
    }
  }
}
