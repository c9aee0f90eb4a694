import ArgumentParser
import Foundation

struct ClientCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "client", abstract: "Record events from many tasks and upload them, until all have been taken.")

  @Option(help: "The folder of the outbox; it is made where it is missing.")
  var outbox: String

  @Option(help: "Where events are sent, by HTTP.")
  var endpoint: String

  @Option(help: "How many events are recorded, beside those that are in the outbox already.")
  var events: Int

  @Option(help: "What the names of the events begin with; another one each time.")
  var session: String

  @Option(help: "What the pauses between attempts are drawn from.")
  var seed: UInt64 = 1

  func run() async throws {
    guard let url = URL(string: endpoint) else { throw ValidationError("\(endpoint) is no URL.") }
    OutputWatch.start()
    let client = try await Client(outboxPath: outbox, endpoint: HTTPEndpoint(url: url), session: session, seed: seed)
    try await client.run(eventCount: events) { event in
      // In one call for the whole line, past every buffer: what was recorded must not die with the process.
      try FileHandle.standardOutput.write(contentsOf: Data("\(event.id)\n".utf8))
    }
  }
}
