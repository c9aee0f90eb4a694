import Foundation
import Larder
import LarderQueue

/// Sends what comes into the outbox, a batch at a time, each until it has been taken.
///
/// A batch that fails is kept, by longer leases, and sent again as it is: released, its events would mix with later ones.
/// Only when the endpoint has taken it are its events let go. Who dies in between leaves them leased; the next client
/// sends them again, so the endpoint has to know what it has seen.
struct Uploader<Target: Endpoint> {
  private static var lease: Duration { .seconds(60) }

  let outbox: QueueStore<Event>
  let endpoint: Target
  let batchSize: Int
  var backOff: BackOff

  /// How to wait between attempts.
  var sleep: @Sendable (Duration) async throws -> Void = { try await Task.sleep(for: $0) }

  /// Uploads until the outbox is closed.
  ///
  /// - Parameter settled: Is called each time events have left the outbox.
  /// - Throws: What the outbox throws; that a batch could not be sent is no error.
  mutating func run(settled: () async throws -> Void) async throws {
    var deliveries = outbox.deliveries(lease: Self.lease).makeAsyncIterator()
    while let result = try await deliveries.next() {
      switch result {
      case .success(let first):
        // What else is there goes along, without waiting for more.
        let batch = [first] + (batchSize > 1 ? try await outbox.receive(max: batchSize - 1, lease: Self.lease) : [])
        try await upload(batch)
      case .failure(let error):
        // What makes no sense comes back a few times, and is a dead letter then, kept for whoever looks into it, as is what
        // came along with a batch. What the disk refuses to give is delivered again.
        FileHandle.standardError.write(Data("an event cannot be read: \(error)\n".utf8))
      }
      try await settled()
    }
  }

  /// Sends a batch until it has been taken.
  private mutating func upload(_ deliveries: [Delivery<Event>]) async throws {
    let batch = EventBatch(events: deliveries.map(\.value))
    let receipts = deliveries.map(\.receipt)
    backOff.reset()
    while true {
      do {
        try await endpoint.send(batch)
        break
      } catch is CancellationError {
        throw CancellationError()
      } catch {
        // Refused, too late, or cut off: whichever it was, the batch stays in the outbox.
        try await sleep(backOff.pause())
      }
      _ = try await outbox.extend(receipts, lease: Self.lease)
    }
    // Those whose leases have ended all the same are delivered, and sent, once more.
    _ = try await outbox.acknowledge(receipts)
  }
}
