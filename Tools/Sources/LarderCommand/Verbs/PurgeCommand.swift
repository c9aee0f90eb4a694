import ArgumentParser
import Larder
import LarderExpiry

/// `larder purge`.
struct PurgeCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "purge",
    abstract: "Remove the entries that have expired, and thereby give back their space.",
    discussion: """
      What has expired is not shown by any verb, but takes space until it is purged. An entry that is written anew \
      meanwhile stays, and so does one that is damaged.

        larder purge json:sessions.json
      """)

  @OptionGroup var store: StoreArgument

  func run() async throws {
    let count = try await StoreSession.runOpened(store.target, createsIfMissing: false) { store, _ in
      try await store.expiring().purgeExpired()
    }
    Diagnostics.writeLine("purged \(EntryCount.text(count))")
  }
}
