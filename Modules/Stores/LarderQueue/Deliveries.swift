public import Larder

/// The items of a queue as they become due, one after another; see ``QueueStore/deliveries(lease:)``.
public struct Deliveries<Item: Sendable>: AsyncSequence, Sendable {
  /// A delivery, or the error of an item that cannot be read or decoded.
  public typealias Element = Result<Delivery<Item>, StoreError>

  private let queue: QueueStore<Item>
  private let lease: Duration

  init(queue: QueueStore<Item>, lease: Duration) {
    self.queue = queue
    self.lease = lease
  }

  /// Makes an iterator; each takes items from the others.
  public func makeAsyncIterator() -> Iterator {
    Iterator(queue: queue, lease: lease)
  }

  /// Takes one item after another.
  public struct Iterator: AsyncIteratorProtocol {
    private let queue: QueueStore<Item>
    private let lease: Duration
    private var isOver = false

    init(queue: QueueStore<Item>, lease: Duration) {
      self.queue = queue
      self.lease = lease
    }

    /// Waits for an item, and leases it.
    ///
    /// - Returns: The item, or the error of one that cannot be read or decoded; `nil` once the queue is closed.
    /// - Throws: ``StoreError``: `invalidArgument` if the lease is not greater than zero; `corrupted` if three items could not be
    ///   decoded and none was since the queue was opened; `full` or `ioFailed` if the lease could not be written; the
    ///   next call tries again. `CancellationError` if the task is cancelled while it waits.
    public mutating func next() async throws -> Element? {
      guard !isOver else { return nil }
      do {
        return try await queue.next(lease: lease)
      } catch StoreError.Code.closed {
        isOver = true
        return nil
      }
    }
  }
}
