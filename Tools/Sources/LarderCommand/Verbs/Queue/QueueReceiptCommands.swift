import ArgumentParser
import Larder
import StoreAccess

/// `larder queue acknowledge`.
struct QueueAcknowledgeCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "acknowledge",
    abstract: "Acknowledge deliveries, which removes their items permanently.",
    discussion: """
      A receipt is stale if its lease has ended or its item was replaced or removed. If receipts are stale, prints a \
      line {"staleReceipt":"..."} for each of them, acknowledges the others, and exits with 3.

        larder queue acknowledge queue:mail 1-1-8c6f02d1e5a94b37 2-1-8c6f02d1e5a94b37
      """)

  @OptionGroup var queue: QueueArgument
  @OptionGroup var receipts: ReceiptsArgument

  func run() async throws {
    try await receipts.use(with: queue.target) { queue, receipts in
      try await queue.acknowledge(receipts)
    }
  }
}

/// `larder queue release`.
struct QueueReleaseCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "release",
    abstract: "Release items, so that they are delivered again.",
    discussion: """
      The items return to their positions in the order of arrival. An item that was delivered five times becomes a dead \
      letter. If receipts are stale, prints a line {"staleReceipt":"..."} for each of them, releases the items of the \
      others, and exits with 3.

        larder queue release queue:mail 1-1-8c6f02d1e5a94b37 --delay 5s
      """)

  @OptionGroup var queue: QueueArgument
  @OptionGroup var receipts: ReceiptsArgument
  @Option(help: ArgumentHelp("The time before the items can be received again, such as 5s.", valueName: "time"))
  var delay = DurationArgument(.zero)

  func run() async throws {
    try await receipts.use(with: queue.target) { queue, receipts in
      try await queue.release(receipts, after: delay.duration)
    }
  }
}

/// `larder queue extend`.
struct QueueExtendCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "extend",
    abstract: "Extend the leases of deliveries.",
    discussion: """
      Resets the leases to the given time from now. The receipts stay valid. If receipts are stale, prints a line \
      {"staleReceipt":"..."} for each of them, extends the leases of the others, and exits with 3.

        larder queue extend queue:mail 1-1-8c6f02d1e5a94b37 --lease 5m
      """)

  @OptionGroup var queue: QueueArgument
  @OptionGroup var receipts: ReceiptsArgument
  @Option(help: ArgumentHelp("The time from now until the leases end, such as 30s.", valueName: "time"))
  var lease: DurationArgument

  func validate() throws {
    try lease.checkAsLease()
  }

  func run() async throws {
    try await receipts.use(with: queue.target) { queue, receipts in
      try await queue.extend(receipts, lease: lease.duration)
    }
  }
}

/// The receipts of the deliveries that a verb works on.
struct ReceiptsArgument: ParsableArguments {
  @Argument(help: ArgumentHelp("The receipts that `receive` printed.", valueName: "receipt"))
  var texts: [String]

  func validate() throws {
    _ = try receipts()
  }

  /// Returns the receipts.
  ///
  /// - Throws: `ValidationError` if an argument is not a receipt.
  func receipts() throws -> [DeliveryReceipt] {
    try texts.map { text in
      guard let receipt = DeliveryReceipt(text) else {
        throw ValidationError("invalid receipt '\(text)': expected three hexadecimal numbers, such as 17-1-9a3f")
      }
      return receipt
    }
  }

  /// Performs an operation on deliveries, and prints a line for each stale receipt.
  ///
  /// - Parameters:
  ///   - queue: The queue.
  ///   - body: Performs an operation, and returns the stale receipts.
  /// - Throws: The errors of opening and of `body`; ``CommandFailure`` if a receipt is stale.
  func use(
    with queue: QueueTarget,
    _ body: (any DurableQueue<JSONText>, [DeliveryReceipt]) async throws -> [DeliveryReceipt]
  ) async throws {
    let receipts = try receipts()
    var staleCount = 0
    do {
      try await StoreSession.runQueue(queue) { queue in
        try await body(queue, receipts)
      } print: { stale, output in
        staleCount = stale.count
        for receipt in stale { try output.writeLine("{\"staleReceipt\":\"\(receipt)\"}") }
      }
    } catch let output as BrokenOutput {
      // The exit code reports stale receipts even if the reader of the lines has gone.
      guard output.isReaderGone, staleCount > 0 else { throw output }
    }
    guard staleCount > 0 else { return }
    let subject = receipts.count == 1 ? "the receipt is" : "\(staleCount) of \(receipts.count) receipts are"
    throw CommandFailure(
      .staleReceipt, "\(subject) stale: the lease has ended, or the item was replaced or removed",
      advice: "Another consumer may have received the item; receive again.")
  }
}
