import ArgumentParser
import ExampleSupport
import Larder

struct ShowCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "show", abstract: "Fill a store, read it like many customers, and print the times.")

  @Option(help: "The folder of the store, which is kept. Defaults to a temporary folder.")
  var store: String?

  @Option(help: "The initial number of transactions.")
  var transactions = 1_000_000

  @Option(help: "The number of accounts that share them.")
  var accounts = 10

  @Option(help: "The seed of the random transactions and visits.")
  var seed: UInt64 = 1

  @Option(help: "The number of visits while new transactions arrive.")
  var visits = 200

  @Flag(help: "Also measure the naive way, an array of all keys under one key, and a feed of 10,000 transactions.")
  var compare = false

  func validate() throws {
    guard accounts >= 1 else { throw ValidationError("--accounts must be at least 1") }
    guard transactions >= accounts else {
      throw ValidationError("--transactions must be at least the number of accounts")
    }
    guard visits >= 0 else { throw ValidationError("--visits must not be negative") }
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
