import ArgumentParser
import ExampleSupport
import Larder

struct ShowCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "show", abstract: "Fill a store, read it as many customers would, and print what that took.")

  @Option(help: "The folder of the store, which is kept; one that is removed at the end, unless given.")
  var store: String?

  @Option(help: "How many transactions there are at first.")
  var transactions = 1_000_000

  @Option(help: "How many accounts share them.")
  var accounts = 10

  @Option(help: "What the transactions and the visits are made from: the same seed makes the same ones.")
  var seed: UInt64 = 1

  @Option(help: "How many visits are made while new transactions come in.")
  var visits = 200

  @Flag(help: "Measure the naive way as well, an array of all keys under one key; and a feed of 10,000 transactions.")
  var compare = false

  func validate() throws {
    guard accounts >= 1 else { throw ValidationError("There must be an account at least.") }
    guard transactions >= accounts else { throw ValidationError("There must be a transaction for each account.") }
    guard visits >= 0 else { throw ValidationError("There cannot be fewer than no visits.") }
  }

  func run() async throws {
    let presentation = Presentation(
      transactionCount: transactions, accountCount: accounts, seed: seed, visitCount: visits)
    guard let store else {
      return try await TemporaryFolder.with { folder in
        try await presentation.run(path: "\(folder)/feed.lmdb", compares: compare)
      }
    }
    try await presentation.run(path: store, compares: compare)
  }
}
