import ArgumentParser
import Larder

/// `larder count`.
struct CountCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "count",
    abstract: "Print how many entries there are.",
    discussion: """
        larder count json:users.json --prefix guest:
      """)

  @OptionGroup var store: StoreArgument
  @OptionGroup var access: AccessOption
  @Option(help: "Only keys that begin with this.") var prefix: String?
  @OptionGroup var keys: KeyOptions

  func run() async throws {
    let range = try keys.range(prefix: prefix)
    try await StoreSession.run(
      store.url, createsIfMissing: false, access: access.storeAccess, meter: store.meter
    ) { store, output in
      try output.writeLine("\(try await store.count(in: range))")
    }
  }
}
