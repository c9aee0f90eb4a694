import ArgumentParser
import Larder

/// `larder backup`.
struct BackupCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "backup",
    abstract: "Write a complete copy of a store, as it is at one moment, to a new path.",
    discussion: """
      The copy is a store of the same kind, complete and durable when the verb ends, and holds what others that share its \
      file or folder hold there, too. Nothing may be at the path yet. Where other processes may have the store open, as \
      with lmdb:, they go on meanwhile.

        larder backup json:users.json users-2026-11-21.json
        larder backup lmdb:shop shop-backup --compact
      """)

  @OptionGroup var store: StoreArgument
  @OptionGroup var access: AccessOption
  @Argument(help: "Where the copy goes.", completion: .file()) var path: String
  @Flag(name: .customLong("compact"), help: "Leave out the free space that the store keeps.") var isCompacting = false

  func validate() throws {
    guard !path.isEmpty else { throw ValidationError("The path of the copy is empty") }
    // Made as a path it would be a file of a name that nobody meant.
    guard let scheme = Stores.registry.providers.map(\.scheme).first(where: { path.hasPrefix("\($0):") }) else {
      return
    }
    throw ValidationError("The copy goes to a path, not to a URL: leave out \(scheme):, or write './\(path)'")
  }

  func run() async throws {
    try await StoreSession.run(
      store.target, createsIfMissing: false, access: access.storeAccess
    ) { store, _ in
      guard let maintenance = store.information.maintenance else {
        throw StoreError(
          .unsupported, during: .backup, store: store.information.name,
          message: "this kind of store has no backup; larder copy copies its entries")
      }
      try await maintenance.backup(to: path, compacting: isCompacting)
    }
  }
}
