import ArgumentParser
import Foundation
import Larder
import LarderPostgres

@main
struct PaymentsCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "Payments", abstract: "Book payments in a PostgreSQL database, each exactly once.",
    subcommands: [PayCommand.self, WorkCommand.self, BalanceCommand.self])
}

/// The options of all commands.
struct LedgerOptions: ParsableArguments {
  @Option(help: "The connection, as libpq takes it. Defaults to the PG… variables.")
  var database = ""

  @Option(help: "The schema of the tables, which must exist.")
  var schema = "public"

  /// Opens the ledger, passes it to a closure, and closes it.
  func withLedger(_ body: (Ledger) async throws -> Void) async throws {
    let ledger = try await Ledger(database, schema: schema)
    do {
      try await body(ledger)
    } catch {
      await ledger.close()
      throw error
    }
    await ledger.close()
  }
}

struct PayCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "pay", abstract: "Hand a payment to the workers, once for each id.")

  @OptionGroup var options: LedgerOptions
  @Argument(help: "The account.") var account: String
  @Argument(help: "The amount in cents.") var cents: Int
  @Option(help: "The id of the payment.") var id: String

  func run() async throws {
    try await options.withLedger { ledger in
      let isNew = try await ledger.pay(Payment(account: account, cents: cents), id: StoreKey(id))
      print(isNew ? "accepted" : "known already")
    }
  }
}

struct WorkCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(commandName: "work", abstract: "Book payments until it is ended.")

  @OptionGroup var options: LedgerOptions
  @Option(help: "The seconds after which another worker takes over the payment of one that has died.") var lease = 30
  // For the tests, which kill the worker there.
  @Option(help: .hidden) var stopAt: Step?

  func run() async throws {
    let stopAt = stopAt
    try await options.withLedger { ledger in
      try await ledger.work(lease: .seconds(lease)) { step in
        guard step == stopAt else { return }
        try FileHandle.standardOutput.write(contentsOf: Data("\(step)\n".utf8))
        try await Task.sleep(for: .seconds(3600))
      }
    }
  }
}

struct BalanceCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(commandName: "balance", abstract: "Print the balances.")

  @OptionGroup var options: LedgerOptions

  func run() async throws {
    try await options.withLedger { ledger in
      for try await entry in ledger.balances.entries() { print(entry.key, entry.value) }
    }
  }
}

extension Step: ExpressibleByArgument {}
