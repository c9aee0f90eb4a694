import ArgumentParser
import Larder
import LarderQueue

/// `larder queue extend`.
struct QueueExtendCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "extend",
    abstract: "Keep items longer, by the receipts of their deliveries.",
    discussion: """
      The leases end so long after now, whenever they would have ended, and the receipts stay good. Where receipts are \
      stale it prints a line {"staleReceipt":"…"} for each, extends the other leases, and ends with 3.

        larder queue extend queue:mail 1-1-8c6f02d1e5a94b37 --lease 5m
      """)

  @OptionGroup var queue: QueueArgument
  @OptionGroup var receipts: ReceiptsArgument
  @Option(help: ArgumentHelp("How long nobody else gets the items from now on, like 30s.", valueName: "time"))
  var lease: DurationArgument

  func validate() throws {
    try lease.checkAsLease()
  }

  func run() async throws {
    try await receipts.use(with: queue, operation: .extend) { queue, receipts in
      try await queue.extend(receipts, lease: lease.duration)
    }
  }
}
