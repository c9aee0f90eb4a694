import ArgumentParser
import Larder

/// `larder clear`.
struct ClearCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "clear",
    abstract: "Remove every entry, or every one under a prefix, at once.",
    discussion: """
        larder clear json:users.json --prefix guest:
        larder clear json:users.json
      """)

  @OptionGroup var store: StoreArgument
  @Option(help: "Only keys that begin with this.") var prefix: String?
  @OptionGroup var keys: KeyOptions

  func run() async throws {
    let range = try keys.range(prefix: prefix)
    try await StoreSession.run(store.url, createsIfMissing: false, meter: store.meter) { store, _ in
      try await store.removeAll(in: range)
    }
  }
}
