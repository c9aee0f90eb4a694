import ArgumentParser
import Larder

/// `larder clear`.
struct ClearCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "clear",
    abstract: "Remove every entry, or every one within bounds, at once.",
    discussion: """
      On a terminal it asks first, unless --yes is given. With --dry-run it prints how many entries it would remove.

        larder clear json:users.json --prefix guest: --dry-run
        larder clear json:users.json --prefix guest:
        larder clear json:users.json --yes
      """)

  @OptionGroup var store: StoreArgument
  @OptionGroup var range: RangeOptions
  @Flag(name: .customLong("dry-run"), help: "Print how many entries would be removed, and leave them.")
  var isDryRun = false
  @Flag(name: .customLong("yes"), help: "Do not ask.") var isConfirmed = false

  func run() async throws {
    let range = try range.range()
    try await StoreSession.run(
      store.target, createsIfMissing: false, access: isDryRun ? .readOnly : .readWrite
    ) { store, output in
      guard !isDryRun else { return try output.writeLine("\(try await store.count(in: range))") }
      if !isConfirmed, Descriptor.standardInput.isTerminal {
        Diagnostics.write("Remove \(EntryCount.text(try await store.count(in: range))) of \(self.store.url)? [y/N] ")
        guard ["y", "yes"].contains(readLine()?.lowercased()) else {
          return Diagnostics.writeLine("Nothing was removed.")
        }
      }
      try await store.removeAll(in: range)
    }
  }
}
