import ArgumentParser
import Larder

/// `larder export`.
struct ExportCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "export",
    abstract: "Print every entry, for import into another store.",
    discussion: """
      Prints a line of JSON for each entry, in the order of the keys; all of them, or those within the bounds.

        larder export json:users.json > users.jsonl
        larder export json:users.json --prefix guest: --reverse
        larder export json:users.json | larder import json:copy.json
      """)

  @OptionGroup var store: StoreArgument
  @OptionGroup var access: AccessOption
  @OptionGroup var range: RangeOptions
  @Flag(help: "From the highest key to the lowest.") var reverse = false

  func run() async throws {
    var walk = try StoreWalk(try range.range(), order: reverse ? .descending : .ascending)
    try await StoreSession.run(
      store.target, createsIfMissing: false, access: access.storeAccess
    ) { store, output in
      try await walk.printEntries(of: store, to: output)
    }
  }
}
