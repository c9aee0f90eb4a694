import ArgumentParser
import Larder
import LarderExpiry

/// `larder salvage`.
struct SalvageCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "salvage",
    abstract: "Copy what can be read of a damaged store into a new one, and list what cannot.",
    discussion: """
      Opens the damaged store to read only and leaves it as it is. Prints a line {"key":…,"message":…} for each key that \
      cannot be read, and {"from":…,"upTo":…,"message":…} for a range of which it is not known which keys it had: without \
      its end, and with null for no bound. Ends with 2 where there is any. The new store must have no entries.

        larder salvage json:users.json json:rescued.json
        larder salvage compressed:users.gz compressed:rescued.gz
      """)

  @Argument(help: ArgumentHelp("The damaged store, like compressed:users.gz.", valueName: "source"))
  var source: String
  @Argument(help: ArgumentHelp("The store to make, like compressed:rescued.gz.", valueName: "target"))
  var target: String
  @OptionGroup var access: AccessOption
  @OptionGroup var opening: OpeningOptions

  func run() async throws {
    guard try StoreURL(source) != StoreURL(target) else {
      throw CommandFailure(
        .usage, "\(source) cannot be salvaged into itself", advice: "Give a store that is not there yet.")
    }
    var salvage = StoreSalvage()
    try await StoreSession.runOpened(
      opening.target(source), createsIfMissing: false, access: access.storeAccess
    ) { source, output in
      let expiration: Expiration? = source.expiry == nil ? nil : .never
      try await StoreSession.runOpened(
        opening.target(target), createsIfMissing: true, expiration: expiration, codecName: source.codecName
      ) { target, _ in
        guard try await target.stored.keys(in: .all, limit: 1, order: .ascending).isEmpty else {
          throw CommandFailure(
            .usage, "\(self.target) has entries already",
            advice: "Give a store that is not there yet, or larder clear it.")
        }
        try await salvage.run(from: source.stored, to: target.stored) { keys, error in
          try output.writeLine { EntryLine.append(keys, message: error.fullMessage, to: &$0) }
        }
      }
    }
    Diagnostics.writeLine(salvage.summary)
    if salvage.unreadable > 0 { throw ExitStatus.damaged }
  }
}
