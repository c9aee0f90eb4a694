import ArgumentParser

@main
struct TransactionFeedCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "TransactionFeed",
    abstract: "A bank's feed of a million transactions in a Larder store: newest first, page by page.",
    discussion: """
      `show`, which is what happens where nothing is said, fills a store, looks at it as many customers would while new \
      transactions come in, and prints what that took. `page` prints one page, from a cursor that another run has printed. \
      `receive` adds transactions.
      """,
    subcommands: [ShowCommand.self, PageCommand.self, ReceiveCommand.self], defaultSubcommand: ShowCommand.self)
}
