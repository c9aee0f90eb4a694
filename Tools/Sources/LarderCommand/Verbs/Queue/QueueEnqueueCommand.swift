import ArgumentParser
import Larder
import LarderExpiry
import LarderQueue

/// `larder queue enqueue`.
struct QueueEnqueueCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "enqueue",
    abstract: "Put an item at the end of a queue.",
    discussion: """
      Makes the queue where it is missing. Prints {"key":…,"isDuplicate":…}: the id, or else a key that was made. With \
      --id it does no harm to repeat it: while an item with that id is in the queue, dead letters included, and for 5 \
      minutes after it was acknowledged, nothing is enqueued, and isDuplicate is true.

        larder queue enqueue queue:mail '{"to":"ada"}'
        larder queue enqueue queue:mail '{"to":"bob"}' --id welcome:7 --delay 10m
      """)

  @OptionGroup var queue: QueueArgument
  @OptionGroup var value: ValueArgument
  @Option(help: "The key of the item, which makes it safe to enqueue it again; one is made unless given.")
  var id: String?
  @Option(help: ArgumentHelp("How long the item is kept back, like 5s.", valueName: "time"))
  var delay = DurationArgument(.zero)
  @OptionGroup var keys: KeyOptions

  func run() async throws {
    let id = try id.map { try keys.key($0) }
    let value = try value.json()
    try await StoreSession.runQueue(queue, createsIfMissing: true, operation: .enqueue) { queue in
      try await queue.enqueue(Expiring(value), id: id, delay: delay.duration)
    } print: { item, output in
      try output.writeLine { QueueLine.append(item, to: &$0) }
    }
  }
}
