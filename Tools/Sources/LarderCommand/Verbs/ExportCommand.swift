import ArgumentParser
import Larder

/// `larder export`.
struct ExportCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "export",
    abstract: "Print every entry, for import into another store.",
    discussion: """
      Prints a line of JSON for each entry, in the order of the keys.

        larder export json:users.json > users.jsonl
        larder export json:users.json | larder import json:copy.json
      """)

  @OptionGroup var store: StoreArgument
  @OptionGroup var access: AccessOption

  func run() async throws {
    var walk = try StoreWalk(.all)
    try await StoreSession.run(
      store.url, createsIfMissing: false, access: access.storeAccess, meter: store.meter
    ) { store, output in
      try await walk.printEntries(of: store, to: output)
    }
  }
}
