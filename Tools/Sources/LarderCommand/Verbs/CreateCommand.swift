import ArgumentParser
import Larder
import LarderExpiry
import LarderPostgres
import StoreAccess

/// `larder create`.
struct CreateCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "create",
    abstract: "Create an empty store or queue.",
    discussion: """
      Nothing is changed if it exists. With it, an administrator creates the tables of a PostgreSQL database, so that the \
      program that uses them needs no right to create any.

        larder create postgres:users --codec json
        larder create postgres-queue:jobs
        larder create json:sessions.json --ttl 30m
      """)

  @OptionGroup var store: StoreArgument
  @OptionGroup var ttl: TimeToLiveOption
  @OptionGroup var table: LayoutOption

  func run() async throws {
    let target = store.target(layout: table.layout)
    let schemes = [Stores.queueProvider.scheme, Stores.postgresQueueProvider.scheme]
    if schemes.contains(try StoreURL(target.url).scheme) {
      guard ttl.timeToLive == nil else { throw CommandFailure(.usage, "the items of a queue have no time to live") }
      return try await StoreSession.useQueue(
        QueueTarget(store: target, prefix: nil, itemCodec: nil), createsIfMissing: true
      ) { _, _ in }
    }
    try await StoreSession.run(target, createsIfMissing: true, timeToLive: ttl.timeToLive) { _, _ in }
  }
}
