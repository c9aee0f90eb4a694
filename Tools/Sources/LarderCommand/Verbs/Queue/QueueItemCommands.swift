import ArgumentParser
import Larder
import StoreAccess

/// `larder queue enqueue`.
struct QueueEnqueueCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "enqueue",
    abstract: "Add an item to the end of a queue.",
    discussion: """
      A missing queue is created. Prints {"key":...,"isDuplicate":...}, where the key is the id or a generated key. \
      With --id you can repeat the verb safely. While an item with that id is in the queue, and for 5 minutes after it \
      was acknowledged or became a dead letter, nothing is enqueued, and isDuplicate is true.

      An item with a higher priority is received first. Items of a group are received one at a time, in the order of \
      arrival. The scheme queue: has neither.

        larder queue enqueue queue:mail '{"to":"ada"}'
        larder queue enqueue queue:mail '{"to":"bob"}' --id welcome:7 --delay 10m
        larder queue enqueue lmdb:shop#queues --prefix jobs/ '{"n":1}' --priority 5 --group customer:17
      """)

  @OptionGroup var queue: QueueArgument
  @OptionGroup var value: ValueArgument
  @Option(help: "The key of the item, which makes repeating safe. Defaults to a generated key.")
  var id: String?
  @Option(help: ArgumentHelp("The time before the item can be received, such as 5s.", valueName: "time"))
  var delay = DurationArgument(.zero)
  @Option(help: ArgumentHelp("The priority, from -10 to 10; higher ones come first.", valueName: "n"))
  var priority = 0
  @Option(help: "The group of the item. Defaults to no group.") var group: String?
  @OptionGroup var keys: KeyOptions

  func run() async throws {
    let group = try group.map { try keys.key($0) }
    let id = try id.map { try keys.key($0) }
    let value = try value.json()
    try await StoreSession.runQueue(queue.target, createsIfMissing: true) { queue in
      try await queue.enqueue(
        value, id: id, after: delay.duration, priority: priority, group: group)
    } print: { item, output in
      try output.writeLine { QueueLine.append(item, to: &$0) }
    }
  }
}

/// `larder queue receive`.
struct QueueReceiveCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "receive",
    abstract: "Receive the oldest items of a queue with a lease.",
    discussion: """
      Prints a line {"key":...,"value":...,"attempt":...,"receipt":"..."} for each item, in the order of arrival, and \
      nothing if no item is due. Until the lease ends, no other consumer receives the items. Items that are not \
      acknowledged by then are delivered again.

        larder queue receive queue:mail --max 10 --lease 1m
      """)

  @OptionGroup var queue: QueueArgument
  @Option(help: ArgumentHelp("The maximum number of items.", valueName: "n")) var max = 1
  @Option(help: ArgumentHelp("The time until the lease ends, such as 30s.", valueName: "time"))
  var lease = DurationArgument(.seconds(30))

  func validate() throws {
    guard max >= 1 else { throw ValidationError("--max must be at least 1") }
    try lease.checkAsLease()
  }

  func run() async throws {
    try await StoreSession.runQueue(queue.target) { queue in
      try await queue.receive(max: max, lease: lease.duration)
    } print: { deliveries, output in
      for delivery in deliveries {
        try output.writeLine { QueueLine.append(delivery, to: &$0) }
      }
    }
  }
}
