import ArgumentParser
import Larder

/// `larder stat`.
struct StatCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "stat",
    abstract: "Print what a store is, and how large.",
    discussion: """
      Prints a table for people, or with --json one object with name, acknowledgement, sharing, entryCount, bytesOnDisk \
      (null where nothing is on disk) and details, which are figures of that kind of store.

        larder stat json:users.json
        larder stat json:users.json --json
      """)

  @OptionGroup var store: StoreArgument
  @OptionGroup var access: AccessOption
  @Flag(name: .customLong("json"), help: "Print one JSON object in place of the table.") var printsJSON = false

  func run() async throws {
    try await StoreSession.run(
      store.target, createsIfMissing: false, access: access.storeAccess
    ) { store, output in
      let summary = try await StoreSummary(of: store)
      if printsJSON {
        try output.writeLine { summary.appendJSON(to: &$0) }
      } else {
        for line in summary.table { try output.writeLine(line) }
      }
    }
  }
}
