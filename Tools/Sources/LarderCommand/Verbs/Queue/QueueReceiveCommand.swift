import ArgumentParser
import Larder
import LarderExpiry
import LarderQueue

/// `larder queue receive`.
struct QueueReceiveCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "receive",
    abstract: "Take the items that came first, until a lease ends.",
    discussion: """
      Prints a line {"key":…,"value":…,"attempt":…,"receipt":"…"} for each item, in the order of arrival, and nothing where \
      none is due. Until the lease ends nobody else gets them; then they are delivered again, unless they were \
      acknowledged by their receipts.

        larder queue receive queue:mail --max 10 --lease 1m
      """)

  @OptionGroup var queue: QueueArgument
  @Option(help: ArgumentHelp("The most items.", valueName: "n")) var max = 1
  @Option(help: ArgumentHelp("How long nobody else gets them, like 30s.", valueName: "time"))
  var lease = DurationArgument(.seconds(30))

  func validate() throws {
    guard max >= 1 else { throw ValidationError("--max must be at least 1") }
    try lease.checkAsLease()
  }

  func run() async throws {
    try await StoreSession.runQueue(queue, operation: .receive) { queue in
      try await queue.receive(max: max, lease: lease.duration)
    } print: { deliveries, output in
      for delivery in deliveries {
        try output.writeLine { QueueLine.append(delivery, to: &$0) }
      }
    }
  }
}
