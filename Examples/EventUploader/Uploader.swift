import Larder
import LarderQueue

/// Sends what comes into the outbox, a batch at a time.
///
/// Events leave the outbox only when the endpoint has taken their batch. A batch that fails is released, and its events
/// come back after the pauses of the outbox's `RetryPolicy`. A client that dies in between leaves them leased, and the next
/// client sends them again, so the endpoint has to recognize what it has seen.
struct Uploader<Target: Endpoint> {
  /// Much longer than the endpoint may take for a batch.
  private static var lease: Duration { .seconds(60) }

  let outbox: QueueStore<Event>
  let endpoint: Target
  let batchSize: Int

  /// Uploads until the outbox is closed.
  ///
  /// - Parameter settled: Is called each time events have left the outbox.
  /// - Throws: What the outbox throws; that a batch could not be sent is no error.
  func run(settled: () async throws -> Void) async throws {
    while true {
      do {
        // While an event waits for others to go with it, and then for the endpoint, its lease is extended.
        try await outbox.withNext(lease: Self.lease, extending: true) { try await upload($0) }
      } catch StoreError.Code.closed {
        return
      } catch StoreError.Code.staleReceipt {
        // The lease has ended all the same: the event is delivered, and sent, once more.
      } catch let error where error is StoreError || error is CancellationError {
        throw error
      } catch {
        // Refused, too late, or cut off: whichever it was, the batch stays in the outbox.
      }
      try await settled()
    }
  }

  /// Sends an event, and what else is there without waiting for more.
  private func upload(_ first: Delivery<Event>) async throws {
    let others = batchSize > 1 ? try await outbox.receive(max: batchSize - 1, lease: Self.lease) : []
    let receipts = others.map(\.receipt)
    // One that has come back since may be older than the first.
    let deliveries = ([first] + others).sorted { $0.receipt.sequence < $1.receipt.sequence }
    do {
      try await endpoint.send(EventBatch(events: deliveries.map(\.value)))
    } catch {
      _ = try await outbox.release(receipts)
      throw error
    }
    _ = try await outbox.acknowledge(receipts)
  }
}
