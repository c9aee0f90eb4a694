import ArgumentParser
import Larder
import LarderExpiry

/// `larder compact`.
struct CompactCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "compact",
    abstract: "Reclaim the space of overwritten and removed entries.",
    discussion: """
      Unsupported for kinds of store that cannot reclaim space or have none to reclaim. For lmdb:, backup --compact writes \
      a copy without that space.

        larder compact json:users.json
      """)

  @OptionGroup var store: StoreArgument

  func run() async throws {
    try await StoreSession.run(store.target) { store, _ in
      try await store.present.compact()
    }
  }
}

/// `larder backup`.
struct BackupCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "backup",
    abstract: "Back up a store, as it is at one moment, to a new path.",
    discussion: """
      The backup is a store of the same kind, and is complete and durable when the verb ends. It includes all other stores \
      in the same file or folder. The path must not exist. Processes that share the store, as with lmdb:, can continue to \
      use it in the meantime.

        larder backup json:users.json users-2026-11-21.json
        larder backup lmdb:shop shop-backup --compact
      """)

  @OptionGroup var store: StoreArgument
  @OptionGroup var access: AccessOption
  @Argument(help: "The path of the backup.", completion: .file()) var path: String
  @Flag(name: .customLong("compact"), help: "Omit the free space of the store.") var isCompacting = false

  func validate() throws {
    guard !path.isEmpty else { throw ValidationError("the path of the backup must not be empty") }
    // As a path, a URL would name a file that the user did not mean.
    guard let scheme = Stores.registry.providers.map(\.scheme).first(where: { path.hasPrefix("\($0):") }) else {
      return
    }
    throw ValidationError("the backup needs a path, not a URL; omit \(scheme):, or write './\(path)'")
  }

  func run() async throws {
    try await StoreSession.run(store.target, access: access.storeAccess) { store, _ in
      try await store.present.backup(to: path, compacting: isCompacting)
    }
  }
}

/// `larder purge`.
struct PurgeCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "purge",
    abstract: "Remove the expired entries, and reclaim their space.",
    discussion: """
      No verb shows expired entries, but they take space until they are purged. An entry that is overwritten in the \
      meantime stays, and so does a damaged one.

        larder purge json:sessions.json
      """)

  @OptionGroup var store: StoreArgument

  func run() async throws {
    let count = try await StoreSession.run(store.target) { store, _ in
      try await store.expiring().purgeExpired()
    }
    Diagnostics.writeLine("purged \(EntryCount.text(count))")
  }
}
