import ArgumentParser

@main
struct TransactionFeedCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "TransactionFeed",
    abstract: "A bank's feed of a million transactions in a Larder store: newest first, page by page.",
    discussion: """
      `show`, the default, fills a store, reads it like many customers while new transactions arrive, and prints the \
      times. `page` prints one page, from a cursor that another run has printed. `receive` adds transactions.
      """,
    subcommands: [ShowCommand.self, PageCommand.self, ReceiveCommand.self], defaultSubcommand: ShowCommand.self)
}
