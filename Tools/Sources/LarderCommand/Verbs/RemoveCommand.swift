import ArgumentParser
import Larder

/// `larder remove`.
struct RemoveCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "remove",
    abstract: "Remove keys, all of them at once.",
    discussion: """
      A key that is not there is fine.

        larder remove json:users.json ada grace
      """)

  @OptionGroup var store: StoreArgument
  @Argument(help: ArgumentHelp("The keys.", valueName: "key")) var removed: [String]
  @OptionGroup var keys: KeyOptions

  func run() async throws {
    let changes = ChangeBatch<JSONText>(try removed.map { .remove(try keys.key($0)) })
    try await StoreSession.run(store.target, createsIfMissing: false) { store, _ in
      try await store.apply(changes)
    }
  }
}
