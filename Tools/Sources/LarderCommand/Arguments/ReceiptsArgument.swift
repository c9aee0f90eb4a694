import ArgumentParser
import Larder
import LarderExpiry
import LarderQueue

/// The deliveries that a verb is about, by their receipts.
struct ReceiptsArgument: ParsableArguments {
  @Argument(help: ArgumentHelp("The receipts, as `receive` has printed them.", valueName: "receipt"))
  var texts: [String]

  func validate() throws {
    _ = try receipts()
  }

  /// The receipts.
  ///
  /// - Throws: `ValidationError` where a text is none.
  func receipts() throws -> [DeliveryReceipt] {
    try texts.map { text in
      guard let receipt = DeliveryReceipt(text) else {
        throw ValidationError("'\(text)' is no receipt, which is three numbers, like 17-1-9a3f")
      }
      return receipt
    }
  }

  /// Does something with the deliveries, and prints a line for each receipt that is stale.
  ///
  /// - Parameters:
  ///   - queue: The queue.
  ///   - operation: What is done.
  ///   - body: Does it, and returns the receipts that are stale.
  /// - Throws: What opening and `body` throw; ``CommandFailure`` where a receipt is stale.
  func use(
    with queue: QueueArgument, operation: StoreOperation,
    _ body: (QueueStore<Expiring<JSONText>>, [DeliveryReceipt]) async throws -> [DeliveryReceipt]
  ) async throws {
    let receipts = try receipts()
    var staleCount = 0
    do {
      try await StoreSession.runQueue(queue, operation: operation) { queue in
        try await body(queue, receipts)
      } print: { stale, output in
        staleCount = stale.count
        for receipt in stale { try output.writeLine("{\"staleReceipt\":\"\(receipt)\"}") }
      }
    } catch let output as BrokenOutput {
      // That receipts are stale is told by the status, too, which counts although nobody reads the lines.
      guard output.isReaderGone, staleCount > 0 else { throw output }
    }
    guard staleCount > 0 else { return }
    let subject = receipts.count == 1 ? "the receipt is" : "\(staleCount) of \(receipts.count) receipts are"
    throw CommandFailure(
      .staleReceipt, "\(subject) stale: the lease has ended, or the item was replaced or has gone",
      advice: "What came of the work may be somebody else's by now; receive again.")
  }
}
