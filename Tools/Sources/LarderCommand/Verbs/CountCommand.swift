import ArgumentParser
import Larder

/// `larder count`.
struct CountCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "count",
    abstract: "Print how many entries there are.",
    discussion: """
        larder count json:users.json --prefix guest:
        larder count json:users.json --from 2026-01-01 --to 2026-02-01
      """)

  @OptionGroup var store: StoreArgument
  @OptionGroup var access: AccessOption
  @OptionGroup var range: RangeOptions

  func run() async throws {
    let range = try range.range()
    try await StoreSession.run(
      store.target, createsIfMissing: false, access: access.storeAccess
    ) { store, output in
      try output.writeLine("\(try await store.count(in: range))")
    }
  }
}
