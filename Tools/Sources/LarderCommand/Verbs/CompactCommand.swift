import ArgumentParser
import Larder

/// `larder compact`.
struct CompactCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "compact",
    abstract: "Give back the space of what was overwritten and removed.",
    discussion: """
      A kind of store that cannot, or has nothing to give back, refuses it as unsupported; backup --compact writes a \
      copy without that space.

        larder compact json:users.json
      """)

  @OptionGroup var store: StoreArgument

  func run() async throws {
    try await StoreSession.run(store.target, createsIfMissing: false) { store, _ in
      try await CompactCommand.compact(store)
    }
  }

  /// Compacts a store.
  ///
  /// - Throws: What the store throws; ``StoreError`` with `unsupported` where it has no compaction.
  static func compact(_ store: some DataStore) async throws {
    guard let maintenance = store.information.maintenance else {
      throw StoreError(
        .unsupported, during: .compact, store: store.information.name,
        message: "compact is unsupported, since this kind of store has nothing to give back")
    }
    try await maintenance.compact()
  }
}
