import Larder
import LarderQueue

/// Sends the events in the outbox, in batches.
///
/// Events leave the outbox only when the endpoint has accepted their batch. A batch that fails is released, and its
/// events are delivered again after the pauses of the outbox's `RetryPolicy`. If the client is killed in between, they
/// stay leased, and the next client sends them again. The endpoint must therefore recognize duplicates.
struct Uploader<Target: Endpoint> {
  /// Much longer than the endpoint may take for a batch.
  private static var lease: Duration { .seconds(60) }

  let outbox: QueueStore<Event>
  let endpoint: Target
  let batchSize: Int

  /// Uploads until the outbox is closed.
  ///
  /// - Parameter settled: A closure that is called each time events have left the outbox.
  /// - Throws: The error of the outbox. A failed upload does not throw.
  func run(settled: () async throws -> Void) async throws {
    while true {
      do {
        // The lease of an event is extended while it waits for other events, and then for the endpoint.
        try await outbox.withNext(lease: Self.lease, extending: true) { try await upload($0) }
      } catch StoreError.Code.closed {
        return
      } catch StoreError.Code.staleReceipt {
        // The lease has ended all the same, so the event is delivered and sent again.
      } catch let error where error is StoreError || error is CancellationError {
        throw error
      } catch {
        // Refused, too late, or cut off. In all cases the batch stays in the outbox.
      }
      try await settled()
    }
  }

  /// Sends an event, together with the other events that are available without waiting.
  private func upload(_ first: Delivery<Event>) async throws {
    let others = batchSize > 1 ? try await outbox.receive(max: batchSize - 1, lease: Self.lease) : []
    let receipts = others.map(\.receipt)
    // An event that was released in the meantime may be older than the first.
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
