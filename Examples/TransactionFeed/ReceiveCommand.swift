import ArgumentParser
import Foundation
import Larder
import LarderCache

struct ReceiveCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "receive", abstract: "Add new transactions, from several tasks at once.")

  @Option(help: "The folder of the store; it is made where it is missing.")
  var store: String

  @Option(help: "How many transactions.")
  var count = 1000

  @Option(help: "How many accounts they go to.")
  var accounts = 10

  @Option(help: "How many tasks add them.")
  var tasks = 8

  @Flag(help: "Print the identifier of each transaction once it is there for good.")
  var acknowledge = false

  func validate() throws {
    guard count >= 0 else { throw ValidationError("There cannot be fewer than no transactions.") }
    guard accounts >= 1 else { throw ValidationError("There must be an account at least.") }
    guard tasks >= 1 else { throw ValidationError("There must be a task at least.") }
  }

  func run() async throws {
    let feed = Feed(store: try await FeedStack.open(path: store))
    let prints = acknowledge
    try await Arrivals(accountCount: accounts, taskCount: tasks).run(into: feed, count: count) { transaction in
      guard prints else { return }
      // In one call for the whole line, past every buffer: what was acknowledged must not die with the process.
      try FileHandle.standardOutput.write(contentsOf: Data("\(transaction.id)\n".utf8))
    }
    try await feed.store.close()
  }
}
