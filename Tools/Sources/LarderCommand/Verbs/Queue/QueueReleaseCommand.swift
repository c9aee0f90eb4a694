import ArgumentParser
import Larder
import LarderQueue

/// `larder queue release`.
struct QueueReleaseCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "release",
    abstract: "Give items back to be delivered again, by the receipts of their deliveries.",
    discussion: """
      They go to their old places in the order of arrival; one that was delivered five times becomes a dead letter. Where \
      receipts are stale it prints a line {"staleReceipt":"…"} for each, releases the other items, and ends with 3.

        larder queue release queue:mail 1-1-8c6f02d1e5a94b37 --delay 5s
      """)

  @OptionGroup var queue: QueueArgument
  @OptionGroup var receipts: ReceiptsArgument
  @Option(help: ArgumentHelp("How long the items are kept back, like 5s.", valueName: "time"))
  var delay = DurationArgument(.zero)

  func run() async throws {
    try await receipts.use(with: queue, operation: .release) { queue, receipts in
      try await queue.release(receipts, after: delay.duration)
    }
  }
}
