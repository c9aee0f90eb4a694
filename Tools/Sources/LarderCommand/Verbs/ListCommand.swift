import ArgumentParser
import Larder

/// `larder list`.
struct ListCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "list",
    abstract: "Print entries in the order of their keys.",
    discussion: """
      Prints a line {"key":…,"value":…} for each entry; a key that is not UTF-8 comes as {"keyBytes":"80c0",…}. Bounds \
      add up: what is printed lies within all of them. Where --limit cuts the list short, a line on standard error says \
      how to go on; the cursor stays good whatever comes and goes in between.

        larder list json:users.json --prefix user: --limit 20
        larder list json:users.json --prefix user: --limit 20 --after 1a.dXNlcjo0Mg
        larder list json:users.json --from 2026-01-01 --to 2026-02-01 --keys
      """)

  @OptionGroup var store: StoreArgument
  @OptionGroup var access: AccessOption
  @OptionGroup var range: RangeOptions
  @Option(help: ArgumentHelp("Go on behind the end of an earlier list.", valueName: "cursor")) var after: String?
  @Flag(help: "From the highest key to the lowest.") var reverse = false
  @Option(help: "The most entries to print.") var limit: Int?
  @Flag(name: .customLong("keys"), help: "Print the keys without their values.") var printsKeysOnly = false

  func validate() throws {
    guard limit.map({ $0 >= 0 }) ?? true else { throw ValidationError("--limit must not be negative") }
  }

  func run() async throws {
    var walk = try StoreWalk(
      try range.range(), order: reverse ? .descending : .ascending,
      after: try after.map { try PageCursor($0) }, limit: limit)
    try await StoreSession.run(
      store.target, createsIfMissing: false, access: access.storeAccess
    ) { store, output in
      if printsKeysOnly {
        try await walk.printKeys(of: store, to: output)
      } else {
        try await walk.printEntries(of: store, to: output)
      }
    }
    if let next = walk.next { Diagnostics.writeLine("next: \(next.text)") }
  }
}
