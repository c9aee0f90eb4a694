import ArgumentParser
import Larder
import LarderQueue

/// `larder queue acknowledge`.
struct QueueAcknowledgeCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "acknowledge",
    abstract: "Let items go for good, by the receipts of their deliveries.",
    discussion: """
      Where receipts are stale, since their leases have ended or their items were replaced or removed, it prints a line \
      {"staleReceipt":"…"} for each, lets the other items go, and ends with 3.

        larder queue acknowledge queue:mail 1-1-8c6f02d1e5a94b37 2-1-8c6f02d1e5a94b37
      """)

  @OptionGroup var queue: QueueArgument
  @OptionGroup var receipts: ReceiptsArgument

  func run() async throws {
    try await receipts.use(with: queue, operation: .acknowledge) { queue, receipts in
      try await queue.acknowledge(receipts)
    }
  }
}
