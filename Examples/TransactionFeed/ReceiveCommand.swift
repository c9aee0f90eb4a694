import ArgumentParser
import Foundation
import Larder
import LarderCache

struct ReceiveCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "receive", abstract: "Add new transactions in several concurrent tasks.")

  @Option(help: "The folder of the store, which is created if it is missing.")
  var store: String

  @Option(help: "The number of transactions.")
  var count = 1000

  @Option(help: "The number of accounts that they belong to.")
  var accounts = 10

  @Option(help: "The number of tasks that add them.")
  var tasks = 8

  @Flag(help: "Print the identifier of each transaction once it is durable.")
  var acknowledge = false

  func validate() throws {
    guard count >= 0 else { throw ValidationError("--count must not be negative") }
    guard accounts >= 1 else { throw ValidationError("--accounts must be at least 1") }
    guard tasks >= 1 else { throw ValidationError("--tasks must be at least 1") }
  }

  func run() async throws {
    let feed = Feed(store: try await FeedStack.open(path: store))
    let prints = acknowledge
    try await Arrivals(accountCount: accounts, taskCount: tasks).run(into: feed, count: count) { transaction in
      guard prints else { return }
      // One unbuffered call for the whole line, so that the report survives if the process is killed.
      try FileHandle.standardOutput.write(contentsOf: Data("\(transaction.id)\n".utf8))
    }
    try await feed.store.close()
  }
}
